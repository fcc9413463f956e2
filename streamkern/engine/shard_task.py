"""Tasks on shards: they read ahead, take a compute slot, measure, and tell; and maps of shards.

A process reads for more shards than it has cores to compute on.  A task that begins its last block
lets the worker begin the next one, which reads its first block and then waits for a slot.  So
neither slow storage nor the way to the scheduler keeps a core idle.
"""

from __future__ import annotations

import threading
import time
import uuid
from contextlib import contextmanager
from itertools import pairwise
from queue import LifoQueue
from typing import TYPE_CHECKING, Any

from dask import delayed

from streamkern.engine.scheduler import is_task, kept, stream
from streamkern.monitor.metrics import add_to_totals, expose_totals
from streamkern.runtime.events import passing, tell_from_task
from streamkern.runtime.memory import peak_bytes
from streamkern.runtime.resources import current_worker, local_threads, metered
from streamkern.runtime.scratch import Scratch, aligned
from streamkern.runtime.signals import stopping
from streamkern.runtime.threads import blas_threads
from streamkern.runtime.timing import timed_each, timing
from streamkern.sources import Block, Reader, Shard, Source, reading_ahead
from streamkern.sources.base import naming_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from streamkern.statistics import Work

# Activities of the thread that reads ahead, beside the one that computes.
_BESIDE = ("reading", "decoding")


class ComputeSlots:
    """Places to compute at, each with its working memory, in every process that a pass runs in.

    A node of the graph of the pass: tasks in one process share one object, a copy that is sent to
    another process begins empty there, and Dask frees the memory when the last task has had it.
    A worker has as many as threads, a process that runs its own tasks `n_slots`.
    """

    def __init__(self, n_slots: int) -> None:
        self.n_slots = n_slots
        self._lock = threading.Lock()
        self._free: LifoQueue[Scratch] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return ComputeSlots, (self.n_slots,)

    @property
    def here(self) -> int:
        worker = current_worker()
        return self.n_slots if worker is None else int(worker.state.nthreads)

    @contextmanager
    def taken(self) -> Iterator[Scratch]:
        with self._lock:
            if self._free is None:
                self._free = LifoQueue()
                for _ in range(self.here):
                    self._free.put(Scratch())
        scratch = self._free.get()
        try:
            yield scratch
        finally:
            self._free.put(scratch)


def pass_facts(source: Source, shards: Sequence[Shard], work: Work | None = None) -> dict[str, Any]:
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
            yield timed_each("waiting", _to_the_last(blocks, shard.n_rows, number)), scratch
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


def _to_the_last(blocks: Iterable[Block], n_rows: int, job: str) -> Iterator[Block]:
    """Yield blocks of so many rows; with the last, the worker may begin another task.

    Where tasks run on threads of one process there is a thread more than slots instead.
    """
    done = 0
    for block in blocks:
        if stopping.is_set():
            raise KeyboardInterrupt
        done += len(block)
        worker = current_worker() if done == n_rows else None
        # A whole pass may run inside somebody else's task, which goes on for long after this.
        if worker is not None and job in str(worker.get_current_task()):
            from distributed import secede  # noqa: PLC0415  where a worker is

            secede()
        yield block


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
    slots, applying = sent(ComputeSlots(local_threads()), "slots"), delayed(_apply, traverse=False)

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
