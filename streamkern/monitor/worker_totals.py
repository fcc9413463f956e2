"""Prometheus series of a worker process: rows, shards and seconds of its tasks since it began."""

from __future__ import annotations

import importlib.util
import os
import threading
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

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

        from streamkern.monitor.metrics import TotalsCollector  # noqa: PLC0415

        REGISTRY.register(TotalsCollector(_copied))


def _copied() -> dict[str, float]:
    with _lock:
        return dict(_totals)
