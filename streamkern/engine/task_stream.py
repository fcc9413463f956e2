"""Streams of tasks, such as those of a source's shards: results in order, few tasks at a time."""

import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from itertools import pairwise
from typing import Any

import dask
from dask import delayed
from dask.base import named_schedulers
from tlz import partition_all

from streamkern.engine.partials import both
from streamkern.engine.scheduler import is_delayed, persist, result_of, submitted
from streamkern.engine.shard_task import ComputeSlots, apply_to_shard, pass_facts
from streamkern.runtime.events import passing
from streamkern.runtime.resources import current_client, local_scheduler, local_threads, reaching
from streamkern.runtime.scratch import Scratch
from streamkern.sources import Block, Shard, Source
from streamkern.sources.base import naming_rows


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


def map_shards(
    source: Source,
    function: Callable[[Iterator[Block], int, Scratch], Any],
    *,
    shard_rows: int,
    block_rows: int,
    label: str,
    most_rows: int | None = None,
) -> Iterator[tuple[Shard, Any]]:
    """Yield every shard with what `function` makes of its rows, in order, few at a time."""
    job = uuid.uuid4().hex
    shards = source.shards(shard_rows)
    if most_rows is not None and not source.loads_whole_shards:
        shards = _cut_up(shards, most_rows)

    def sent(value: Any, name: str) -> Any:  # once, and not with every task
        return persist(delayed(value, traverse=False, name=f"{name}-{label}-{job}"))

    applied = function if is_delayed(function) else sent(function, "function")
    slots = sent(ComputeSlots(local_threads()), "slots")
    applying = delayed(apply_to_shard, traverse=False)

    def task_of(shard: Shard) -> Any:
        reader, key = source.reader(shard), f"{label}-{job}-{shard.index}"
        return applying(applied, reader, shard, (block_rows, job), slots, dask_key_name=key)

    noted: Any = None
    with passing(job, label, **pass_facts(source, shards)):
        results = stream(map(task_of, shards))
        for shard in shards:
            with naming_rows(source, shards, f"{label}-{job}"):
                result, more = next(results)
            noted = both(noted, more)
            yield shard, result
    source.take_note(noted or {})
    source.check_unchanged()


def _cut_up(shards: Iterable[Shard], most_rows: int) -> tuple[Shard, ...]:
    """Return the same rows in shards of no more than `most_rows`, parts of one about equal."""
    cut: list[Shard] = []
    for shard in shards:
        n_parts = -(-shard.n_rows // most_rows)
        cuts = [shard.start + part * shard.n_rows // n_parts for part in range(n_parts + 1)]
        cut += [Shard(len(cut) + i, *ends) for i, ends in enumerate(pairwise(cuts))]
    return tuple(cut)
