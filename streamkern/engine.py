"""The pass: one Dask graph that reduces a source to a statistic, and prediction over shards.

    zero --+-- accumulate(shard 0) --.
           +-- accumulate(shard 1) ---+-- merge --.
           +-- accumulate(shard 2) ----------------+-- merge ---- total of a group --.
           +-- accumulate(shard 3) --.                                                +-- merge
           +-- accumulate(shard 4) ---+-- merge --.                                  |
           +-- accumulate(shard 5) ----------------+-- merge ---- total of a group --'

The graph depends on the source and the options alone, and runs on whatever scheduler is current.
"""

from __future__ import annotations

import math
import time
import uuid
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import dask
from dask import delayed
from tlz import partition_all

from streamkern.errors import IncompletePassError
from streamkern.memory import peak_bytes, reset_peak
from streamkern.observing import listening, observed_pass, tell
from streamkern.scheduling import (
    current_client,
    is_task,
    kept,
    local_threads,
    run,
    stream,
    task,
)
from streamkern.seats import Seats, let_another_begin
from streamkern.sources import Shard, reading_ahead
from streamkern.threads import blas_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from streamkern.sources import Block, Reader, Source
    from streamkern.statistics import Statistic

S = TypeVar("S", bound="Statistic")


class Partial(NamedTuple):
    """The statistic of some shards, with what it takes to check that none is missing or double."""

    statistic: Any
    n_rows: int
    n_skipped: int
    shards: tuple[int, ...]
    peak_bytes: int


@dataclass(frozen=True)
class PassResult(Generic[S]):
    """What one pass yields.

    Parameters
    ----------
    statistic : Statistic
    n_rows, n_skipped : int
        Rows that are in the statistic, and rows left out for values that are not finite.
    n_shards : int
    retried_shards : int
        Shards that were begun more than once, because a worker was lost.
    peak_worker_bytes : int
        The largest resident size of a process that took part.
    seconds : float
    """

    statistic: S
    n_rows: int
    n_skipped: int
    n_shards: int
    retried_shards: int
    peak_worker_bytes: int
    seconds: float


def accumulate(
    source: Source,
    statistic: S,
    *,
    shard_rows: int = 65536,
    block_rows: int = 8192,
    skip_bad_rows: bool = False,
    label: str | None = None,
    n_threads: int | None = None,
    keep: bool = False,
    group: Callable[[Shard], int] | None = None,
) -> PassResult[S]:
    """Read every row once and reduce the rows to a statistic.

    Runs on the current Dask scheduler: a distributed client if there is one, else threads, or what
    the Dask configuration names.  The result is the same bits on all of them, with one BLAS thread
    a task; the Dask configuration `streamkern.blas-threads` gives tasks more.

    Parameters
    ----------
    source : Source
    statistic : Statistic, or a task of one
        Its parameters say what to accumulate; its own sums, if any, do not count.  Of a task the
        result is `detached`, unless it is kept.
    shard_rows, block_rows : int
        Rows of one task, and of one product; shards end between storage chunks, and the last ones
        are smaller.
    skip_bad_rows : bool
        Leave out, and count, rows with a value that is not finite.
    label : str, optional
        The name of the pass, for progress and for the dashboard.
    n_threads : int, optional
        Tasks that compute at a time, where they run on threads of this process; one more reads.
    keep : bool
        Leave the statistic where it was merged; the result then holds a Dask task in its place.
    group : callable, optional
        Shards for which it returns the same number are merged with each other first.

    Returns
    -------
    PassResult

    Raises
    ------
    DataError
        If rows cannot be read.
    IncompletePassError
        If shards or rows are missing from the result, or twice in it.
    ClusterError
        If the cluster lost the tasks for good.
    """
    shards = source.shards(shard_rows, block_rows)
    label = label or type(statistic).__name__.lower()
    job = uuid.uuid4().hex
    threads = dask.config.get("streamkern.blas-threads", 1)
    options = _PassOptions(block_rows, skip_bad_rows, threads, job)
    n_seats = n_threads or local_threads()
    seats = delayed(Seats(n_seats), traverse=False, name=f"seats-{label}-{job}")
    pool = n_seats + 1  # threads: one more reads
    zero: Any = statistic
    if not is_task(statistic):
        zero = delayed(statistic.zero(), traverse=False, name=f"zero-{label}-{job}")
    accumulating = delayed(accumulate_shard, traverse=False)
    partials = [
        accumulating(
            zero,
            source.reader(shard),
            shard,
            options,
            seats,
            dask_key_name=f"accumulate-{label}-{job}-{shard.index}",
        )
        for shard in shards
    ]
    if group is not None:
        numbers = [group(shard) for shard in shards]
        partials = [partials[i] for i in sorted(range(len(shards)), key=numbers.__getitem__)]
    root = _merged(zero, partials, label, job)
    client = current_client()
    if client is None:
        reset_peak()
    begun = time.perf_counter()
    with (
        observed_pass(label, source.n_samples) as observer,
        listening(job, observer, client) as attempts,
    ):
        if keep:
            root = kept(root, pool)
            merged = run(task(_without_statistic, root, name=f"rows-{label}"))
            merged = merged._replace(statistic=task(_attached, zero, root, name=f"whole-{label}"))
        else:
            merged = run(root, pool)
            if not is_task(statistic):
                merged = merged._replace(statistic=statistic.attached(merged.statistic))
    source.check_unchanged()
    _check_complete(merged, shards, source.n_samples)
    return PassResult(
        statistic=merged.statistic,
        n_rows=merged.n_rows,
        n_skipped=merged.n_skipped,
        n_shards=len(shards),
        retried_shards=sum(count > 1 for count in attempts.values()),
        peak_worker_bytes=merged.peak_bytes,
        seconds=time.perf_counter() - begun,
    )


class _PassOptions(NamedTuple):
    block_rows: int
    skip_bad_rows: bool
    threads: int
    job: str


def accumulate_shard(
    zero: Statistic, reader: Reader, shard: Shard, options: _PassOptions, seats: Seats
) -> Partial:
    """Return the statistic of one shard; the task that a worker runs, and runs again if it must."""
    tell(options.job, shard.index, 0)
    statistic = zero.zero()
    counts = {"kept": 0, "skipped": 0}

    def kept(blocks: Iterator[Block]) -> Iterator[Block]:
        done = 0
        for block in blocks:
            done += len(block)
            if done == shard.n_rows:
                let_another_begin(options.job)
            good = block.where(block.finite()) if options.skip_bad_rows else block
            counts["kept"] += len(good)
            counts["skipped"] += len(block) - len(good)
            if len(good):
                yield good

    with (
        blas_threads(options.threads),
        reading_ahead(reader.blocks(options.block_rows)) as blocks,
        seats.taken() as statistic.scratch,
    ):
        statistic.update(kept(blocks))
    statistic.scratch = None
    tell(options.job, shard.index, shard.n_rows)
    sums = statistic.detached()
    return Partial(sums, counts["kept"], counts["skipped"], (shard.index,), peak_bytes())


def _without_statistic(partial: Partial) -> Partial:
    return partial._replace(statistic=None)


def _attached(zero: Statistic, partial: Partial) -> Statistic:
    return zero.attached(partial.statistic)


def merge_partials(zero: Statistic, left: Partial, right: Partial) -> Partial:
    """Return the partial of all shards that the two cover."""
    merged = zero.attached(left.statistic).merge(zero.attached(right.statistic))
    return Partial(
        merged.detached(),
        left.n_rows + right.n_rows,
        left.n_skipped + right.n_skipped,
        left.shards + right.shards,
        max(peak_bytes(), left.peak_bytes, right.peak_bytes),
    )


def _merged(zero: Any, partials: list[Any], label: str, job: str) -> Any:
    """Merge shards into groups, and groups into the whole, one after the other.

    So a running total of a group and one of the whole wait in memory, however many shards there
    are; in a balanced tree it would be one a level.
    """
    merge = delayed(merge_partials, traverse=False)

    def running_total(parts: Iterable[Any], name: str) -> Any:
        first, *rest = parts
        for i, part in enumerate(rest):
            first = merge(zero, first, part, dask_key_name=f"merge-{label}-{job}-{name}-{i}")
        return first

    groups = partition_all(math.isqrt(len(partials) - 1) + 1, partials)
    totals = [running_total(group, f"group-{i}") for i, group in enumerate(groups)]
    return running_total(totals, "all")


def _check_complete(merged: Partial, shards: tuple[Shard, ...], n_samples: int) -> None:
    expected = list(range(len(shards)))
    if sorted(merged.shards) != expected:
        raise IncompletePassError(
            f"the pass must hold each of {len(expected):,} shards once, but holds "
            f"{len(merged.shards):,}; run it again."
        )
    if merged.n_rows + merged.n_skipped != n_samples:
        raise IncompletePassError(
            f"the source has {n_samples:,} rows, but the pass accounts for "
            f"{merged.n_rows + merged.n_skipped:,}; a file changed meanwhile, run it again."
        )


def map_shards(
    source: Source,
    function: Callable[[Reader, int], Any],
    *,
    shard_rows: int,
    label: str,
    most_rows: int | None = None,
) -> Iterator[tuple[Shard, Any]]:
    """Yield every shard with what `function` makes of its rows, in order, few at a time.

    Parameters
    ----------
    source : Source
    function : callable, or a task of one
        Takes a `Reader` and the number of its rows; runs as one Dask task a shard.
    shard_rows : int
        Rows of one task; shards end between storage chunks.
    label : str
        The name of the pass, for progress and for the dashboard.
    most_rows : int, optional
        Cut chunks that have more rows than this, where they can be read in parts.
    """
    job = uuid.uuid4().hex
    shards = source.shards(shard_rows)
    if most_rows is not None and not source.loads_whole_shards:
        shards = _cut_up(shards, most_rows)
    sent: Any = function
    if not is_task(function):  # once, and not with every task
        sent = kept(delayed(function, traverse=False, name=f"function-{label}-{job}"))
    applying = delayed(_apply, traverse=False)
    tasks = (
        applying(
            sent,
            source.reader(shard),
            shard.n_rows,
            dask_key_name=f"{label}-{job}-{shard.index}",
        )
        for shard in shards
    )
    with observed_pass(label, source.n_samples) as observer:
        for shard, result in zip(shards, stream(tasks), strict=True):
            observer.advanced(shard.n_rows)
            yield shard, result


def _cut_up(shards: Iterable[Shard], most_rows: int) -> tuple[Shard, ...]:
    """Return the same rows in shards of no more than `most_rows`, parts of one about equal."""
    cut: list[Shard] = []
    for shard in shards:
        n_parts = -(-shard.n_rows // most_rows)
        cuts = [shard.start + part * shard.n_rows // n_parts for part in range(n_parts + 1)]
        cut += [Shard(len(cut) + i, *ends) for i, ends in enumerate(pairwise(cuts))]
    return tuple(cut)


def _apply(function: Callable[[Reader, int], Any], reader: Reader, n_rows: int) -> Any:
    with blas_threads(1):
        return function(reader, n_rows)
