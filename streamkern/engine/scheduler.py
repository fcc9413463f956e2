"""Dask tasks: on a distributed client if there is one, else in this process."""

import importlib.util
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakSet

import dask
from dask.delayed import Delayed

from streamkern.errors import ClusterError, WorkersLostError
from streamkern.runtime.resources import (
    LOST,
    check_installed,
    configured_seconds,
    current_client,
    local_scheduler,
    reaching,
)
from streamkern.runtime.scratch import aligned
from streamkern.runtime.threads import blas_threads

NO_WORKERS, _NO_WORKERS_DEFAULT = "distributed.scheduler.no-workers-timeout", "5 minutes"
_SPAN = {"name": ("streamkern",), "ids": (str(uuid.uuid4()),)}
# Clients whose workers were asked whether they have this package.
_checked: WeakSet[Any] = WeakSet()
# Seconds between two looks at whether there are workers.
_LOOK = 2.0


def delayed(function: Callable[..., Any], *arguments: Any, name: str) -> Any:
    """Return a Dask task of a function, for which BLAS has one thread; the dashboard has `name`."""
    run_alone = dask.delayed(_alone, traverse=False)
    return run_alone(function, *arguments, dask_key_name=f"{name}-{uuid.uuid4().hex}")


def is_delayed(value: Any) -> bool:
    return isinstance(value, Delayed)


def _alone(function: Callable[..., Any], *arguments: Any) -> Any:
    with blas_threads(1):
        return function(*aligned(arguments))


def compute(root: Any, n_threads: int | None = None) -> Any:
    """Return the value of a task, or raise what it raises."""
    client = current_client()
    if client is None:
        return _locally(dask.compute, root, n_threads)
    future = submitted(client, root)
    try:
        return aligned(result_of(future))
    finally:
        with suppress(Exception):  # of a client that is closed
            future.release()


def persist(root: Any, n_threads: int | None = None) -> Any:
    """Start a task whose value stays where it is made, as long as the returned task is held."""
    client = current_client()
    if client is None:
        return _locally(dask.persist, root, n_threads)
    with submitting(client):
        return client.persist(root)


def _locally(made_by: Callable[..., Any], root: Any, n_threads: int | None) -> Any:
    """Compute or persist a task in this process, unless it needs what a client held."""
    if "distributed" in sys.modules and is_delayed(root):
        from distributed.client import futures_of  # noqa: PLC0415  where a client was

        if futures_of(root):
            raise ClusterError(
                "what this needs was left on the workers of a cluster that is gone; keep the "
                "client open until the end, or take `moments.gathered()` while it is."
            )
    threads = {"num_workers": n_threads} if n_threads else {}
    return made_by(root, scheduler=local_scheduler(), **threads)[0]


def compute_all(tasks: Sequence[Any], n_threads: int | None = None) -> list[Any]:
    return list(compute(delayed(_together, *tasks, name="gather"), n_threads))


def _together(*values: Any) -> tuple[Any, ...]:
    return values


def scatter(value: Any) -> Any:
    """Return a value as an argument for many tasks: sent once, where tasks run elsewhere.

    The scheduler keeps it, and gives it to another worker if those die that have it.  A task, or
    None, is returned as it is.
    """
    if current_client() is None or value is None or is_delayed(value):
        return value
    name = f"{type(value).__name__}-{uuid.uuid4().hex}"
    return persist(dask.delayed(value, traverse=False, name=name))


@contextmanager
def submitting(client: Any) -> Iterator[None]:
    """Hold to what graphs of this package need while they are sent."""
    if client not in _checked:
        with reaching(client):
            _check_workers(client)
        _checked.add(client)
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

    found = client.run(is_missing, on_error="ignore")
    for worker in (worker for worker, missing in found.items() if missing):
        check_installed(ImportError(f"no streamkern at {worker}"))


def submitted(client: Any, root: Any) -> Any:
    with submitting(client):
        return client.compute(root)


def result_of(future: Any) -> Any:
    """Return the value of a future, or raise what it raised, or why there will be none."""
    from distributed import KilledWorker  # noqa: PLC0415  where a client is
    from distributed.scheduler import NoValidWorkerError, NoWorkerError  # noqa: PLC0415

    try:
        return _awaited(future)
    except KilledWorker as error:
        times = error.allowed_failures + 1
        tasks = str(error.task), *_given_up(future.client, times)
        raise WorkersLostError(tasks, times) from error
    except (ImportError, RuntimeError) as error:
        check_installed(error.__cause__ or error)
        raise
    except (CancelledError, NoWorkerError, NoValidWorkerError) as error:
        raise ClusterError(LOST) from error


def _given_up(client: Any, times: int) -> list[str]:
    """Return the tasks at which workers died so often: the one to blame, and those beside it."""

    def found(dask_scheduler: Any) -> list[str]:
        tasks = dask_scheduler.tasks.values()
        return [str(each.key) for each in tasks if each.suspicious >= times]

    with suppress(Exception):  # where the scheduler is gone too
        return list(client.run_on_scheduler(found))
    return []


def _awaited(future: Any) -> Any:
    """Return the value of a future, unless there are no workers for too long."""
    patience, last_seen = configured_seconds(NO_WORKERS, _NO_WORKERS_DEFAULT), time.monotonic()
    while True:
        try:
            return future.result(timeout=_LOOK)
        except (TimeoutError, UnboundLocalError):
            # The latter is of distributed's own, where its wait is cancelled as the time runs out.
            if future.done():  # by now, or with an error of this kind
                return future.result()
        with reaching(future.client):
            some = future.client.scheduler_info(n_workers=1)
        if some.get("workers"):
            last_seen = time.monotonic()
        elif time.monotonic() - last_seen > patience:
            raise ClusterError(
                f"the cluster has had no workers for {patience:.3g} s; start some, and run this "
                f"again, or set {NO_WORKERS} in the Dask configuration to wait longer."
            )
