"""Running tasks: on a distributed client if there is one, else in this process."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
import time
import uuid
from collections import deque
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

import dask
import dask.threaded
from dask import delayed
from dask.base import named_schedulers
from dask.delayed import Delayed
from dask.utils import parse_timedelta
from tlz import partition_all

from streamkern.engine.heartbeat import heartbeat_of
from streamkern.errors import ClusterError, WorkersLostError
from streamkern.runtime.aligned_arrays import aligned
from streamkern.runtime.resources import (
    LOST,
    check_installed,
    current_client,
    local_scheduler,
    local_threads,
    reaching,
)
from streamkern.runtime.threads import blas_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_NO_WORKERS, _NO_WORKERS_DEFAULT = "distributed.scheduler.no-workers-timeout", "5 minutes"
_SPAN = {"name": ("streamkern",), "ids": (str(uuid.uuid4()),)}
# Clients whose schedulers were told to leave workers alone that are at work.
_known: WeakSet[Any] = WeakSet()
# What was sent to workers, by the futures that stand for it, to be sent again if they die.
_sent: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
# How often something is sent before the cluster counts as lost.
_MOST_SENT = 10
# Seconds between two looks at whether there are workers, and before something is sent again.
_LOOK, _AGAIN = 2.0, 0.5
# Seconds that workers have to say whether they have this package.
_ASK = 10.0


def _begin_anew() -> None:
    """Leave to a parent its pools and clients, whose threads a child that was forked has not."""
    dask.threaded.default_pool = None
    dask.threaded.pools.clear()
    dask.threaded.pools_lock = threading.Lock()
    if "distributed.client" in sys.modules:
        from distributed.client import Client, _current_client  # noqa: PLC0415  where it is used

        _current_client.set(None)
        for client in list(Client._instances):  # noqa: SLF001
            client.status = "closed"
        if dask.config.get("scheduler", None) == "dask.distributed":
            dask.config.config["scheduler"] = None  # without the lock that `set` takes


os.register_at_fork(after_in_child=_begin_anew)


class _ForgottenError(ClusterError):
    """The scheduler has dropped a task, with what it needs or itself."""


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
        return dask.compute(root, scheduler=local_scheduler(), **threads)[0]
    heartbeat = heartbeat_of(client)
    heartbeat.n_waiting += 1
    try:
        for _ in range(_MOST_SENT):
            future = _submitted(client, root)
            try:
                return aligned(_result(future, check))
            except _ForgottenError:
                if not _sent_again(client, root):
                    raise
            finally:
                with suppress(Exception):  # of a client that is closed
                    future.cancel()
    except KeyboardInterrupt:
        heartbeat.is_left = True
        raise
    finally:
        heartbeat.n_waiting -= 1
    raise ClusterError(LOST)


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
        return function(*aligned(arguments))


def shared(value: Any) -> Any:
    """Return a value as an argument for many tasks: sent once, where tasks run elsewhere.

    It is on two workers, if there are so many; if both die, `run` sends it again for a task that
    takes it as an argument.
    """
    client = current_client()
    if client is None:
        return value
    sent = _scattered(client, f"{type(value).__name__}-{uuid.uuid4().hex}", value)
    _sent[sent] = value
    return sent


def _scattered(client: Any, key: str, value: Any) -> Any:
    """Return the future of a value on two workers, whichever die while it is sent."""
    for _ in range(_MOST_SENT):
        _await_workers(client)
        with suppress(OSError, KeyError, ValueError):  # because a worker has died
            sent = client.scatter({key: value})[key]
            client.replicate([sent], n=2)
            return sent
        time.sleep(_AGAIN)
    raise ClusterError(LOST)


def _sent_again(client: Any, root: Any) -> bool:
    """Send what a task needs and no worker has any more; say whether there was something."""
    needed = {key for node in root.dask.values() for key in getattr(node, "dependencies", ())}
    lost = [each for each in list(_sent) if each.key in needed and not _is_held(each)]
    for future in lost:
        _scattered(client, future.key, _sent[future])
    return bool(lost)


def _is_held(future: Any) -> bool:
    with reaching(), suppress(CancelledError):
        return any(future.client.who_has([future]).values())
    return False


def kept(root: Any, n_threads: int | None = None) -> Any:
    """Start a task whose value stays where it is made, as long as the returned task is held."""
    client = current_client()
    if client is None:
        _check_local(root)
        threads = {"num_workers": n_threads} if n_threads else {}
        return dask.persist(root, scheduler=local_scheduler(), **threads)[0]
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
        from streamkern.engine.adaptive_workers import WorkersAtWork  # noqa: PLC0415  where a client is

        with reaching():
            client.register_plugin(WorkersAtWork(client.id))
            _check_workers(client)
        _known.add(client)
    with (
        reaching(),
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
        found = client.sync(client._run, is_missing, on_error="ignore", callback_timeout=_ASK)  # noqa: SLF001
        for worker in (worker for worker, missing in found.items() if missing):
            check_installed(ImportError(f"no streamkern at {worker}"))


def _result(future: Any, check: Callable[[], object] | None = None) -> Any:
    from distributed import KilledWorker  # noqa: PLC0415  where a client is
    from distributed.scheduler import NoValidWorkerError, NoWorkerError  # noqa: PLC0415

    try:
        return _patiently(future, check)
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
        raise _ForgottenError(LOST) from error
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


def _patiently(future: Any, check: Callable[[], object] | None = None) -> Any:
    """Return the value of a future, unless there are no workers for too long."""
    patience = _Patience(future.client)
    while True:
        try:
            return future.result(timeout=_LOOK)
        except TimeoutError:
            if future.done():  # by now, or with an error of this kind
                return future.result()
        if check is not None:
            check()
        patience.look()


class _Patience:
    """How long a cluster may be without workers."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.seconds = parse_timedelta(dask.config.get(_NO_WORKERS, None) or _NO_WORKERS_DEFAULT)
        self.last_seen = time.monotonic()

    def look(self) -> bool:
        """Say whether there are workers, or raise ClusterError if there were none for too long."""
        with reaching():
            n_threads = self.client.nthreads()
        if n_threads:
            self.last_seen = time.monotonic()
        elif time.monotonic() - self.last_seen > self.seconds:
            raise ClusterError(
                f"the cluster has had no workers for {self.seconds:.3g} s; start some, and run "
                f"this again, or set {_NO_WORKERS} in the Dask configuration to wait longer."
            )
        return bool(n_threads)


def _await_workers(client: Any) -> None:
    patience = _Patience(client)
    while not patience.look():
        time.sleep(_AGAIN)


def stream(tasks: Iterator[Any]) -> Iterator[Any]:
    """Yield the results of tasks in order, with no more under way than keep everyone busy.

    On threads and workers, tasks go on while whoever asks works with a result.
    """
    client = current_client()
    if client is not None:
        with reaching():
            window = 2 * max(sum(client.nthreads().values()), 1)
        yield from _in_window(tasks, window, partial(_submitted, client), _result, client.cancel)
        return
    scheduler, n_threads = local_scheduler(), local_threads()
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
