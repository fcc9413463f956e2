"""Prometheus series: of the jobs that a scheduler hears of, and of a worker's tasks."""

import importlib.util
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from streamkern.monitor.jobs import Jobs

Value = Callable[[Any, float], float | None]

# `job` is Prometheus' own.
_LABELS = ["id", "name"]
_PASS_LABELS = [*_LABELS, "pass", "number"]
_STATES = ("waiting", "running", "done", "resumed", "retried", "failed")
# Name, unit, help, and value of a job or pass now.
_JOBS: list[tuple[str, str, str, Value]] = [
    ("job_running", "", "1 while the job runs, 0 after", lambda job, _: job.ended is None),
    ("job_failed", "", "1 if the job ended with an error", lambda job, _: bool(job.error)),
    ("job_elapsed", "seconds", "How long the job has taken", lambda job, now: job.elapsed(now)),
    ("job_planned_worker_memory", "bytes", "Plan of a worker", lambda job, _: job.worker_bytes),
]
_PASSES: list[tuple[str, str, str, Value]] = [
    ("pass_rows", "", "Rows that the pass reads", lambda each, _: each.n_rows),
    ("pass_rows_done", "", "Rows that are done", lambda each, _: each.rows_done),
    ("pass_read", "bytes", "Inputs read", lambda each, _: each.rows_read * each.row_bytes),
    ("pass_left", "seconds", "Estimate of the time left", lambda each, now: each.seconds_left(now)),
    ("pass_peak_memory", "bytes", "The largest process", lambda each, _: each.peak_bytes()),
    ("pass_flops_per_second", "", "FLOP/s of products of features", lambda p, now: p.speed(now)),
    (
        "pass_attainable_flops_per_second",
        "",
        "FLOP/s that products alone attain on the processes that took part",
        lambda each, _: each.attainable(),
    ),
    (
        "pass_validation_rmse",
        "",
        "RMSE on new rows, in units of y, of a model of at most 512 leading features",
        lambda each, _: each.validation[-1][1] if each.validation else None,
    ),
]
_totals: Counter[str] = Counter()
_lock = threading.RLock()
# A child must not be forked while another thread holds it.
os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)


def prometheus() -> Any:
    """Return Prometheus' client, which only those who expose something import, or None."""
    if importlib.util.find_spec("prometheus_client") is None:
        return None
    from prometheus_client import core  # noqa: PLC0415

    return core


def register(collector: Any) -> bool:
    """Expose a collector, unless there is no client, or this process exposes its series already."""
    if client := prometheus():
        with suppress(ValueError):
            client.REGISTRY.register(collector)
            return True
    return False


def add_to_totals(amounts: Mapping[str, float]) -> None:
    with _lock:
        _totals.update(amounts)


@cache
def expose_totals() -> None:
    """Have this process expose its totals, once."""
    register(TotalsCollector())


class JobsCollector:
    """Collects the figures of every job that is kept, by its number and name."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs

    def collect(self) -> Iterator[Any]:
        with self.jobs.lock:
            now = self.jobs.clock()
            jobs = [([job.number, job.name], job) for job in self.jobs]
            passes = [
                ([*labels, reading.label, str(i)], reading)
                for labels, job in jobs
                for i, reading in enumerate(job.passes.values(), start=1)
            ]
            yield from _gauges(_JOBS, _LABELS, jobs, now)
            yield from _gauges(_PASSES, _PASS_LABELS, passes, now)
            labels, text = [*_PASS_LABELS, "state"], "Shards by state"
            shards = prometheus().GaugeMetricFamily("streamkern_pass_shards", text, labels=labels)
            seconds = _activities("pass", _PASS_LABELS)
            for labels, reading in passes:
                for state in _STATES:
                    shards.add_metric([*labels, state], reading.shards()[state])
                for activity, amount in sorted(reading.seconds.items()):
                    seconds.add_metric([*labels, activity], amount)
            yield from (shards, seconds)


def _gauges(
    table: list[tuple[str, str, str, Value]],
    labels: list[str],
    labelled: list[tuple[list[str], Any]],
    now: float,
) -> Iterator[Any]:
    for name, unit, text, value in table:
        family = prometheus().GaugeMetricFamily(f"streamkern_{name}", text, None, labels, unit)
        for of, each in labelled:
            if (found := value(each, now)) is not None:
                family.add_metric(of, float(found))
        yield family


class TotalsCollector:
    """Collects rows, shards and seconds of the tasks of this process since it began."""

    def collect(self) -> Iterator[Any]:
        with _lock:
            totals = dict(_totals)
        for name, text in (("rows", "Rows that were read"), ("shards", "Shards that were done")):
            amount = totals.pop(name, 0)
            yield prometheus().CounterMetricFamily(f"streamkern_worker_{name}", text, value=amount)
        seconds = _activities("worker", [])
        for activity, amount in sorted(totals.items()):
            seconds.add_metric([activity], amount)
        yield seconds


def _activities(of: str, labels: list[str]) -> Any:
    """Return a family of seconds by activity, without samples."""
    labels, text = [*labels, "activity"], "Time of threads, by activity"
    name = f"streamkern_{of}_activity"
    return prometheus().CounterMetricFamily(name, text, labels=labels, unit="seconds")
