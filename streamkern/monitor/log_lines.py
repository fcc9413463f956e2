"""Progress as plain lines of a batch log, and as lines of JSON for programs."""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from datetime import datetime
from typing import TYPE_CHECKING, Any

from streamkern.errors.formatting import json_text, printable
from streamkern.monitor import job_text

if TYPE_CHECKING:
    from streamkern.monitor.jobs import Job, Jobs
    from streamkern.monitor.passes import Pass
    from streamkern.runtime.events import Event

# Seconds between two lines at least, and as a share of what a job has taken: so ten hours give
# about as many more lines as ten minutes gave.
_LEAST, _SHARE = 10.0, 1 / 30
_LOOK = 1.0
# What was over sooner nobody waited for.
_SHORT = 1.0
# Events that come by the thousand, or say nothing on their own.
_PLENTIFUL = {"shard begun", "shard done", "merged"}


class Lines(ABC):
    """Lines on standard error about jobs: at what happens, and ever more rarely in between."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self._last = jobs.clock()
        self._looked_at: Job | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="progress", daemon=True)

    def __enter__(self) -> None:
        """Begin to look how jobs come along."""
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        """Look no more."""
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(_LOOK):
            with self.jobs.lock:
                now, job = self.jobs.clock(), self.jobs.latest
                if job is None or job.ended is not None or job.elapsed(now) < _SHORT:
                    self._last = now
                elif job.current is not None and (
                    job is not self._looked_at
                    or now - self._last >= max(_LEAST, _SHARE * job.elapsed(now))
                ):
                    self._last, self._looked_at = now, job
                    self.progress(job, job.current, now)

    @abstractmethod
    def told(self, event: Event) -> None:
        """Say what happened, as far as it is worth a line; `jobs` has heard it already."""

    @abstractmethod
    def progress(self, job: Job, reading: Pass, now: float) -> None:
        """Say how a job comes along."""


class PlainLines(Lines):
    """Lines for people who read the log of a batch job; nothing about what is over at once."""

    def told(self, event: Event) -> None:
        """Say what ended, and what was found."""
        with self.jobs.lock:
            now, job = self.jobs.clock(), self.jobs.job_of(event)
            if job is None or job.elapsed(now) < _SHORT:
                return
            reading = job.current
            match event["kind"]:
                case "resumed":
                    self._say(job, f"{event['rows']:,} rows found in the checkpoint")
                case "pass ended" if reading and event["error"] is None:
                    if reading.elapsed(now) >= _SHORT:
                        took = job_text.duration(reading.elapsed(now))
                        self._say(job, f"{reading.label} done in {took}", *_details(reading, now))
                case "solved":
                    self._say(job, job_text.solution_of(event))
                case "job ended":
                    took, error = job_text.duration(job.elapsed(now)), event["error"]
                    self._say(job, f"ended after {took}: {error}" if error else f"done in {took}")

    def progress(self, job: Job, reading: Pass, now: float) -> None:
        """Say how far it is, how fast, and how long it will take."""
        young = job.dashboard and job.elapsed(now) < _LEAST
        where = f"dashboard {job.dashboard}" if young else ""
        if reading.ended is not None:
            self._say(job, f"{job.phase}, {job_text.duration(job.elapsed(now))} so far", where)
            return
        left = job_text.duration(reading.seconds_left(now))
        self._say(
            job,
            f"{reading.label} {job_text.share(reading):.0%}, {left} left",
            *_details(reading, now),
            job_text.memory_of(job, reading),
            where,
        )

    def _say(self, job: Job, *parts: str) -> None:
        said = "; ".join(filter(None, parts))
        write(printable(f"{datetime.now():%H:%M:%S} {job.name}: {said}"))


def _details(reading: Pass, now: float) -> list[str]:
    return [
        job_text.rows_of(reading),
        job_text.rates_of(reading, now),
        job_text.times_of(reading),
        job_text.shards_of(reading),
        job_text.validation_of(reading),
    ]


def write_event(kind: str, facts: dict[str, Any]) -> None:
    """Write a JSON object of what happened when."""
    when = datetime.now().astimezone().isoformat(timespec="milliseconds")
    write(json_text({"time": when, "event": kind, **facts}))


def write(line: str) -> None:
    """Write one line, whole."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


class JsonLines(Lines):
    """A JSON object a line: every event but those of single shards, and how jobs come along."""

    def told(self, event: Event) -> None:
        """Write an event as it is, with the time and the name of its job."""
        if event["kind"] not in _PLENTIFUL:
            with self.jobs.lock:
                job = self.jobs.job_of(event)
            facts = {key: value for key, value in event.items() if key not in ("kind", "name")}
            write_event(event["kind"], {"name": job.name if job else None} | facts)

    def progress(self, job: Job, reading: Pass, now: float) -> None:
        """Write the figures of the pass under way."""
        write_event("progress", {"name": job.name, "job": job.number} | reading.figures(now))
