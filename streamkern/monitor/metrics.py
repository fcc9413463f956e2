"""The series of the jobs that a scheduler hears of.

References
----------
Prometheus, "Metric and label naming", https://prometheus.io/docs/practices/naming/
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streamkern.monitor.jobs import Job, Jobs
    from streamkern.monitor.passes import Pass

# `job` is Prometheus' own.
_LABELS = ("id", "name")
_STATES = ("waiting", "running", "done", "resumed", "retried", "failed")


class JobsCollector(Collector):
    """The jobs that a scheduler hears of.

    Parameters
    ----------
    jobs : Jobs
    """

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs

    def collect(self) -> Iterator[Metric]:
        """Yield the figures of every job that is kept, by its number and name."""
        with self.jobs.lock:
            now = self.jobs.clock()
            yield from self._of_jobs(now)
            yield from self._of_passes(now)

    def _of_jobs(self, now: float) -> Iterator[Metric]:
        facts: list[tuple[str, str, str, Callable[[Job], float]]] = [
            ("job_running", "1 while the job runs, 0 after", "", lambda job: job.ended is None),
            ("job_failed", "1 if the job ended with an error", "", lambda job: bool(job.error)),
            ("job_elapsed", "How long the job has taken", "seconds", lambda job: job.elapsed(now)),
            (
                "job_planned_worker_memory",
                "What the plan projects for a worker",
                "bytes",
                lambda job: job.worker_bytes,
            ),
        ]
        for name, text, unit, value in facts:
            family = GaugeMetricFamily(_named(name, unit), text, labels=_LABELS, unit=unit)
            for job in self.jobs:
                family.add_metric([job.number, job.name], float(value(job)))
            yield family

    def _of_passes(self, now: float) -> Iterator[Metric]:
        labels = [*_LABELS, "pass", "number"]
        facts: list[tuple[str, str, str, Callable[[Pass], float | None]]] = [
            ("pass_rows", "Rows that the pass reads", "", lambda each: each.n_rows),
            ("pass_rows_done", "Rows that are done", "", lambda each: each.rows_done),
            ("pass_read", "Inputs read", "bytes", lambda each: each.rows_read * each.row_bytes),
            ("pass_left", "Estimate of the time left", "seconds", lambda p: p.seconds_left(now)),
            (
                "pass_flops_per_second",
                "Operations of products of features a second",
                "",
                lambda each: each.speed(now),
            ),
            (
                "pass_attainable_flops_per_second",
                "What products alone attain on the processes that took part",
                "",
                lambda each: each.attainable(),
            ),
            ("pass_peak_memory", "The largest process", "bytes", lambda p: p.peak_bytes()),
            (
                "pass_validation_rmse",
                "RMSE on new rows, in units of y, of a model of at most 512 leading features",
                "",
                lambda each: each.validation[-1][1] if each.validation else None,
            ),
        ]
        for name, text, unit, value in facts:
            family = GaugeMetricFamily(_named(name, unit), text, labels=labels, unit=unit)
            for of, reading in self._passes():
                found = value(reading)
                if found is not None:
                    family.add_metric(of, found)
            yield family
        shards = GaugeMetricFamily(
            "streamkern_pass_shards", "Shards by state", labels=[*labels, "state"]
        )
        seconds = CounterMetricFamily(
            "streamkern_pass_activity_seconds",
            "Time of threads, by what they were at",
            labels=[*labels, "activity"],
            unit="seconds",
        )
        for of, reading in self._passes():
            states = reading.shards() | {"retried": reading.retried}
            for state in _STATES:
                shards.add_metric([*of, state], states[state])
            for activity, each in sorted(reading.seconds.items()):
                seconds.add_metric([*of, activity], each)
        yield shards
        yield seconds

    def _passes(self) -> Iterator[tuple[list[str], Pass]]:
        """Yield the labels of every pass, and the pass."""
        for job in self.jobs:
            for i, reading in enumerate(job.passes.values(), start=1):
                yield [job.number, job.name, reading.label, str(i)], reading


def _named(name: str, unit: str) -> str:
    return f"streamkern_{name}_{unit}" if unit else f"streamkern_{name}"
