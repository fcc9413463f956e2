"""The frame of every task on a shard: it reads ahead, takes a slot, measures, and tells."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from streamkern.engine.compute_slots import ComputeSlots, to_the_last
from streamkern.monitor.worker_totals import add_to_totals, expose_totals
from streamkern.runtime.events import tell_from_task
from streamkern.runtime.memory import peak_bytes
from streamkern.runtime.resources import current_worker, metered
from streamkern.runtime.threads import blas_threads
from streamkern.runtime.timing import timed_each, timing
from streamkern.sources import reading_ahead

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streamkern.runtime.scratch import Scratch
    from streamkern.sources import Block, Reader, Shard, Source
    from streamkern.statistics import Work

# Activities of the thread that reads ahead, beside the one that computes.
_BESIDE = ("reading", "decoding")


def pass_facts(source: Source, shards: Sequence[Shard], work: Work | None = None) -> dict[str, Any]:
    """Return what is told of a pass when it begins."""
    return {
        "rows": source.n_samples,
        "row_bytes": source.row_bytes,
        "shards": len(shards),
        "row_flops": work.flops_per_row if work else 0.0,
    }


@contextmanager
def at_shard(
    number: str,
    shard: Shard,
    reader: Reader,
    block_rows: int,
    slots: ComputeSlots,
    *,
    threads: int = 1,
    work: Work | None = None,
) -> Iterator[tuple[Iterator[Block], Scratch]]:
    """Give the blocks of a shard, and memory to work in; tell of it to the pass of a number."""
    if current_worker() is not None:
        expose_totals()
    tell_from_task(number, "shard begun", shard=shard.index)
    try:
        with (
            timing() as seconds,
            blas_threads(threads),
            reading_ahead(reader.blocks(block_rows)) as blocks,
            slots.taken() as scratch,
        ):
            attainable = work.attainable(threads) if work else 0.0
            begun = time.perf_counter()
            yield timed_each("waiting", to_the_last(blocks, shard.n_rows, number)), scratch
            elapsed = time.perf_counter() - begun
    except Exception:
        tell_from_task(number, "shard failed", shard=shard.index)
        raise
    beside = {name: seconds.pop(name) for name in _BESIDE if name in seconds}
    seconds["other"] = elapsed - sum(seconds.values())
    metered(seconds)
    add_to_totals({**seconds, **beside, "rows": shard.n_rows, "shards": 1})
    tell_from_task(
        number,
        "shard done",
        shard=shard.index,
        rows=shard.n_rows,
        elapsed=elapsed,
        seconds={**seconds, **beside},
        peak_bytes=peak_bytes(),
        attainable=attainable * slots.here,
    )
