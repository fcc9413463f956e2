"""Figures of a pass, from the events that were heard of it; every view shows them."""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from streamkern.runtime.events import Event

# What is left is estimated from so many seconds, or from such a part of those since the beginning.
_WINDOW, _PART = 15.0, 1 / 3
# Seconds between two samples of how far a pass is, at least, and how many it has about.
_SAMPLE, _SAMPLES = 1.0, 100


def is_due(history: list[tuple[float, int]], elapsed: float) -> bool:
    """Say whether it is time for another sample: the longer a history is, the more rarely."""
    last = history[-1][0] if history else -_SAMPLE
    return elapsed - last >= max(_SAMPLE, elapsed / _SAMPLES)


@dataclass
class Worker:
    """What one process did in a pass, since it began with its first shard."""

    since: float
    rows: int = 0
    busy: float = 0.0  # seconds of all its threads
    attainable: float = 0.0  # operations a second of products alone, 0 where not measured
    peak_bytes: int = 0
    is_lost: bool = False

    def figures(self) -> dict[str, Any]:
        figures = {"rows": self.rows, "busy": self.busy, "peak_bytes": self.peak_bytes}
        return figures | {"attainable_flops_per_second": self.attainable}


@dataclass
class Pass:
    """One reading of the rows, with bytes of X and operations of products of features a row."""

    label: str
    n_rows: int
    n_shards: int
    row_bytes: float
    row_flops: float
    begun: float
    ended: float | None = None
    error: str | None = None
    rows_read: int = 0
    rows_resumed: int = 0
    shards_resumed: int = 0
    attempts: Counter[int] = field(default_factory=Counter)
    running: dict[int, str] = field(default_factory=dict)
    partly: dict[int, int] = field(default_factory=dict)  # rows so far of those that take long
    done: dict[int, int] = field(default_factory=dict)  # with their rows
    failed: set[int] = field(default_factory=set)
    workers: dict[str, Worker] = field(default_factory=dict)
    n_lost: int = 0  # workers that had begun shards
    seconds: Counter[str] = field(default_factory=Counter)
    validation: list[tuple[int, float]] = field(default_factory=list)
    # Features that these errors are with, and those of the model.
    leading: int = 0
    n_components: int = 0
    recent: deque[tuple[float, int]] = field(default_factory=deque)
    # Seconds since it began and rows read by then, ever more rarely.
    history: list[tuple[float, int]] = field(default_factory=lambda: [(0.0, 0)])

    @property
    def rows_done(self) -> int:
        """Rows that were read, or found in a checkpoint."""
        return self.rows_read + self.rows_resumed

    @property
    def share(self) -> float:
        return self.rows_done / self.n_rows if self.n_rows else 1.0

    @property
    def retried(self) -> int:
        """Shards that were begun more than once."""
        return sum(count > 1 for count in self.attempts.values())

    def shards(self) -> dict[str, int]:
        """Return how many shards are in which state, and how many were begun again."""
        states = {
            "done": len(self.done),
            "resumed": self.shards_resumed,
            "running": len(self.running) if self.ended is None else 0,
            "failed": len(self.failed),
        }
        waiting = max(self.n_shards - sum(states.values()), 0)
        return states | {"waiting": waiting, "retried": self.retried}

    def elapsed(self, now: float) -> float:
        return max((now if self.ended is None else self.ended) - self.begun, 1e-9)

    def rows_per_second(self, now: float) -> float:
        return self.rows_read / self.elapsed(now)

    def seconds_left(self, now: float) -> float | None:
        """Return an estimate from the last third of the time, or from all if that was idle."""
        if self.ended is not None:
            return 0.0
        window = max(_WINDOW, _PART * self.elapsed(now))
        rows = sum(n for when, n in self.recent if when > now - window)
        rate = rows / min(window, self.elapsed(now)) if rows else self.rows_per_second(now)
        return (self.n_rows - self.rows_done) / rate if rate else None

    def speed(self, now: float) -> float:
        """Return the operations a second of products of features."""
        return self.row_flops * self.rows_per_second(now)

    def attainable(self) -> float:
        """Return what products alone attain on all the processes that took part."""
        return sum(worker.attainable for worker in self.workers.values())

    def peak_bytes(self) -> int:
        return max((worker.peak_bytes for worker in self.workers.values()), default=0)

    def figures(self, now: float) -> dict[str, Any]:
        """Return the figures as plain values, times in seconds."""
        return {
            "pass": self.label,
            "rows": self.n_rows,
            "rows_done": self.rows_done,
            "rows_per_second": self.rows_per_second(now),
            "bytes_per_second": self.rows_per_second(now) * self.row_bytes,
            "flops_per_second": self.speed(now),
            "attainable_flops_per_second": self.attainable(),
            "elapsed": self.elapsed(now),
            "left": self.seconds_left(now),
            "peak_worker_bytes": self.peak_bytes(),
            "shards": self.shards(),
            "seconds": dict(self.seconds),
            "validation": self.validation[-1] if self.validation else None,
            "validation_components": self.leading,
            "workers": {name: worker.figures() for name, worker in self.workers.items()},
        }

    def hear(self, event: Event, now: float) -> None:
        match event["kind"]:
            case "shard begun":
                self.attempts[event["shard"]] += 1
                # What was lost with a worker is to be read again.
                self.rows_read -= self.done.pop(event["shard"], 0)
                self._read_in_vain(event["shard"])
                self.failed.discard(event["shard"])
                self.running[event["shard"]] = event["worker"]
                self.workers.setdefault(event["worker"], Worker(since=now))
            case "rows read":
                self._rows_read(event, now)
            case "shard done":
                self._shard_done(event, now)
            case "shard failed":
                self.running.pop(event["shard"], None)
                self._read_in_vain(event["shard"])
                self.failed.add(event["shard"])
            case "worker lost":
                self.lost(event["worker"])
            case "merged":
                self.seconds["merging"] += event["seconds"]
            case "validated":
                self.leading, self.n_components = event["leading"], event["n_components"]
                self.validation.append((event["rows"], event["error"]))
            case "resumed":
                self.rows_resumed, self.shards_resumed = event["rows"], event["shards"]
            case "pass ended":
                self.ended, self.error = now, event["error"]

    def lost(self, worker: str) -> None:
        self.n_lost += worker in self.workers  # at work, or it holds sums
        for shard in [shard for shard, where in self.running.items() if where == worker]:
            del self.running[shard]
            self._read_in_vain(shard)
        if worker in self.workers:
            self.workers[worker].attainable, self.workers[worker].is_lost = 0.0, True

    def _read_in_vain(self, shard: int) -> None:
        self.rows_read -= self.partly.pop(shard, 0)

    def _rows_read(self, event: Event, now: float) -> None:
        """Count the rows of a shard so far, or all of them, which count once."""
        shard, rows = event["shard"], event["rows"]
        more = rows - self.partly.get(shard, 0)
        self.workers.setdefault(event["worker"], Worker(since=self.begun)).rows += more
        if shard not in self.done:
            self.partly[shard] = rows
            self.rows_read += more
            self.recent.append((now, more))
            elapsed = self.elapsed(now)
            while self.recent and self.recent[0][0] <= now - max(_WINDOW, _PART * elapsed):
                self.recent.popleft()
            if is_due(self.history, elapsed):
                self.history.append((elapsed, self.rows_read))

    def _shard_done(self, event: Event, now: float) -> None:
        """Add a shard; its rows count once."""
        self._rows_read(event, now)
        shard = event["shard"]
        self.running.pop(shard, None)
        self.partly.pop(shard, None)
        self.done[shard] = event["rows"]
        worker = self.workers[event["worker"]]
        worker.busy += event.get("elapsed", 0.0)
        worker.attainable = event.get("attainable", 0.0)
        worker.peak_bytes = max(worker.peak_bytes, event.get("peak_bytes", 0))
        self.seconds.update(event.get("seconds", {}))
