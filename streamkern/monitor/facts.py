"""What is known of jobs under way, from what was told: the figures that every view shows."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streamkern.observing import Event

# Jobs that are over are kept, up to so many.
_KEPT = 20
# A rate is that of so many seconds.
_WINDOW = 15.0
# Seconds between two samples of how far a pass is, at least, and how many it has about.
_SAMPLE, _SAMPLES = 1.0, 100
# Samples that a rate is taken over.
_SMOOTH = 4


@dataclass
class Worker:
    """What one process did in a pass.

    Parameters
    ----------
    rows : int
    busy : float
        Seconds that its threads computed, all together.
    attainable : float
        Operations a second that products alone attain on it, 0 where they were not measured.
    peak_bytes : int
    """

    rows: int = 0
    busy: float = 0.0
    attainable: float = 0.0
    peak_bytes: int = 0


@dataclass
class Pass:
    """One reading of the rows.

    Parameters
    ----------
    label : str
    n_rows, n_shards : int
    row_bytes, row_flops : float
        Bytes of X, and operations of products of features, a row.
    begun : float
        On the clock of `Jobs`, as all times.
    """

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
    merges: int = 0
    attempts: Counter[int] = field(default_factory=Counter)
    running: dict[int, str] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    workers: dict[str, Worker] = field(default_factory=dict)
    seconds: Counter[str] = field(default_factory=Counter)
    validation: list[tuple[int, float]] = field(default_factory=list)
    recent: deque[tuple[float, int]] = field(default_factory=deque)
    # Seconds since it began and rows read by then, ever more rarely.
    history: list[tuple[float, int]] = field(default_factory=lambda: [(0.0, 0)])

    @property
    def rows_done(self) -> int:
        """Rows that were read, or found in a checkpoint."""
        return self.rows_read + self.rows_resumed

    @property
    def retried(self) -> int:
        """Shards that were begun more than once."""
        return sum(count > 1 for count in self.attempts.values())

    def shards(self) -> dict[str, int]:
        """Return how many shards are in which state."""
        running = len(self.running)
        done = len(self.done)
        failed = running if self.error is not None else 0
        return {
            "done": done,
            "resumed": self.shards_resumed,
            "running": running - failed,
            "failed": failed,
            "waiting": max(self.n_shards - done - self.shards_resumed - running, 0),
        }

    def elapsed(self, now: float) -> float:
        """Return the seconds that it has taken, or took."""
        return max((now if self.ended is None else self.ended) - self.begun, 1e-9)

    def rows_per_second(self, now: float) -> float:
        """Return the rows read a second, since it began."""
        return self.rows_read / self.elapsed(now)

    def rates(self) -> list[tuple[float, float]]:
        """Return rows a second over time: pairs of seconds since it began, and of the rate then.

        Rows come a shard at a time, so each rate is that of some samples.
        """
        past = chain([self.history[0]] * (_SMOOTH - 1), self.history)
        return [
            (after, (rows - before_rows) / (after - before))
            for (before, before_rows), (after, rows) in zip(past, self.history[1:], strict=False)
        ]

    def seconds_left(self, now: float) -> float | None:
        """Return an estimate from the last seconds, or from the beginning if they were idle."""
        if self.ended is not None:
            return 0.0
        rows = sum(n for when, n in self.recent if when > now - _WINDOW)
        young = self.begun > now - _WINDOW
        rate = self.rows_per_second(now) if young or not rows else rows / _WINDOW
        return (self.n_rows - self.rows_done) / rate if rate else None

    def speed(self, now: float) -> float:
        """Return the operations a second of products of features."""
        return self.row_flops * self.rows_per_second(now)

    def attainable(self) -> float:
        """Return what products alone attain on all the processes that took part."""
        return sum(worker.attainable for worker in self.workers.values())

    def peak_bytes(self) -> int:
        """Return the largest resident size of a process that took part."""
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
            "shards": self.shards() | {"retried": self.retried},
            "seconds": dict(self.seconds),
            "validation": self.validation[-1] if self.validation else None,
            "workers": {
                name: {
                    "rows": worker.rows,
                    "busy": worker.busy,
                    "attainable_flops_per_second": worker.attainable,
                    "peak_bytes": worker.peak_bytes,
                }
                for name, worker in self.workers.items()
            },
        }

    def shard_begun(self, event: Event) -> None:
        """Hear that a shard was begun."""
        self.attempts[event["shard"]] += 1
        self.running[event["shard"]] = event["worker"]

    def shard_done(self, event: Event, now: float) -> None:
        """Hear that a shard is done; its rows count once."""
        shard, rows = event["shard"], event["rows"]
        self.running.pop(shard, None)
        worker = self.workers.setdefault(event["worker"], Worker())
        worker.rows += rows
        worker.busy += event.get("elapsed", 0.0)
        worker.attainable = event.get("attainable", 0.0)
        worker.peak_bytes = max(worker.peak_bytes, event.get("peak_bytes", 0))
        self.seconds.update(event.get("seconds", {}))
        if shard not in self.done:
            self.done.add(shard)
            self.rows_read += rows
            self.recent.append((now, rows))
            while self.recent and self.recent[0][0] <= now - _WINDOW:
                self.recent.popleft()
            elapsed = self.elapsed(now)
            if elapsed - self.history[-1][0] >= max(_SAMPLE, elapsed / _SAMPLES):
                self.history.append((elapsed, self.rows_read))


@dataclass
class Job:
    """A fit, a prediction, or what else is told of as one.

    Parameters
    ----------
    number, name : str
    begun : float
        On the clock of `Jobs`.
    when : datetime
        The same on the clock of the machine.
    dashboard : str, optional
        The address of a page about the cluster.
    """

    number: str
    name: str
    begun: float
    when: datetime
    dashboard: str | None = None
    ended: float | None = None
    error: str | None = None
    passes: dict[str, Pass] = field(default_factory=dict)
    worker_bytes: int = 0
    solved: dict[str, Any] | None = None

    @property
    def current(self) -> Pass | None:
        """The pass under way, or the one before it."""
        return next(reversed(self.passes.values()), None)

    @property
    def main(self) -> Pass | None:
        """The latest pass that makes products of features, if any, or the latest of all."""
        heavy = [reading for reading in self.passes.values() if reading.row_flops]
        return heavy[-1] if heavy else self.current

    @property
    def phase(self) -> str:
        """What it is at, in a word or two."""
        if self.ended is not None:
            return "done" if self.error is None else "failed"
        current = self.current
        if current is None:
            return "starting"
        if current.ended is None:
            return current.label
        if self.solved:
            return "finishing"
        return "solving" if current.row_flops else "preparing"

    def elapsed(self, now: float) -> float:
        """Return the seconds that it has taken, or took."""
        return (now if self.ended is None else self.ended) - self.begun


class Jobs:
    """All jobs that were told of; what it hears, from any thread, it adds up.

    Parameters
    ----------
    clock : callable
        Returns seconds.

    Attributes
    ----------
    lock : lock
        For whoever reads several figures that belong together.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.jobs: dict[str, Job] = {}
        self._passes: dict[str, Pass] = {}
        self.lock = threading.RLock()

    def __iter__(self) -> Iterator[Job]:
        """Return the jobs, the latest first."""
        with self.lock:
            return iter(list(reversed(self.jobs.values())))

    @property
    def latest(self) -> Job | None:
        """The job that began last."""
        return next(iter(self), None)

    def hear(self, event: Event, ago: float = 0.0) -> None:
        """Take in one event; those of jobs that nobody told of do not count.

        Parameters
        ----------
        event : dict
        ago : float
            Seconds since it happened.
        """
        with self.lock:
            now, kind = self.clock() - ago, event["kind"]
            if kind == "job begun":
                when = datetime.now() - timedelta(seconds=ago)
                self.jobs[event["job"]] = Job(
                    event["job"], event["name"], now, when, event.get("dashboard")
                )
                self._forget()
            elif (found := self.jobs.get(event.get("job", ""))) is not None:
                self._hear_of_job(found, event, now)
            elif (reading := self._passes.get(event.get("pass", ""))) is not None:
                _hear_of_pass(reading, event, now)

    def worker_lost(self, worker: str) -> None:
        """Hear that a worker is gone, and what it was at with it."""
        with self.lock:
            for reading in self._passes.values():
                if reading.ended is None:
                    lost = [shard for shard, where in reading.running.items() if where == worker]
                    for shard in lost:
                        del reading.running[shard]

    def job_of(self, event: Event) -> Job | None:
        """Return the job that an event is of."""
        number = event.get("pass")
        if number is None:
            return self.jobs.get(event.get("job", ""))
        return next((job for job in self if number in job.passes), None)

    def _hear_of_job(self, job: Job, event: Event, now: float) -> None:
        match event["kind"]:
            case "planned":
                job.worker_bytes = event["worker_bytes"]
            case "pass begun":
                job.passes[event["pass"]] = self._passes[event["pass"]] = Pass(
                    event["label"],
                    event["rows"],
                    event.get("shards", 0),
                    event.get("row_bytes", 0),
                    event.get("row_flops", 0.0),
                    now,
                )
            case "solved":
                job.solved = event
            case "job ended":
                job.ended, job.error = now, event["error"]

    def _forget(self) -> None:
        for number in [job.number for job in self.jobs.values() if job.ended is not None]:
            if len(self.jobs) <= _KEPT:
                return
            for gone in self.jobs.pop(number).passes:
                self._passes.pop(gone, None)


def _hear_of_pass(reading: Pass, event: Event, now: float) -> None:
    match event["kind"]:
        case "shard begun":
            reading.shard_begun(event)
        case "shard done":
            reading.shard_done(event, now)
        case "merged":
            reading.merges += 1
            reading.seconds["merging"] += event["seconds"]
        case "validated":
            reading.validation.append((event["rows"], event["error"]))
        case "resumed":
            reading.rows_resumed, reading.shards_resumed = event["rows"], event["shards"]
        case "pass ended":
            reading.ended, reading.error = now, event["error"]
