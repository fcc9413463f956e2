"""Futures of tasks that a client sends: what they need on the workers, and how long to wait."""

import importlib.util
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakSet

import dask

from streamkern.engine.heartbeat import heartbeat_of
from streamkern.errors import ClusterError, WorkersLostError
from streamkern.runtime.private_names import asked_of_workers
from streamkern.runtime.resources import LOST, check_installed, configured_seconds, reaching

NO_WORKERS, _NO_WORKERS_DEFAULT = "distributed.scheduler.no-workers-timeout", "5 minutes"
_SPAN = {"name": ("streamkern",), "ids": (str(uuid.uuid4()),)}
# Clients whose schedulers were told to leave workers alone that are at work.
_known: WeakSet[Any] = WeakSet()
# Seconds between two looks at whether there are workers, and that workers have to say whether they
# have this package.
_LOOK, _ASK = 2.0, 10.0


class ForgottenError(ClusterError):
    """The scheduler has dropped a task, with what it needs or itself."""


@contextmanager
def submitting(client: Any) -> Iterator[None]:
    """Hold to what graphs of this package need while they are sent."""
    if client not in _known:
        from streamkern.engine.worker_lifetime import WorkersAtWork  # noqa: PLC0415  imports Dask's

        with reaching(client):
            client.register_plugin(WorkersAtWork(client.id))
            _check_workers(client)
        _known.add(client)
    with (
        reaching(client),
        # It is one node, the map, that is large, and no reason for a warning.
        dask.config.set({"distributed.admin.large-graph-warning-threshold": "4GB"}),
        # Of every span Dask keeps measures for ever; without one, of ours or the caller's, it makes
        # some a pass.
        dask.annotate(span=dask.get_annotations().get("span", _SPAN)),
    ):
        yield


def _check_workers(client: Any) -> None:
    """Raise ClusterError if a worker has not this package, since it would end at the first task."""

    def is_missing() -> bool:
        return importlib.util.find_spec("streamkern") is None

    with suppress(TimeoutError):  # of workers that stand still
        found = asked_of_workers(client, is_missing, _ASK)
        for worker in (worker for worker, missing in found.items() if missing):
            check_installed(ImportError(f"no streamkern at {worker}"))


def submitted(client: Any, root: Any) -> Any:
    with submitting(client):
        return client.compute(root)


def result_of(future: Any, check: Callable[[], object] | None = None) -> Any:
    """Return the value of a future, or raise what it raised, or why there will be none."""
    from distributed import KilledWorker  # noqa: PLC0415  where a client is
    from distributed.scheduler import NoValidWorkerError, NoWorkerError  # noqa: PLC0415

    try:
        return _awaited(future, check)
    except KilledWorker as error:
        times = error.allowed_failures + 1
        tasks = str(error.task), *_given_up(future.client, times)
        raise WorkersLostError(tasks, times) from error
    except ImportError as error:
        check_installed(error)
        raise
    except (CancelledError, ClusterError) as error:
        given_up = heartbeat_of(future.client).given_up
        if given_up is not None:
            raise ClusterError(given_up) from error
        if isinstance(error, ClusterError):
            raise
        raise ForgottenError(LOST) from error
    except (NoWorkerError, NoValidWorkerError) as error:
        raise ClusterError(LOST) from error


def _given_up(client: Any, times: int) -> list[str]:
    """Return the tasks at which workers died so often: the one to blame, and those beside it."""

    def found(dask_scheduler: Any) -> list[str]:
        tasks = dask_scheduler.tasks.values()
        return [str(each.key) for each in tasks if each.suspicious >= times]

    with suppress(Exception):  # where the scheduler is gone too
        return list(client.run_on_scheduler(found))
    return []


def _awaited(future: Any, check: Callable[[], object] | None = None) -> Any:
    """Return the value of a future, unless there are no workers for too long."""
    patience = Patience(future.client)
    while True:
        try:
            return future.result(timeout=_LOOK)
        except TimeoutError:
            if future.done():  # by now, or with an error of this kind
                return future.result()
        if check is not None:
            check()
        patience.look()


class Patience:
    """How long a cluster may be without workers."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.seconds = configured_seconds(NO_WORKERS, _NO_WORKERS_DEFAULT)
        self.last_seen = time.monotonic()

    def look(self) -> bool:
        """Say whether there are workers, or raise ClusterError if there were none for too long."""
        with reaching(self.client):
            n_threads = self.client.nthreads()
        if n_threads:
            self.last_seen = time.monotonic()
        elif time.monotonic() - self.last_seen > self.seconds:
            raise ClusterError(
                f"the cluster has had no workers for {self.seconds:.3g} s; start some, and run "
                f"this again, or set {NO_WORKERS} in the Dask configuration to wait longer."
            )
        return bool(n_threads)
