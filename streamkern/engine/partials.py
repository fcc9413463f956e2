"""Partial sums of a pass: of one shard, merged in a fixed order, and saved in a checkpoint."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from streamkern.engine.shard_task import ComputeSlots, at_shard
from streamkern.runtime.events import tell_from_task
from streamkern.runtime.memory import peak_bytes
from streamkern.runtime.resources import metered
from streamkern.runtime.scratch import aligned
from streamkern.sources.nonfinite_rows import finite_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streamkern.sources import Block, Reader, Shard
    from streamkern.statistics import Statistic
    from streamkern.storage import SavedPass


class Partial(NamedTuple):
    """The sums of some shards, with what it takes to check that none is missing or double."""

    statistic: Any  # detached, or None where the sums are to be found in the checkpoint
    n_rows: int
    n_skipped: int
    shards: tuple[int, ...]
    peak_bytes: int
    n_weightless: int = 0

    def counts(self) -> Partial:
        return self._replace(statistic=None)

    def whole(self, zero: Statistic) -> Any:
        return zero.attached(self.statistic)


SAVED = Partial(None, 0, 0, (), 0)


class PassOptions(NamedTuple):
    block_rows: int
    skip_bad_rows: bool
    threads: int
    job: str
    monitored: bool  # tasks measure what the processor can attain
    validate: Callable[[Any, Any], dict[str, Any] | None] | None  # as `accumulate` has it
    saved: SavedPass | None  # where sums are saved


def accumulate_shard(
    zero: Statistic,
    reader: Reader,
    shard: Shard,
    options: PassOptions,
    slots: ComputeSlots,
    *,
    group: int,
) -> Partial:
    """Return the sums of one shard; the task that a worker runs, and runs again if it must."""
    if options.saved is not None and options.saved.holds(group):  # before a worker was lost
        return SAVED
    statistic = aligned(zero).zero()
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
        statistic.scratch = scratch
        statistic.update(kept(blocks))
    statistic.scratch = None
    sums, shards = statistic.detached(), (shard.index,)
    return Partial(sums, n_kept, n_skipped, shards, peak_bytes(), n_weightless)


def merge_partials(zero: Statistic, options: PassOptions, left: Partial, right: Partial) -> Partial:
    if left.statistic is None or right.statistic is None:
        return SAVED
    begun = time.perf_counter()
    merged = left.whole(zero).merge(right.whole(zero))
    seconds = time.perf_counter() - begun
    metered({"merging": seconds})
    tell_from_task(options.job, "merged", seconds=seconds)
    return Partial(
        merged.detached(),
        left.n_rows + right.n_rows,
        left.n_skipped + right.n_skipped,
        (*left.shards, *right.shards),
        max(peak_bytes(), left.peak_bytes, right.peak_bytes),
        left.n_weightless + right.n_weightless,
    )


def save_group(options: PassOptions, number: int, partial: Partial) -> Partial:
    if options.saved is not None and partial.statistic is not None:
        options.saved.write_group(number, partial._asdict())
    return partial


def add_group(
    zero: Statistic, options: PassOptions, number: int, before: Partial | None, group: Partial
) -> Partial:
    """Return the sums of all groups up to one, which are saved if any are; none is before 0."""
    saved = options.saved
    if saved is not None:
        last = saved.last_total()
        if last > number:
            return SAVED
        if last == number:
            return Partial(**saved.read_total(number))
        if group.statistic is None:
            group = Partial(**saved.read_group(number))
        if before is not None and before.statistic is None:
            before = Partial(**saved.read_total(number - 1))
    total = group
    if before is not None:
        if options.validate is not None:
            with suppress(Exception):  # it is a look on the way, and no part of the result
                found = options.validate(before.whole(zero), group.whole(zero))
                if found is not None:
                    tell_from_task(options.job, "validated", rows=before.n_rows, **found)
        total = merge_partials(zero, options, before, group)
    if saved is not None:
        saved.write_total(number, total._asdict())
    return total
