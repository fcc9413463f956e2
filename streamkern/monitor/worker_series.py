"""The series of a worker process.

References
----------
Prometheus, "Metric and label naming", https://prometheus.io/docs/practices/naming/
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from streamkern.monitor.worker_totals import totals

if TYPE_CHECKING:
    from collections.abc import Iterator


class TotalsCollector(Collector):
    """What the tasks of this process did, since it began."""

    def collect(self) -> Iterator[Metric]:
        """Yield the totals."""
        amounts = totals()
        for name, text in (("rows", "Rows that were read"), ("shards", "Shards that were done")):
            amount = amounts.pop(name, 0)
            yield CounterMetricFamily(f"streamkern_worker_{name}", text, value=amount)
        seconds = CounterMetricFamily(
            "streamkern_worker_activity_seconds",
            "Time of threads, by what they were at",
            labels=["activity"],
            unit="seconds",
        )
        for activity, each in sorted(amounts.items()):
            seconds.add_metric([activity], each)
        yield seconds
