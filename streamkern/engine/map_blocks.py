"""Maps over the rows, shard by shard and in order, with few shards under way at a time."""

from __future__ import annotations

import uuid
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dask import delayed

from streamkern.engine.scheduler import is_task, kept, stream
from streamkern.engine.shard_task import ComputeSlots, at_shard, pass_facts
from streamkern.runtime.events import passing
from streamkern.runtime.resources import local_threads
from streamkern.runtime.scratch import aligned
from streamkern.sources import Shard
from streamkern.sources.base import naming_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from streamkern.runtime.scratch import Scratch
    from streamkern.sources import Block, Reader, Source


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
    sent: Any = function
    if not is_task(function):  # once, and not with every task
        sent = kept(delayed(function, traverse=False, name=f"function-{label}-{job}"))
    slots = ComputeSlots(local_threads())
    slots = kept(delayed(slots, traverse=False, name=f"slots-{label}-{job}"))
    applying = delayed(_apply, traverse=False)

    def task_of(shard: Shard) -> Any:
        reader, key = source.reader(shard), f"{label}-{job}-{shard.index}"
        return applying(sent, reader, shard, (block_rows, job), slots, dask_key_name=key)

    with passing(job, label, **pass_facts(source, shards)):
        results = stream(map(task_of, shards))
        for shard in shards:
            with naming_rows(source, shards, f"{label}-{job}"):
                result = next(results)
            yield shard, result
    source.check_unchanged()


def _cut_up(shards: Iterable[Shard], most_rows: int) -> tuple[Shard, ...]:
    """Return the same rows in shards of no more than `most_rows`, parts of one about equal."""
    cut: list[Shard] = []
    for shard in shards:
        n_parts = -(-shard.n_rows // most_rows)
        cuts = [shard.start + part * shard.n_rows // n_parts for part in range(n_parts + 1)]
        cut += [Shard(len(cut) + i, *ends) for i, ends in enumerate(pairwise(cuts))]
    return tuple(cut)


def _apply(
    function: Callable[[Iterator[Block], int, Scratch], Any],
    reader: Reader,
    shard: Shard,
    options: tuple[int, str],
    slots: ComputeSlots,
) -> Any:
    block_rows, job = options
    with at_shard(job, shard, reader, block_rows, slots) as (blocks, scratch):
        return aligned(function)(blocks, shard.n_rows, scratch)
