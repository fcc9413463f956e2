"""Progress of jobs on standard error: live on a terminal, plain in a log, JSON for programs."""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from streamkern.errors.checks import check_choice
from streamkern.errors.formatting import json_text, printable
from streamkern.monitor import job_text
from streamkern.monitor.jobs import SHORT, Job, Jobs
from streamkern.runtime.events import Event, observed

if TYPE_CHECKING:
    from streamkern.monitor.passes import Pass
    from streamkern.monitor.terminal import LiveLines

STYLES = ("auto", "live", "plain", "json")
# Seconds between two lines at least, and as a share of what a job has taken: so ten hours give
# about as many more lines as ten minutes gave.
_LEAST, _SHARE = 10.0, 1 / 30
_LOOK = 1.0
# Events that come by the thousand, or say nothing on their own.
_PLENTIFUL = {"shard begun", "rows read", "shard done", "merged"}


@contextmanager
def progress(style: str = "auto") -> Iterator[None]:
    """Show how every fit, prediction and other job inside comes along.

    That is on standard error.  Jobs and passes that are over within a second are not mentioned.

    Parameters
    ----------
    style : {'auto', 'live', 'plain', 'json'}
        'live' lines and bars are written anew while a job runs; 'plain' lines are added every ten
        seconds, and more rarely later; 'json' is one object a line, for programs.  'auto' is 'live'
        on a terminal, else 'plain', in notebooks too.

    Raises
    ------
    ParameterError
        If there is no such style.

    Examples
    --------
    >>> import numpy as np, streamkern
    >>> X, y = np.random.default_rng(0).random((1000, 3)), np.arange(1000.0)
    >>> with streamkern.progress():
    ...     model = streamkern.RandomFeatureRidge(n_components=64).fit(X, y)
    """
    check_choice("style", style, STYLES)
    if style == "auto":
        style = "live" if sys.stderr.isatty() else "plain"
    view: LiveLines | Lines
    if style == "live":
        from streamkern.monitor.terminal import LiveLines  # noqa: PLC0415  rich takes long

        view = LiveLines(Jobs())
    else:
        view = JsonLines(Jobs()) if style == "json" else PlainLines(Jobs())

    def hear(event: Event) -> None:
        view.jobs.hear(event)
        view.told(event)

    with view, observed(hear):
        yield


class Lines(ABC):
    """Lines on standard error about jobs: at what happens, and ever more rarely in between."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self._last = jobs.clock()
        self._looked_at: Job | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="progress", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(_LOOK):
            with self.jobs.lock:
                now, job = self.jobs.clock(), self.jobs.latest
                if job is None or job.ended is not None or job.is_short(now):
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
        with self.jobs.lock:
            now, job = self.jobs.clock(), self.jobs.job_of(event)
            if job is None or job.is_short(now):
                return
            reading = job.current
            match event["kind"]:
                case "resumed":
                    self._say(job, f"{event['rows']:,} rows found in the checkpoint")
                case "pass ended" if reading and event["error"] is None:
                    if reading.elapsed(now) >= SHORT:
                        took = job_text.duration(reading.elapsed(now))
                        known = job_text.details(job, reading, now) | {"memory": ""}
                        self._say(job, f"{reading.label} done in {took}", *known.values())
                case "tried":
                    self._say(job, *job_text.trial_of(job, event, now))
                case "solved":
                    self._say(job, job_text.solution_of(event))
                case "job ended":
                    took, error = job_text.duration(job.elapsed(now)), event["error"]
                    self._say(job, f"ended after {took}: {error}" if error else f"done in {took}")

    def progress(self, job: Job, reading: Pass, now: float) -> None:
        young = job.dashboard and job.elapsed(now) < _LEAST
        where = f"dashboard {job.dashboard}" if young else ""
        if reading.ended is not None:
            self._say(job, f"{job.phase}, {job_text.duration(job.elapsed(now))} so far", where)
            return
        left = job_text.duration(reading.seconds_left(now))
        known = job_text.details(job, reading, now).values()
        self._say(job, f"{reading.label} {reading.share:.0%}, {left} left", *known, where)

    def _say(self, job: Job, *parts: str) -> None:
        said = "; ".join(filter(None, parts))
        _write(printable(f"{datetime.now():%H:%M:%S} {job.name}: {said}"))


class JsonLines(Lines):
    """A JSON object a line: every event but those of single shards, and how jobs come along."""

    def told(self, event: Event) -> None:
        if event["kind"] not in _PLENTIFUL:
            with self.jobs.lock:
                job = self.jobs.job_of(event)
            facts = {key: value for key, value in event.items() if key not in ("kind", "name")}
            write_event(event["kind"], {"name": job.name if job else None} | facts)

    def progress(self, job: Job, reading: Pass, now: float) -> None:
        of_job = {"name": job.name, "job": job.number, "job_left": job.seconds_left(now)}
        write_event("progress", of_job | reading.figures(now))


def write_event(kind: str, facts: dict[str, Any]) -> None:
    when = datetime.now().astimezone().isoformat(timespec="milliseconds")
    _write(json_text({"time": when, "event": kind, **facts}))


def _write(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
