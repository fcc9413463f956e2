"""Dask tasks: on a distributed client if there is one, else in this process."""

import os
import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import dask
import dask.threaded
from dask.delayed import Delayed

from streamkern.engine.futures import ForgottenError, Patience, result_of, submitted, submitting
from streamkern.engine.heartbeat import heartbeat_of
from streamkern.errors import ClusterError
from streamkern.runtime.private_names import forget_current_client, instances_of
from streamkern.runtime.resources import LOST, current_client, local_scheduler, reaching
from streamkern.runtime.scratch import aligned
from streamkern.runtime.threads import blas_threads

# What was sent to workers, by the futures that stand for it, to be sent again if they die.
_sent: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
# How often something is sent before the cluster counts as lost, and seconds in between.
_MOST_SENT, _AGAIN = 10, 0.5


def _begin_anew() -> None:
    """Leave to a parent its pools and clients, whose threads a child that was forked has not."""
    dask.threaded.default_pool = None
    dask.threaded.pools.clear()
    dask.threaded.pools_lock = threading.Lock()
    if "distributed.client" in sys.modules:
        from distributed import Client  # noqa: PLC0415  where it is used

        forget_current_client()
        for client in instances_of(Client):
            client.status = "closed"
        if dask.config.get("scheduler", None) == "dask.distributed":
            dask.config.config["scheduler"] = None  # without the lock that `set` takes


os.register_at_fork(after_in_child=_begin_anew)


def delayed(function: Callable[..., Any], *arguments: Any, name: str) -> Any:
    """Return a Dask task of a function, for which BLAS has one thread; the dashboard has `name`."""
    run_alone = dask.delayed(_alone, traverse=False)
    return run_alone(function, *arguments, dask_key_name=f"{name}-{uuid.uuid4().hex}")


def is_delayed(value: Any) -> bool:
    return isinstance(value, Delayed)


def _alone(function: Callable[..., Any], *arguments: Any) -> Any:
    with blas_threads(1):
        return function(*aligned(arguments))


def compute(
    root: Any, n_threads: int | None = None, *, check: Callable[[], Any] | None = None
) -> Any:
    """Return the value of a task, or raise what it raises, or `check`, called now and then."""
    client = current_client()
    if client is None:
        return _locally(dask.compute, root, n_threads)
    heartbeat = heartbeat_of(client)
    heartbeat.n_waiting += 1
    try:
        for _ in range(_MOST_SENT):
            future = submitted(client, root)
            try:
                return aligned(result_of(future, check))
            except ForgottenError:
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

    It is on two workers, if there are so many; if both die, `compute` sends it again for a task
    that takes it as an argument.  A task, or None, is returned as it is.
    """
    client = current_client()
    if client is None or value is None or is_delayed(value):
        return value
    sent = _scattered(client, f"{type(value).__name__}-{uuid.uuid4().hex}", value)
    _sent[sent] = value
    return sent


def _scattered(client: Any, key: str, value: Any) -> Any:
    """Return the future of a value on two workers, whichever die while it is sent."""
    for _ in range(_MOST_SENT):
        patience = Patience(client)
        while not patience.look():
            time.sleep(_AGAIN)
        with suppress(OSError, KeyError, ValueError):  # because a worker has died
            sent = client.scatter({key: value})[key]
            client.replicate([sent], n=2)
            return sent
        time.sleep(_AGAIN)
    raise ClusterError(LOST)


def _sent_again(client: Any, root: Any) -> bool:
    """Send what a task needs and no worker has any more; say whether there was something."""
    needed = {key for node in root.dask.values() for key in getattr(node, "dependencies", ())}
    lost = []
    for future in [each for each in list(_sent) if each.key in needed]:
        with reaching(client), suppress(CancelledError):
            if any(client.who_has([future]).values()):
                continue
        lost.append(future)
    for future in lost:
        _scattered(client, future.key, _sent[future])
    return bool(lost)
