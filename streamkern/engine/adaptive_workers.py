"""Adaptive clusters: workers at work stay, whatever Dask thinks that it needs.

Dask takes workers away that are idle, after moving what they hold to the others.  While sums are
merged most workers are idle, and hold sums that wait for those of another shard: all of these would
gather where no plan foresaw them.  And a worker that is idle at one look may be busy when it is
closed, so that its task begins anew elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributed import SchedulerPlugin

if TYPE_CHECKING:
    from distributed import Scheduler
    from distributed.scheduler import WorkerState


class WorkersAtWork(SchedulerPlugin):  # type: ignore[misc]
    """Keeps workers that compute, or hold what others wait for, as long as a client is there."""

    idempotent = True

    def __init__(self, client: str) -> None:
        self.client = client
        self.name = f"streamkern-workers-at-work-{client}"

    def valid_workers_downscaling(
        self,
        scheduler: Scheduler,  # noqa: ARG002  as schedulers call it
        workers: list[WorkerState],
    ) -> list[WorkerState]:
        """Return the workers that may be closed."""
        return [worker for worker in workers if not _at_work(worker)]

    def remove_client(self, scheduler: Scheduler, client: str) -> None:
        """Go with the client."""
        if client == self.client:
            scheduler.remove_plugin(self.name)


def _at_work(worker: WorkerState) -> bool:
    return bool(worker.processing) or any(task.waiters for task in worker.has_what)
