"""Where tasks run: a distributed client if there is one, else this process."""

from __future__ import annotations

import sys
import time
import uuid
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import dask
from dask import delayed
from dask.base import named_schedulers
from dask.delayed import Delayed
from dask.utils import parse_timedelta
from tlz import partition_all

from streamkern.errors import ClusterError, WorkersLostError
from streamkern.memory import available_bytes
from streamkern.threads import blas_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_NO_WORKERS, _NO_WORKERS_DEFAULT = "distributed.scheduler.no-workers-timeout", "5 minutes"
_SPAN = {"name": ("streamkern",), "ids": (str(uuid.uuid4()),)}
# Clients whose schedulers were told to leave workers alone that are at work.
_known: WeakSet[Any] = WeakSet()
# Seconds between two looks at whether there are workers.
_LOOK = 2.0
_LOST = "the cluster lost its workers or its scheduler; check that they run, and start again."


@dataclass(frozen=True)
class Resources:
    """What the current scheduler offers.

    Parameters
    ----------
    n_workers : int
        Worker processes; 0 where tasks run in this process.
    n_threads : int
        Tasks that one process runs at a time.
    worker_bytes : int
        Memory that one process may use.
    """

    n_workers: int
    n_threads: int
    worker_bytes: int


def current_resources() -> Resources:
    """Say what the current scheduler offers, as a plan needs to know it."""
    client = current_client()
    if client is None:
        return Resources(0, local_threads(), available_bytes())
    with _reaching():
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
    if not workers:
        return Resources(1, 1, available_bytes())
    limits = [worker["memory_limit"] or available_bytes() for worker in workers]
    return Resources(len(workers), max(worker["nthreads"] for worker in workers), min(limits))


def current_client() -> Any:
    """Return the distributed client that `dask.compute` would use now, or None."""
    if "distributed" not in sys.modules:
        return None  # Dask would import it to find out, which takes longer than a small fit
    owner = getattr(dask.base.get_scheduler(), "__self__", None)
    return owner if hasattr(owner, "scheduler_info") else None


def current_worker() -> Any:
    """Return the Dask worker that runs the present task, or None where none does."""
    if "distributed.worker" in sys.modules:
        from distributed import get_worker  # noqa: PLC0415  only where it is imported already

        with suppress(ValueError):
            return get_worker()
    return None


def metered(seconds: dict[str, float]) -> None:
    """Have Dask count the seconds that a task was at something, for its fine performance metrics.

    They are parts of the time that the task takes; Dask says of the rest that it is neither.
    """
    if current_worker() is not None:
        from distributed.metrics import context_meter  # noqa: PLC0415  where a worker is

        for activity, each in seconds.items():
            context_meter.digest_metric(activity, each, "seconds")


def _local_scheduler() -> Any:
    chosen = dask.config.get("scheduler", None) or "threads"
    return named_schedulers.get(chosen, chosen) if isinstance(chosen, str) else chosen


def local_threads() -> int:
    """Return how many tasks run at a time where there is no client."""
    if _local_scheduler() is dask.local.get_sync:
        return 1
    return int(dask.config.get("num_workers", None) or dask.system.CPU_COUNT)


def run(
    root: Any, n_threads: int | None = None, *, check: Callable[[], object] | None = None
) -> Any:
    """Return the value of a Dask task, or raise what it raised.

    Parameters
    ----------
    root : task
    n_threads : int, optional
        Tasks that run at a time, where they run on threads of this process.
    check : callable, optional
        Is called every few seconds while workers run it; what it raises ends the wait.
    """
    client = current_client()
    if client is None:
        _check_local(root)
        threads = {"num_workers": n_threads} if n_threads else {}
        return dask.compute(root, scheduler=_local_scheduler(), **threads)[0]
    future = _submitted(client, root)
    try:
        return _result(future, check)
    finally:
        future.cancel()


def _check_local(root: Any) -> None:
    """Raise ClusterError if a task needs what a client held, and there is no client."""
    if "distributed" in sys.modules and is_task(root):
        from distributed.client import futures_of  # noqa: PLC0415  where a client was

        if futures_of(root):
            raise ClusterError(
                "what this needs was left on the workers of a cluster that is gone; keep the "
                "client open until the end, or take `moments.gathered()` while it is."
            )


def run_all(tasks: Sequence[Any], n_threads: int | None = None) -> list[Any]:
    """Return the values of Dask tasks that may run side by side."""
    values: list[Any] = run(task(_listed, *tasks, name="gather"), n_threads)
    return values


def _listed(*values: Any) -> list[Any]:
    return list(values)


def task(function: Callable[..., Any], *arguments: Any, name: str) -> Any:
    """Return a Dask task of a function, with BLAS held to one thread while it runs.

    Parameters
    ----------
    function : callable
    *arguments : object
        Values, and tasks whose values are meant.
    name : str
        What the dashboard calls it.
    """
    run_alone = delayed(_alone, traverse=False)
    return run_alone(function, *arguments, dask_key_name=f"{name}-{uuid.uuid4().hex}")


def is_task(value: Any) -> bool:
    """Say whether a value is a task, or stands for itself."""
    return isinstance(value, Delayed)


def _alone(function: Callable[..., Any], *arguments: Any) -> Any:
    with blas_threads(1):
        return function(*arguments)


def shared(value: Any) -> Any:
    """Return a value as an argument for many tasks: sent once, where tasks run elsewhere.

    It is on two workers, if there are so many, because nobody could make it again.
    """
    client = current_client()
    if client is None:
        return value
    with _reaching():
        sent = client.scatter(value, hash=False)
        client.replicate([sent], n=2)
    return sent


@contextmanager
def _reaching() -> Iterator[None]:
    """Say in one sentence that the scheduler does not answer."""
    try:
        yield
    except OSError as error:
        raise ClusterError(_LOST) from error


def kept(root: Any, n_threads: int | None = None) -> Any:
    """Start a task whose value stays where it is made, as long as the returned task is held."""
    client = current_client()
    if client is None:
        _check_local(root)
        threads = {"num_workers": n_threads} if n_threads else {}
        return dask.persist(root, scheduler=_local_scheduler(), **threads)[0]
    with _submitting(client):
        return client.persist(root)


def _submitted(client: Any, root: Any) -> Any:
    """Return the future of a task that a client sends."""
    with _submitting(client):
        return client.compute(root)


@contextmanager
def _submitting(client: Any) -> Iterator[None]:
    """Hold to what graphs of this package need while they are sent."""
    if client not in _known:
        from streamkern.downscaling import WorkersAtWork  # noqa: PLC0415  where a client is

        client.register_plugin(WorkersAtWork(client.id))
        _known.add(client)
    with (
        # It is one node, the map, that is large, and no reason for a warning.
        dask.config.set({"distributed.admin.large-graph-warning-threshold": "4GB"}),
        # Of every span Dask keeps measures for ever; without one, of ours or the caller's, it makes
        # some a pass.
        dask.annotate(span=dask.get_annotations().get("span", _SPAN)),
    ):
        yield


def _result(future: Any, check: Callable[[], object] | None = None) -> Any:
    from distributed import CancelledError, KilledWorker  # noqa: PLC0415  where a client is
    from distributed.scheduler import NoValidWorkerError, NoWorkerError  # noqa: PLC0415

    try:
        return _patiently(future, check)
    except KilledWorker as error:
        times = error.allowed_failures + 1
        tasks = str(error.task), *_given_up(future.client, times)
        raise WorkersLostError(tasks, times) from error
    except (NoWorkerError, NoValidWorkerError, CancelledError) as error:
        raise ClusterError(_LOST) from error


def _given_up(client: Any, times: int) -> list[str]:
    """Return the tasks at which workers died so often: the one to blame, and those beside it."""

    def found(dask_scheduler: Any) -> list[str]:
        tasks = dask_scheduler.tasks.values()
        return [str(each.key) for each in tasks if each.suspicious >= times]

    with suppress(Exception):  # where the scheduler is gone too
        return list(client.run_on_scheduler(found))
    return []


def _patiently(future: Any, check: Callable[[], object] | None = None) -> Any:
    """Return the value of a future, unless there are no workers for too long."""
    patience = parse_timedelta(dask.config.get(_NO_WORKERS, None) or _NO_WORKERS_DEFAULT)
    last_seen = time.monotonic()
    while True:
        try:
            return future.result(timeout=_LOOK)
        except TimeoutError:
            if future.done():  # by now, or with an error of this kind
                return future.result()
        if check is not None:
            check()
        with _reaching():
            n_threads = future.client.nthreads()
        if n_threads:
            last_seen = time.monotonic()
        elif time.monotonic() - last_seen > patience:
            raise ClusterError(
                f"the cluster has had no workers for {patience:.3g} s; start some, and run this "
                f"again, or set {_NO_WORKERS} in the Dask configuration to wait longer."
            )


def stream(tasks: Iterator[Any]) -> Iterator[Any]:
    """Yield the results of tasks in order, with no more under way than keep everyone busy.

    On threads and workers, tasks go on while whoever asks works with a result.
    """
    client = current_client()
    if client is not None:
        with _reaching():
            window = 2 * max(sum(client.nthreads().values()), 1)
        yield from _in_window(tasks, window, partial(_submitted, client), _result, client.cancel)
        return
    scheduler, n_threads = _local_scheduler(), local_threads()
    if scheduler is not named_schedulers.get("threads"):
        for batch in partition_all(n_threads, tasks):
            yield from dask.compute(*batch, scheduler=scheduler)
        return
    with ThreadPoolExecutor(n_threads + 1, "stream") as pool:  # one more reads

        def begin(task: Any) -> Future[Any]:
            return pool.submit(copy_context().run, _computed, task)

        def cancel(pending: list[Future[Any]]) -> None:
            for future in pending:
                future.cancel()

        yield from _in_window(tasks, n_threads + 2, begin, Future.result, cancel)


def _computed(task: Any) -> Any:
    """Return the value of a task, worked out by the thread that calls this."""
    # Dask's callbacks belong to the process: threads that lay them aside would mix them up.
    return dask.compute(task, scheduler=dask.local.get_sync, callbacks=())[0]


def _in_window(
    tasks: Iterator[Any],
    window: int,
    begin: Callable[[Any], Any],
    result: Callable[[Any], Any],
    cancel: Callable[[list[Any]], object],
) -> Iterator[Any]:
    """Yield the results of tasks in order, with `window` of them begun and not yet yielded."""
    pending: deque[Any] = deque()
    try:
        for task in tasks:
            pending.append(begin(task))
            if len(pending) >= window:
                yield result(pending.popleft())
        while pending:
            yield result(pending.popleft())
    finally:
        cancel(list(pending))
