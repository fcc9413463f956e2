"""Lifetime of workers: those of adaptive clusters stay at work, local ones that are lost come back.

Dask takes idle workers of an adaptive cluster away.  While sums are merged most workers are idle,
and hold sums that would gather on the others, where no plan foresaw them.  Dask's nanny gives up a
worker that died while it was being started, had been asked to leave, or lost its scheduler.
"""

import time
from contextlib import suppress
from typing import Any

from distributed import LocalCluster, Scheduler, SchedulerPlugin
from distributed.scheduler import WorkerState
from tornado.ioloop import PeriodicCallback

# Milliseconds between two looks, and seconds that a nanny has to bring its worker back.
_LOOK, _PATIENCE = 1000.0, 10.0


class WorkersAtWork(SchedulerPlugin):  # type: ignore[misc]
    """Keeps workers that compute, or hold what others wait for, as long as a client is there.

    Tasks that only prefer a worker do not wait for it to come back.
    """

    idempotent = True

    def __init__(self, client: str) -> None:
        self.client = client
        self.name = f"streamkern-workers-at-work-{client}"

    def valid_workers_downscaling(
        self,
        scheduler: Scheduler,  # noqa: ARG002  as schedulers call it
        workers: list[WorkerState],
    ) -> list[WorkerState]:
        return [
            worker
            for worker in workers
            if not worker.processing and not any(task.waiters for task in worker.has_what)
        ]

    async def start(self, scheduler: Scheduler) -> None:
        self.tasks = scheduler.tasks

    def transition(self, key: str, start: str, finish: str, *args: Any, **how: Any) -> None:  # noqa: ARG002
        """Let tasks that found no worker go to any: Dask has them wait for the one they prefer."""
        if finish == "no-worker" and self.tasks[key].loose_restrictions:
            self.tasks[key].worker_restrictions = set()

    def remove_client(self, scheduler: Scheduler, client: str) -> None:
        if client == self.client:
            scheduler.remove_plugin(self.name)


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
