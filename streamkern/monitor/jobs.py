"""Jobs under way and past, from the events that were heard of them."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from streamkern.monitor.passes import Pass
from streamkern.runtime.events import Event

# Jobs that are over are kept, up to so many.
_KEPT = 20
# Seconds: what was over sooner nobody waited for.
SHORT = 1.0


@dataclass
class Job:
    """A fit, a prediction, or what else is told of as one; seconds are those of `Jobs.clock`."""

    number: str
    name: str
    begun: float
    when: datetime
    client: str | None = None
    dashboard: str | None = None
    ended: float | None = None
    error: str | None = None
    passes: dict[str, Pass] = field(default_factory=dict)
    worker_bytes: int = 0
    planned_seconds: float = 0.0  # of the passes for moments
    readings: int = 1  # these passes
    solve_flops: float = 0.0  # of all processes, while some of them solve
    solved: dict[str, Any] | None = None
    budget: float | None = None  # seconds of a search, 0 where these are not bounded
    best: float | None = None  # the least error of a trial
    # Seconds since it began and what the largest worker took then, ever more rarely.
    memory: list[tuple[float, int]] = field(default_factory=list)

    @property
    def current(self) -> Pass | None:
        """The pass under way, or the one before it."""
        return next(reversed(self.passes.values()), None)

    @property
    def main(self) -> Pass | None:
        """The pass under way, else the latest with products of features, or of all."""
        current = self.current
        if current is None or current.ended is None:
            return current
        heavy = [reading for reading in self.passes.values() if reading.row_flops]
        return heavy[-1] if heavy else current

    @property
    def phase(self) -> str:
        if self.ended is not None:
            return "done" if self.error is None else "failed"
        current = self.current
        if current is None:
            return "starting"
        if current.ended is None:
            return current.label
        if self.solved:
            return "finishing"
        searches = "preparing" if self.budget is None else "searching"
        return "solving" if current.row_flops else searches

    def elapsed(self, now: float) -> float:
        return (now if self.ended is None else self.ended) - self.begun

    def is_short(self, now: float) -> bool:
        """Say whether nobody had to wait for it so far."""
        return self.elapsed(now) < SHORT

    def peak_bytes(self) -> int:
        """Return the most that a worker took, in all passes and between them."""
        peaks = [reading.peak_bytes() for reading in self.passes.values()]
        return max(*peaks, *(taken for _, taken in self.memory), 0, 0)

    def solve_seconds(self) -> float | None:
        """Return an estimate, from the speed of products in the passes for moments."""
        best = max((reading.attainable() for reading in self._of_moments), default=0.0)
        return self.solve_flops / best if best else None

    def seconds_left(self, now: float) -> float | None:
        """Return an estimate for all passes that are planned and the solution, None without it."""
        current, readings, solving = self.current, self._of_moments, self.solve_seconds()
        if not self.solve_flops or current is None or self.solved or self.ended is not None:
            return None
        left = current.seconds_left(now)
        if left is None or not readings:
            return None if left is None else left + self.planned_seconds
        if solving is None or current is not readings[-1]:
            return left
        if current.ended is not None and len(readings) == self.readings:
            return solving - (now - current.ended) if now < current.ended + solving else None
        another = current.elapsed(now) + left
        return left + (self.readings - len(readings)) * another + solving

    @property
    def _of_moments(self) -> list[Pass]:
        return [each for each in self.passes.values() if each.label.startswith("moments")]


class Jobs:
    """All jobs that were told of; whoever reads several figures of them holds `lock`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.jobs: dict[str, Job] = {}
        self.lock = threading.RLock()

    def __iter__(self) -> Iterator[Job]:
        with self.lock:
            return iter(list(reversed(self.jobs.values())))

    @property
    def latest(self) -> Job | None:
        return next(iter(self), None)

    def hear(self, event: Event, ago: float = 0.0) -> None:
        """Take in an event of so many seconds ago."""
        with self.lock:
            now = self.clock() - ago
            if event["kind"] == "job begun":
                number, when = event["job"], datetime.now() - timedelta(seconds=ago)
                place = event.get("client"), event.get("dashboard")
                self.jobs[number] = Job(number, event["name"], now, when, *place)
                over = [job.number for job in self.jobs.values() if job.ended is not None]
                for old in over[: max(len(self.jobs) - _KEPT, 0)]:
                    del self.jobs[old]
            elif (found := self.jobs.get(event.get("job", ""))) is not None:
                self._hear_of_job(found, event, now)
            elif (found := self.job_of(event)) is not None:
                found.passes[event["pass"]].hear(event, now)

    def job_of(self, event: Event) -> Job | None:
        number = event.get("pass")
        if number is None:
            return self.jobs.get(event.get("job", ""))
        return next((job for job in self if number in job.passes), None)

    def _hear_of_job(self, job: Job, event: Event, now: float) -> None:
        match event["kind"]:
            case "planned":
                job.worker_bytes, job.readings = event["worker_bytes"], event.get("readings", 1)
                job.planned_seconds = event.get("seconds", 0.0)
            case "solution planned":
                job.solve_flops = event["flops"]
            case "searching":
                job.budget = event["seconds"]
            case "tried":
                job.best = min(event["error"], event["error"] if job.best is None else job.best)
            case "pass begun":
                size = event["rows"], event.get("shards", 0), event.get("row_bytes", 0)
                reading = Pass(event["label"], *size, event.get("row_flops", 0.0), now)
                job.passes[event["pass"]] = reading
            case "solved":
                job.solved = event
            case "job ended":
                job.ended, job.error = now, event["error"]
