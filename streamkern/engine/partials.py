"""Partial sums of a pass: merged in a fixed order, and saved in a checkpoint."""

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial, reduce
from itertools import count
from typing import Any, NamedTuple, Self

import numpy as np
from dask import delayed
from tlz import partition_all

from streamkern.errors import IncompletePassError
from streamkern.runtime.events import tell_from_task
from streamkern.runtime.memory import peak_bytes
from streamkern.runtime.resources import metered
from streamkern.sources import Shard
from streamkern.storage.checkpoints import SavedPass


class Partial(NamedTuple):
    """The sums of some shards, with what it takes to check that none is missing or double."""

    statistic: Any  # detached, or None where the sums are to be found in the checkpoint
    n_rows: int
    n_skipped: int
    shards: tuple[int, ...]
    peak_bytes: int
    n_weightless: int = 0
    noted: Counter[Any] | None = None  # as of a `Reader`

    def saved(self) -> dict[str, Any]:
        """Return what a checkpoint holds."""
        saved = self._asdict() | {"shards": np.array(self.shards, dtype=np.int64)}
        if noted := saved.pop("noted"):
            text = json.dumps([[key, n] for key, n in noted.items()])
            saved["noted"] = np.frombuffer(text.encode(), np.uint8)
        return saved

    @classmethod
    def restored(cls, saved: dict[str, Any]) -> Self:
        noted = json.loads(bytes(saved.pop("noted", b"[]")))
        saved["shards"] = tuple(map(int, saved["shards"]))
        return cls(**saved, noted=Counter({tuple(key): n for key, n in noted}))

    def counts(self) -> Self:
        return self._replace(statistic=None)

    def whole(self, zero: Any) -> Any:
        return zero.attached(self.statistic)


# More parts than this are merged in pairs.
LARGE_GROUP = 32
SAVED = Partial(None, 0, 0, (), 0)


class Assignment(NamedTuple):
    """What the tasks of a pass have in common.

    They are one node of the graph, because the scheduler sends with every task the list of workers
    that hold each of its inputs.
    """

    zero: Any  # the Statistic
    options: "PassOptions"
    slots: Any  # `ComputeSlots`

    def attached(self, sums: Any) -> Any:
        """Return sums with the parameters of the statistic, as its own `attached` does."""
        return self.zero.attached(sums)


class PassOptions(NamedTuple):
    block_rows: int
    skip_bad_rows: bool
    threads: int
    job: str
    monitored: bool  # tasks measure what the processor can attain
    validate: Callable[[Any, Any], dict[str, Any] | None] | None  # as `accumulate` has it
    saved: SavedPass | None  # where sums are saved


def merge_groups(
    assignment: Any, merging: Any, groups: Sequence[Sequence[Any]], label: str, options: PassOptions
) -> Any:
    """Merge shards into groups, and groups into the whole, one after the other.

    So a running total of a group and one of the whole wait in memory, however many shards there
    are; in a balanced tree it would be one a level.  Large groups are such trees: they come of more
    shards than a few workers take at a time, and of many workers each would wait for the last.

    `merging` merges the sums in a group, where it is small: all workers have the assignment, and a
    scheduler considers every worker that has something a task needs.
    """
    name, saved = f"{label}-{options.job}", options.saved
    merge, save, add = (delayed(f, traverse=False) for f in (merge_partials, save_group, add_group))

    def total_of(members: Sequence[Any], number: int) -> Any:
        parts, keys = list(members), (f"merge-{name}-group-{number}-{j}" for j in count())

        def merged(left: Any, right: Any) -> Any:
            return merge(merging, options.job, left, right, dask_key_name=next(keys))

        while len(members) > LARGE_GROUP and len(parts) > 1:
            parts = [reduce(merged, pair) for pair in partition_all(2, parts)]
        return reduce(merged, parts)

    whole = None
    for i, members in enumerate(groups):
        total = total_of(members, i)
        if saved is not None:
            total = save(options, i, total, dask_key_name=f"save-{name}-group-{i}")
        if saved is None and whole is None:
            whole = total
        else:
            whole = add(assignment, i, whole, total, dask_key_name=f"merge-{name}-all-{i}")
    return whole


def check_complete(merged: Partial, shards: tuple[Shard, ...], n_samples: int) -> None:
    if sorted(merged.shards) != list(range(len(shards))):
        raise IncompletePassError(
            f"the pass must hold each of {len(shards):,} shards once, but holds "
            f"{len(merged.shards):,}; run it again."
        )
    n_found = merged.n_rows + merged.n_skipped + merged.n_weightless
    if n_found != n_samples:
        raise IncompletePassError(
            f"the source has {n_samples:,} rows, but the pass accounts for {n_found:,}; a file "
            f"changed meanwhile, run it again, or a reader of your own loses or repeats rows."
        )


def merge_partials(zero: Any, job: str, left: Partial, right: Partial) -> Partial:
    """Return the sums of both; zero is a statistic, an assignment, or a `Statistic.merging`."""
    if left.statistic is None or right.statistic is None:
        return SAVED
    begun = time.perf_counter()
    merged = left.whole(zero).merge(right.whole(zero))
    seconds = time.perf_counter() - begun
    metered({"merging": seconds})
    tell_from_task(job, "merged", seconds=seconds)
    return Partial(
        merged.detached(),
        left.n_rows + right.n_rows,
        left.n_skipped + right.n_skipped,
        (*left.shards, *right.shards),
        max(peak_bytes(), left.peak_bytes, right.peak_bytes),
        left.n_weightless + right.n_weightless,
        both(left.noted, right.noted),
    )


def both(noted: Counter[Any] | None, more: Counter[Any] | None) -> Counter[Any] | None:
    """Return the counts of two parts of the rows."""
    return noted + more if noted and more else noted or more


def save_group(options: PassOptions, number: int, sums: Partial) -> Partial:
    if options.saved is not None and sums.statistic is not None:
        options.saved.check_shared()
        options.saved.write_group(number, sums.saved())
    return sums


def _with_saved(
    saved: SavedPass, number: int, before: Partial | None, group: Partial, last: int
) -> tuple[Partial | None, Partial, bool]:
    """Return the sums of groups before one and of that one, read where they are saved.

    Where a total has all of them, that takes their place, or what says that a later one has.
    """
    if last >= number:
        return None, SAVED if last > number else Partial.restored(saved.read_total(last)), True
    if group.statistic is None:
        group = Partial.restored(saved.read_group(number))
    if before is not None and before.statistic is None:
        before = Partial.restored(saved.read_total(number - 1))
    return before, group, False


def add_group(
    assignment: Assignment, number: int, before: Partial | None, group: Partial
) -> Partial:
    """Return the sums of all groups up to one, which are saved if any are; none is before 0."""
    zero, options = assignment.zero, assignment.options
    saved = options.saved
    if saved is not None:
        find = partial(_with_saved, saved, number, before, group)
        before, group, is_whole = saved.when_seen(find)
        if is_whole:
            return group
    total = group
    if before is not None:
        if options.validate is not None:
            with suppress(Exception):  # it is a look on the way, and no part of the result
                found = options.validate(before.whole(zero), group.whole(zero))
                if found is not None:
                    tell_from_task(options.job, "validated", rows=before.n_rows, **found)
        total = merge_partials(zero, options.job, before, group)
    if saved is not None:
        saved.write_total(number, total.saved())
    return total
