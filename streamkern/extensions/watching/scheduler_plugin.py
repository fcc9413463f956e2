"""The plugin of the scheduler: it listens to events, and has a dashboard page.

`connect` brings it to the schedulers that it starts or reaches.  By hand::

    dask scheduler --preload streamkern.extensions.watching.scheduler_plugin
    client.register_plugin(streamkern.extensions.watching.scheduler_plugin.Watch())
"""

import importlib.util
import logging
import time
from functools import partial
from typing import Any

from distributed import SchedulerPlugin
from tornado.ioloop import PeriodicCallback

from streamkern.extensions.watching.watched_jobs import WatchedJobs
from streamkern.runtime.events import TOPIC, Event

logger = logging.getLogger(__name__)
_LOOK_MS = 1000


class Watch(SchedulerPlugin):  # type: ignore[misc]
    """Hears of jobs on a scheduler, and shows them on its dashboard."""

    name = "streamkern"
    idempotent = True
    jobs: WatchedJobs | None = None
    looking: Any = None

    async def start(self, scheduler: Any) -> None:
        # Nothing here waits, so that nothing is told in between, and no other one begins.
        if self.jobs is not None:  # a scheduler that starts does so for the second time
            return
        jobs = self.jobs = WatchedJobs()
        for when, event in scheduler.get_events(TOPIC):
            self._hear(event, ago=max(time.time() - when, 0.0))
        self.looking = PeriodicCallback(partial(_look, jobs, scheduler), _LOOK_MS)
        self.looking.start()
        if importlib.util.find_spec("bokeh") is not None:
            try:
                from streamkern.extensions.watching.dashboard_page import add_page

                add_page(scheduler, jobs)
            except Exception:
                logger.warning("streamkern does without its dashboard page", exc_info=True)

    async def close(self) -> None:
        if self.looking is not None:
            self.looking.stop()

    def log_event(self, topic: str, msg: Event) -> None:
        if topic == TOPIC:
            self._hear(msg)

    def _hear(self, event: Event, ago: float = 0.0) -> None:
        if self.jobs is None:
            return
        try:
            self.jobs.hear(event, ago)
        except (KeyError, TypeError, ValueError, AttributeError):  # malformed, or another version
            logger.debug("not understood: %r", event, exc_info=True)

    def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:
        for number in [] if self.jobs is None else self.jobs.passes_under_way():
            scheduler.log_event(TOPIC, {"kind": "worker lost", "pass": number, "worker": worker})

    def remove_client(self, scheduler: Any, client: str) -> None:  # noqa: ARG002  Dask's signature
        if self.jobs is not None:
            self.jobs.client_lost(client)


def _look(jobs: WatchedJobs, scheduler: Any) -> None:
    workers = scheduler.workers.values()
    jobs.hear_memory({w.address: w.metrics.get("memory", 0) for w in workers})


async def dask_setup(scheduler: Any) -> None:
    """Add the plugin to a scheduler that preloads this module."""
    await scheduler.register_scheduler_plugin(Watch(), name=Watch.name, idempotent=True)
