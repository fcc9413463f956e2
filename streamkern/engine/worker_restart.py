"""Local workers that are gone for good are started anew.

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


class Revival:
    """Sees to it that a cluster has the workers that it is meant to have.

    Parameters
    ----------
    cluster : LocalCluster
        That runs already, of a fixed number of workers.
    """

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        self._missing: dict[object, float] = {}

    def begin(self) -> None:
        """Look from now on until the cluster closes."""
        # Those that a cluster knows of end with it.
        callback = PeriodicCallback(self.look, _LOOK)
        self.cluster.periodic_callbacks["revival"] = callback
        self.cluster.loop.add_callback(callback.start)

    async def look(self) -> None:
        """Start the workers anew that have been missing for too long."""
        cluster, now = self.cluster, time.monotonic()
        present = {worker["name"] for worker in cluster.scheduler_info["workers"].values()}
        absent = set(cluster.worker_spec) - present
        self._missing = {name: self._missing.get(name, now) for name in absent}
        gone = [name for name, since in self._missing.items() if now - since > _PATIENCE]
        for name in gone:
            del self._missing[name]
            nanny = cluster.workers.pop(name, None)
            if nanny is not None:
                with suppress(Exception):  # it has given up already
                    await nanny.close()
        if gone:
            with suppress(Exception):  # what dies once more is missing again
                await cluster
