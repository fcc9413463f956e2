"""The pass: one Dask graph that reduces a source to a statistic.

    pass --+-- accumulate(shard 0) --.
           +-- accumulate(shard 1) ---+-- merge --.
           +-- accumulate(shard 2) ----------------+-- merge ---- total of a group --.
           +-- accumulate(shard 3) --.                                                +-- merge
           +-- accumulate(shard 4) ---+-- merge --.                                  |
           +-- accumulate(shard 5) ----------------+-- merge ---- total of a group --'

The graph depends on the source and the options alone, and runs on whatever scheduler is current.
"""

import math
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import dask
from dask.base import tokenize
from tlz import partition_all

from streamkern.engine.partials import (
    SAVED,
    Assignment,
    Partial,
    PassOptions,
    check_complete,
    merge_groups,
)
from streamkern.engine.scheduler import compute, delayed, is_delayed, persist
from streamkern.engine.shard_task import ComputeSlots, accumulate_shard, pass_facts
from streamkern.runtime.events import Event, passing, tell
from streamkern.runtime.memory import reset_peak
from streamkern.runtime.resources import current_client, local_threads
from streamkern.sources import Shard, Source
from streamkern.sources.base import naming_rows
from streamkern.statistics import Statistic
from streamkern.storage.checkpoints import Checkpoint

S = TypeVar("S", bound=Statistic)


@dataclass(frozen=True)
class PassResult(Generic[S]):
    """What one pass yields."""

    statistic: S
    n_rows: int  # that are in the statistic
    n_skipped: int  # rows left out for values that are not finite
    n_shards: int
    retried_shards: int  # begun more than once, because a worker was lost
    resumed_shards: int  # found in the checkpoint
    resumed_rows: int
    peak_worker_bytes: int  # the largest resident size of a process that took part
    seconds: float
    n_weightless: int = 0  # rows of weight 0, which are in no statistic


def accumulate(
    source: Source,
    statistic: S,
    *,
    shard_rows: int = 65536,
    block_rows: int = 8192,
    read_rows: int | None = None,
    skip_bad_rows: bool = False,
    label: str | None = None,
    n_threads: int | None = None,
    keep: bool = False,
    group: Callable[[Shard], int] | None = None,
    checkpoint: Checkpoint | None = None,
    validate: Callable[[S, S], dict[str, Any] | None] | None = None,
    stores: Any = None,
) -> PassResult[S]:
    """Read every row once and reduce the rows to a statistic; rows of weight 0 are no rows.

    Runs on the current Dask scheduler: a distributed client if there is one, else threads, or what
    the Dask configuration names.  The result is the same bits on all of them, with one BLAS thread
    a task; the Dask configuration `streamkern.blas-threads` gives tasks more.

    Parameters
    ----------
    source : Source
    statistic : Statistic, or a task of one
        Its parameters say what to accumulate; its own sums, if any, do not count.  Given a task,
        the result has sums only, unless it is kept.
    shard_rows, block_rows : int
        Rows of one task, and of one product; shards end between storage chunks, and the last ones
        are smaller.
    read_rows : int, optional
        Rows that are read at a time, by default those of one product.
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
    checkpoint : Checkpoint, optional
        Where sums are saved as they are made, and those of an earlier run are found.
    validate : callable, optional
        Takes the statistic of the rows so far and that of those to come next, and returns what
        to tell of an error, or None.
    stores : FeatureStores, optional
        Where features are kept for further passes.

    Returns
    -------
    PassResult

    Raises
    ------
    DataError, OverflowedError, IncompletePassError, ClusterError, CheckpointError
        If rows cannot be read, sums are not finite, rows are missing or there twice, the cluster
        lost the tasks for good, or sums that were saved cannot be read.
    """
    source = source.skip_invalid() if skip_bad_rows else source
    shards, read_rows = source.shards(shard_rows, block_rows), read_rows or block_rows
    label = label or type(statistic).__name__.lower()
    job, threads = uuid.uuid4().hex, dask.config.get("streamkern.blas-threads", 1)
    monitored = dask.config.get("streamkern.monitoring", True)
    validate = validate if monitored else None
    of_task = is_delayed(statistic)
    zero: Any = statistic if of_task else statistic.zero()
    saved = None
    if checkpoint is not None:
        saved = checkpoint.of_pass(label, tokenize(zero, read_rows, skip_bad_rows, threads))
    options = PassOptions(read_rows, skip_bad_rows, threads, job, monitored, validate, saved)
    light = None if of_task else zero.merging()
    n_slots = n_threads or local_threads()
    assigned = dask.delayed(Assignment, traverse=False)
    assignment = assigned(zero, options, ComputeSlots(n_slots), dask_key_name=f"pass-{label}-{job}")
    accumulating = dask.delayed(accumulate_shard, traverse=False)
    # As many shards a group as groups.
    ordered = shards if group is None else sorted(shards, key=group)
    groups = list(partition_all(math.isqrt(len(shards) - 1) + 1, ordered))
    found = set() if saved is None else {i for i in range(len(groups)) if saved.holds(i)}
    resumed = [shard for i in found for shard in groups[i]]

    places = {} if stores is None else stores.places(shards)

    def partial_of(shard: Shard, number: int) -> Any:
        reader, key = source.reader(shard), f"accumulate-{label}-{job}-{shard.index}"
        how = {"group": number, "store": stores and stores.here, "dask_key_name": key}
        with dask.annotate(**places.get(shard.index, {})):
            return accumulating(assignment, reader, shard, **how)

    partials = [
        [SAVED] if i in found else [partial_of(shard, i) for shard in members]
        for i, members in enumerate(groups)
    ]
    root = merge_groups(assignment, light or assignment, partials, label, options)
    client, pool = current_client(), n_slots + 1  # threads: one more reads
    if client is None:
        reset_peak()
    begun, attempts = time.perf_counter(), Counter[int]()
    facts = pass_facts(source, shards, None if of_task else statistic.work)
    with (
        passing(job, label, partial(_count, attempts), **facts),
        naming_rows(source, shards, f"accumulate-{label}-{job}"),
    ):
        n_resumed = sum(shard.n_rows for shard in resumed)
        if resumed:
            tell("resumed", **{"pass": job}, rows=n_resumed, shards=len(resumed))
        if keep:
            root = persist(root, pool)
            merged = compute(delayed(Partial.counts, root, name=f"rows-{label}"))
            whole = delayed(Partial.whole, root, zero, name=f"whole-{label}")
            merged = merged._replace(statistic=whole)
        else:
            merged = compute(root, pool)
            if not of_task:
                merged = merged._replace(statistic=statistic.attached(merged.statistic))
    source.take_note(merged.noted or {})
    source.check_unchanged()
    check_complete(merged, shards, source.n_samples)
    return PassResult(
        statistic=merged.statistic,
        n_rows=merged.n_rows,
        n_skipped=merged.n_skipped,
        n_shards=len(shards),
        retried_shards=sum(times > 1 for times in attempts.values()),
        resumed_shards=len(resumed),
        resumed_rows=n_resumed,
        peak_worker_bytes=merged.peak_bytes,
        seconds=time.perf_counter() - begun,
        n_weightless=merged.n_weightless,
    )


def _count(attempts: Counter[int], event: Event) -> None:
    if event["kind"] == "shard begun":
        attempts[event["shard"]] += 1
