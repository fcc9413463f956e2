"""What the scheduler does for those who watch: it listens, and has a page and metrics.

`connect` brings it to the schedulers that it starts or reaches.  By hand::

    dask scheduler --preload streamkern.monitor.plugin
    client.register_plugin(streamkern.monitor.plugin.Watch())
"""

from __future__ import annotations

import importlib.util
import time
from pickle import dumps
from typing import TYPE_CHECKING, Any

from distributed import SchedulerPlugin, WorkerPlugin

from streamkern.monitor.jobs import Jobs
from streamkern.observing import TOPIC

if TYPE_CHECKING:
    from streamkern.observing import Event


class Watch(SchedulerPlugin):  # type: ignore[misc]
    """Hears of jobs on a scheduler, and shows them on its dashboard and in its metrics."""

    name = "streamkern"
    idempotent = True

    async def start(self, scheduler: Any) -> None:
        """Begin to listen, with what was told before; add the page, and metrics everywhere."""
        self.jobs = Jobs()
        for when, event in scheduler.get_events(TOPIC):
            self.jobs.hear(event, ago=max(time.time() - when, 0.0))
        if _is_there("bokeh"):
            from streamkern.monitor.page import add_page  # noqa: PLC0415  bokeh takes long

            add_page(scheduler, self.jobs)
        if _is_there("prometheus_client"):
            from streamkern.monitor.metrics import JobsCollector, exposed  # noqa: PLC0415

            exposed(JobsCollector(self.jobs))
        await scheduler.register_worker_plugin(
            None, dumps(WorkerMetrics()), WorkerMetrics.name, idempotent=True
        )

    def log_event(self, topic: str, msg: Event) -> None:
        """Hear one event."""
        if topic == TOPIC:
            self.jobs.hear(msg)

    def remove_worker(
        self,
        scheduler: Any,  # noqa: ARG002  Dask's signature
        worker: str,
        *,
        stimulus_id: str,  # noqa: ARG002
        **_: Any,
    ) -> None:
        """Hear that a worker is gone."""
        self.jobs.worker_lost(worker)


class WorkerMetrics(WorkerPlugin):  # type: ignore[misc]
    """Adds what a worker process did for passes to its metrics."""

    name = "streamkern"
    idempotent = True

    def setup(self, worker: Any) -> None:  # noqa: ARG002  Dask's signature
        """Begin."""
        if _is_there("prometheus_client"):
            from streamkern.monitor.metrics import ProcessCollector, exposed  # noqa: PLC0415

            exposed(ProcessCollector())


def _is_there(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


async def dask_setup(scheduler: Any) -> None:
    """Add the plugin to a scheduler that preloads this module."""
    await scheduler.register_scheduler_plugin(Watch(), name=Watch.name, idempotent=True)
