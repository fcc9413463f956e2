"""A stream of tasks: their results in order, with no more under way than keep everyone busy."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

import dask
from dask.base import named_schedulers
from tlz import partition_all

from streamkern.engine.futures import result_of, submitted
from streamkern.runtime.resources import (
    current_client,
    local_scheduler,
    local_threads,
    reaching,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def stream(tasks: Iterator[Any]) -> Iterator[Any]:
    """Yield the results of tasks in order, with no more under way than keep everyone busy."""
    client = current_client()
    if client is not None:
        with reaching(client):
            window = 2 * max(sum(client.nthreads().values()), 1)
        yield from _in_window(tasks, window, partial(submitted, client), result_of, client.cancel)
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
