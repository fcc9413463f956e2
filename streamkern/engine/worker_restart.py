"""Restart of local workers that are gone for good.

Dask's nanny starts a worker again that died at work.  It gives up when the worker died while it was
being started, when it had been asked to leave, or when it lost its scheduler.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from tornado.ioloop import PeriodicCallback

if TYPE_CHECKING:
    from distributed import LocalCluster

# Milliseconds between two looks, and seconds that a nanny has to bring its worker back.
_LOOK, _PATIENCE = 1000.0, 10.0


def restart_missing_workers(cluster: LocalCluster) -> None:
    """Look until a cluster closes whether it has the fixed number of workers that it should."""
    since: dict[object, float] = {}

    async def look() -> None:
        now = time.monotonic()
        present = {worker["name"] for worker in cluster.scheduler_info["workers"].values()}
        for name in since.keys() & present:
            del since[name]
        for name in set(cluster.worker_spec) - present:
            since.setdefault(name, now)
        gone = [name for name, begun in since.items() if now - begun > _PATIENCE]
        for name in gone:
            del since[name]
            nanny = cluster.workers.pop(name, None)
            if nanny is not None:
                with suppress(Exception):  # it has given up already
                    await nanny.close()
        if gone:
            with suppress(Exception):  # what dies once more is missing again
                await cluster

    callback = PeriodicCallback(look, _LOOK)
    cluster.periodic_callbacks["revival"] = callback  # which end with the cluster
    cluster.loop.add_callback(callback.start)
