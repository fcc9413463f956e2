"""Tasks on shards, which are what workers are sent: they read ahead, compute in a slot, and tell.

A process reads for more shards than it has cores to compute on.  A task that begins its last block
lets the worker begin the next one, which reads its first block and then waits for a slot.  So
neither slow storage nor the way to the scheduler keeps a core idle.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from queue import LifoQueue
from typing import Any

from streamkern.engine.partials import SAVED, Assignment, Partial
from streamkern.runtime.events import tell_from_task
from streamkern.runtime.memory import peak_bytes
from streamkern.runtime.resources import current_worker, metered
from streamkern.runtime.scratch import Scratch, aligned
from streamkern.runtime.stopping import stopping
from streamkern.runtime.threads import blas_threads
from streamkern.runtime.timing import timed_each, timing
from streamkern.sources import Block, Reader, Shard, Source, reading_ahead
from streamkern.sources.base import in_full_blocks
from streamkern.sources.nonfinite_rows import finite_rows
from streamkern.statistics import Statistic, Work

# Activities of the thread that reads ahead, beside the one that computes.
_BESIDE = ("reading", "decoding")
# Seconds between two events that say how far a shard is.
_TELLING = 15.0


class ComputeSlots:
    """Places to compute at, each with its working memory, in every process that a pass runs in.

    Part of a node of the graph of the pass: tasks in one process share one object, a copy that is
    sent to another process begins empty there, and Dask frees the memory when the last task has
    had it.
    A worker has as many as threads, a process that runs its own tasks `n_slots`.
    """

    def __init__(self, n_slots: int) -> None:
        self.n_slots = n_slots
        self._lock = threading.Lock()
        # By worker, of which a process may have several.
        self._free: dict[str, LifoQueue[Scratch]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return ComputeSlots, (self.n_slots,)

    @property
    def here(self) -> int:
        worker = current_worker()
        return self.n_slots if worker is None else int(worker.state.nthreads)

    @contextmanager
    def taken(self) -> Iterator[Scratch]:
        worker = current_worker()
        where = "" if worker is None else worker.address
        with self._lock:
            if where not in self._free:
                self._free[where] = LifoQueue()
                for _ in range(self.here):
                    self._free[where].put(Scratch())
        scratch = self._free[where].get()
        try:
            yield scratch
        finally:
            self._free[where].put(scratch)


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
    tell_from_task(number, "shard begun", shard=shard.index)
    try:
        with (
            timing() as seconds,
            blas_threads(threads),
            reading_ahead(in_full_blocks(reader.blocks(block_rows), shard, block_rows)) as blocks,
            slots.taken() as scratch,
        ):
            attainable = work.attainable(threads) if work else 0.0
            begun = time.perf_counter()
            yield timed_each("waiting", _to_the_last(blocks, shard, number)), scratch
            elapsed = time.perf_counter() - begun
    except Exception:
        tell_from_task(number, "shard failed", shard=shard.index)
        raise
    beside = {name: seconds.pop(name) for name in _BESIDE if name in seconds}
    seconds["other"] = elapsed - sum(seconds.values())
    metered(seconds)
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


def _to_the_last(blocks: Iterable[Block], shard: Shard, job: str) -> Iterator[Block]:
    """Yield the blocks of a shard; with the last, the worker may begin another task.

    Where tasks run on threads of one process there is a thread more than slots instead.  Every
    `_TELLING` seconds it is told how far the shard is.
    """
    done, told = 0, time.monotonic()
    for block in blocks:
        if stopping.is_set():
            raise KeyboardInterrupt
        if time.monotonic() - told > _TELLING:
            told = time.monotonic()
            tell_from_task(job, "rows read", shard=shard.index, rows=done)
        done += len(block)
        worker = current_worker() if done == shard.n_rows else None
        # A whole pass may run inside somebody else's task, which goes on for long after this.
        if worker is not None and job in str(worker.get_current_task()):
            from distributed import secede  # noqa: PLC0415  where a worker is

            secede()
        yield block


def accumulate_shard(
    assignment: Assignment,
    reader: Reader,
    shard: Shard,
    *,
    group: int,
    store: Callable[[], Any] | None = None,
) -> Partial:
    """Return the sums of one shard; the task that a worker runs, and runs again if it must."""
    zero, options, slots = assignment
    if options.saved is not None and options.saved.holds(group):  # before a worker was lost
        return SAVED
    statistic: Statistic = aligned(zero).zero()
    n_kept = n_skipped = n_weightless = 0

    def kept(blocks: Iterator[Block]) -> Iterator[Block]:
        nonlocal n_kept, n_skipped, n_weightless
        for block in blocks:
            there = block.counting()
            good = there.where(finite_rows(there)) if options.skip_bad_rows else there
            n_kept += len(good)
            n_skipped += len(there) - len(good)
            n_weightless += len(block) - len(there)
            if len(good):
                yield good

    work = statistic.work if options.monitored else None
    with at_shard(
        options.job, shard, reader, options.block_rows, slots, threads=options.threads, work=work
    ) as (blocks, scratch):
        statistic.scratch, scratch.store = scratch, store and store()
        try:
            statistic.update(kept(blocks))
        finally:
            scratch.store = None  # before another task has the memory
    statistic.scratch = None
    sums, shards = statistic.detached(), (shard.index,)
    return Partial(sums, n_kept, n_skipped, shards, peak_bytes(), n_weightless, reader.noted)


def apply_to_shard(
    function: Callable[[Iterator[Block], int, Scratch], Any],
    reader: Reader,
    shard: Shard,
    options: tuple[int, str],
    slots: ComputeSlots,
) -> tuple[Any, Any]:
    """Return what a function makes of the rows of a shard, and what the reader noted."""
    block_rows, job = options
    with at_shard(job, shard, reader, block_rows, slots) as (blocks, scratch):
        made = aligned(function)(blocks, shard.n_rows, scratch)
    return made, reader.noted
