"""Prometheus series of a worker process: rows, shards and seconds of its tasks since it began."""

from __future__ import annotations

import importlib.util
import os
import threading
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prometheus_client.core import Metric

_totals: Counter[str] = Counter()
_lock = threading.RLock()
# A child must not be forked while another thread holds it.
os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)
_is_exposed = threading.Event()


def add_to_totals(amounts: Mapping[str, float]) -> None:
    """Add rows, shards, and seconds by activity."""
    with _lock:
        _totals.update(amounts)


def expose_totals() -> None:
    """Have this process expose its totals, once, where the package for it is installed."""
    with _lock:
        if _is_exposed.is_set():
            return
        _is_exposed.set()
    if importlib.util.find_spec("prometheus_client") is not None:
        from prometheus_client import REGISTRY  # noqa: PLC0415  where it is installed

        REGISTRY.register(_Totals())


class _Totals:
    """Collects the totals of this process for Prometheus."""

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily  # noqa: PLC0415

        with _lock:
            totals = dict(_totals)
        for name, text in (("rows", "Rows that were read"), ("shards", "Shards that were done")):
            amount = totals.pop(name, 0)
            yield CounterMetricFamily(f"streamkern_worker_{name}", text, value=amount)
        seconds = CounterMetricFamily(
            "streamkern_worker_activity_seconds",
            "Time of threads, by activity",
            labels=["activity"],
            unit="seconds",
        )
        for activity, amount in sorted(totals.items()):
            seconds.add_metric([activity], amount)
        yield seconds
