"""The map over shards: what a function makes of the rows of each, in order, few at a time."""

from __future__ import annotations

import uuid
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dask import delayed

from streamkern.engine.scheduler import is_task, kept
from streamkern.engine.shard_task import ComputeSlots, apply_to_shard, pass_facts
from streamkern.engine.task_stream import stream
from streamkern.runtime.events import passing
from streamkern.runtime.resources import local_threads
from streamkern.sources import Block, Shard, Source
from streamkern.sources.base import naming_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from streamkern.runtime.scratch import Scratch


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
        return kept(delayed(value, traverse=False, name=f"{name}-{label}-{job}"))

    applied = function if is_task(function) else sent(function, "function")
    slots = sent(ComputeSlots(local_threads()), "slots")
    applying = delayed(apply_to_shard, traverse=False)

    def task_of(shard: Shard) -> Any:
        reader, key = source.reader(shard), f"{label}-{job}-{shard.index}"
        return applying(applied, reader, shard, (block_rows, job), slots, dask_key_name=key)

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
