"""What the tasks of a worker process did since it began, and its series for Prometheus."""

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
# Whether this process was asked to expose them.
_asked = threading.Event()


def add_to_totals(amounts: Mapping[str, float]) -> None:
    """Add rows, shards, and seconds by activity."""
    with _lock:
        _totals.update(amounts)


def totals() -> dict[str, float]:
    """Return all that was added in this process."""
    with _lock:
        return dict(_totals)


def expose_totals() -> None:
    """Have this process expose its totals, once, where the package for it is installed."""
    with _lock:
        if _asked.is_set():
            return
        _asked.set()
    if importlib.util.find_spec("prometheus_client") is not None:
        from prometheus_client import REGISTRY  # noqa: PLC0415  where it is installed

        from streamkern.monitor.worker_series import TotalsCollector  # noqa: PLC0415

        REGISTRY.register(TotalsCollector())
