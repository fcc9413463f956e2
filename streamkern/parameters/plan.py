"""What a job will take, known before the first read: memory, work, and how it is cut up.

Shards and blocks follow from the data, the options and the solver alone, so that results do not
depend on who computes them.  Workers and threads follow from the machine.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from streamkern.errors import DataError
from streamkern.features import LEVELS
from streamkern.parameters.cost_estimate import (
    fit_flops,
    gradient_flops,
    passes_cost_less,
    rough_flops_per_second,
    rows_of_a_transform,
    wave_flops,
)
from streamkern.parameters.fit_options import FitOptions, check_folds
from streamkern.parameters.footprint import Footprint, IntegerFootprint
from streamkern.parameters.iterative_footprint import IterativeFootprint, WaveFootprint
from streamkern.parameters.job_plan import Plan
from streamkern.runtime.events import tell_of_job
from streamkern.runtime.memory import available_bytes, usable_cores
from streamkern.runtime.resources import current_resources
from streamkern.sources import Shard, Source
from streamkern.statistics import dtype_of_features
from streamkern.statistics.toeplitz_moments import MOST_TARGETS

# A block of features should be tall enough for the product and small beside the Gram matrix.
_BLOCK_BYTES = 128 << 20
_BLOCK_ROWS = (1024, 8192)
# Of rows alone, so many that what is not computing hardly counts.
_COLUMN_BLOCK_BYTES, _COLUMN_BLOCK_ROWS = 8 << 20, 1 << 16
# The fewest rows where they have more targets than features: products with those are wide.
_WIDE_ROWS = 256
# A shard is what a lost worker costs; many shards cost merges.
_SHARDS = 256
_SHARD_ROWS = (32768, 1 << 20)
# Folds of fewer shards than this are too uneven to choose by; rows are dealt then.
_SHARDS_A_FOLD = 3
# Few shards and large blocks of waves, since each transforms the whole lattice.  Without folds they
# are as many as take no longer for that than for their rows, but some for the cores.
_SHARDS_OF_WAVES, _ROWS_OF_WAVES = (2, 16), 1 << 19
# Into how many strips the products are cut where a worker cannot hold all, with their partials.
_STRIPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
# What a target of one row takes in the blocks that are read, and as it enters products.
_TARGET_BYTES = 56
# What a solution takes of one core, in D^3 operations at the speed of products, as measured: a
# factorisation, else a decomposition of the whole, and one of a fold beside others.
_FACTORISED, _WHOLE, _A_FOLD = 2, 12, 5
# So many features have a D x D system whatever it takes: more can be done with it.
_ALWAYS_DIRECT = 4096
# Below this much work in seconds, starting worker processes costs more than it saves.
_IN_PROCESS_SECONDS = 20.0
# About a fortieth of a pass holds the interpreter's lock, so more threads would wait for it.
_THREADS_A_PROCESS = 16


def plan_fit(
    source: Source,
    n_components: int,
    *,
    precision: str = "single",
    n_folds: int = 1,
    fold_by: str = "auto",
    can_strip: bool = False,
    takes_sparse: bool = False,
    may_sum_waves: bool = False,
    solves_by_passes: bool = False,
    sums_waves: bool = False,
    n_workers: int | None = None,
    n_threads: int | None = None,
    allowed_bytes: int | None = None,
    **more: Any,
) -> Plan:
    """Plan a fit; `more` are fields of `Footprint`.

    With `takes_sparse` the features of sparse rows are made of what is stored.  Where rows may be
    summed as waves, which takes little of a row, shards are large.
    """
    n, p, q, D = source.n_samples, source.n_features, source.n_targets, n_components
    itemsize = dtype_of_features(precision).itemsize
    stored = takes_sparse and source.sparse_row_bytes
    width = min(p, source.sparse_row_bytes // source.dtype.itemsize) if stored else p
    shard_rows, block_rows = chunk_sizes(source, itemsize * D)
    if may_sum_waves or sums_waves:
        most_rows = _ROWS_OF_WAVES if sums_waves else block_rows
        shard_rows, block_rows = _cut_for_waves(source, D, n_folds, most_rows)
    shards, block_rows = _shards(source, shard_rows, block_rows, by_waves=sums_waves)
    if fold_by == "auto":
        counted, usual_bytes = shards, _BLOCK_BYTES // _BLOCK_ROWS[1]
        if solves_by_passes and not sums_waves:  # of so many features shards are small
            counted = source.shards(*chunk_sizes(source, min(itemsize * D, usual_bytes)))
        fold_by = "shards" if len(counted) >= _SHARDS_A_FOLD * n_folds else "rows"
    needs = _footprint_of(precision, solves_by_passes=solves_by_passes, sums_waves=sums_waves)(
        source,
        D,
        itemsize,
        shard_rows=shard_rows,
        block_rows=block_rows,
        precision=precision,
        left_out_rows=chunk_sizes(source, 2 * itemsize * D)[1],
        n_folds=n_folds,
        # Rows that are dealt one by one reach every fold.
        width=width,
        folds_at_once={"shards": 1, "blocks": min(2, n_folds)}.get(fold_by, n_folds),
        **more,
    )

    def process_bytes(threads: int, n_strips: int = 1) -> int:
        return needs.process(threads, n_strips, n_workers or 0)

    def room(processes: int) -> int:
        """Return what each may use, of workers beside this process that receives the model."""
        received, free = needs.receiving(), available_bytes(max(processes, 1))
        return free - (min(received // processes, free // 2) if processes else 0)

    def threads_that_fit(most: int, room: int) -> int:
        return next((t for t in range(most, 1, -1) if process_bytes(t) <= room), 1)

    # A target more takes what an input takes, and without each row every target at every penalty.
    flops = fit_flops(n, width + q - 1, D, n_folds)
    if solves_by_passes:
        flops = gradient_flops(n, width, D, q)
    if needs.n_left_out:
        flops += fit_flops(n, width + needs.n_left_out * q, D, 1)
    cores, blas = usable_cores(), 1
    if n_workers is None:
        threads = min(cores, _THREADS_A_PROCESS)
        work = wave_flops(n, D, q, len(shards)) if sums_waves else flops
        seconds = work / (rough_flops_per_second(precision) * threads)
        free = room(0) if allowed_bytes is None else allowed_bytes
        n_workers, n_threads = 0, threads_that_fit(threads, free)
        if seconds > _IN_PROCESS_SECONDS:
            # Of several numbers of processes that keep most cores busy, with as many threads each,
            # the largest, since a process does more than products.
            most = max((free - needs.receiving()) // process_bytes(1), 1)
            numbers = range(1, min(cores, most) + 1)
            n_workers, n_threads = max(numbers, key=lambda n: (n * (cores // n), n)), 1
        if n_workers or n_threads < threads:  # bits depend on BLAS threads: memory may force them
            blas = max(cores // (max(n_workers, 1) * n_threads), 1)
        allowed_bytes = allowed_bytes and allowed_bytes // max(n_workers, 1)
    if allowed_bytes is None:
        allowed_bytes = room(n_workers)
    n_threads = n_threads or 1
    if n_workers == 0:
        n_threads = threads_that_fit(n_threads, allowed_bytes)
    n_strips = 1
    if can_strip and needs.fixed_alpha and n_folds == 1 and not needs.indexed:
        fits = (k for k in _STRIPS if process_bytes(n_threads, k) <= allowed_bytes)
        n_strips = next(fits, min(_STRIPS, key=lambda k: process_bytes(n_threads, k)))
    return Plan(
        n_rows=n,
        n_features=p,
        n_targets=q,
        n_components=D,
        precision=precision,
        shard_rows=shard_rows,
        n_shards=len(shards),
        block_rows=block_rows,
        column_block_rows=min(_column_block_rows(source), shard_rows),
        graph_tasks=2 * len(shards) + 1,
        flops=flops,
        n_workers=n_workers,
        n_threads=n_threads,
        blas_threads=blas,
        fold_by=fold_by,
        worker_bytes=process_bytes(n_threads, n_strips),
        client_bytes=needs.receiving(),
        allowed_bytes=allowed_bytes,
        index_bytes=needs.index,
        n_strips=n_strips,
        solves_by_passes=solves_by_passes,
        sums_waves=sums_waves,
        checkpoint_bytes=needs.saving(math.isqrt(len(shards)) + 1, n_strips),
    )


def _footprint_of(precision: str, *, solves_by_passes: bool, sums_waves: bool) -> type[Footprint]:
    if solves_by_passes:
        return WaveFootprint if sums_waves else IterativeFootprint
    return IntegerFootprint if precision in LEVELS else Footprint


class Job(NamedTuple):
    """What is known of a fit before its rows: the options of its passes, and what follows them."""

    options: FitOptions
    solution: dict[str, Any]  # what `planned` counts of it
    for_rows: Callable[[FitOptions, Source], FitOptions] = lambda options, _: options


def planned(
    options: FitOptions,
    source: Source,
    n_sample: int | None = None,
    *,
    few_rows: bool = False,
    may_solve_by_passes: bool = False,
    **job: Any,
) -> Plan:
    """Return the plan of a fit: `plan_fit` of what the options say, and of the job.

    Every fold needs a row, unless `few_rows` come to others.  Where the D x D system has no room,
    or takes longer and has no more features than rows, conjugate gradients solve if they may.
    """
    if not few_rows:
        check_folds(options, source)
    D, from_rows = options.components_for(source.n_features), options.family.rows_a_feature > 0
    plan_of = partial(
        plan_fit,
        source,
        D,
        precision=options.precision,
        n_folds=options.n_parts,
        fold_by=options.fold_by,
        is_listed=options.fold_column is not None,
        n_sample=n_sample or options.sample_rows(source),
        can_strip=options.can_strip,
        takes_sparse=options.family.made.takes_sparse and not options.is_identity,
        may_sum_waves=options.sums_waves
        and options.precision not in LEVELS
        and source.n_targets < MOST_TARGETS,
        from_rows=from_rows,
    )
    by_passes: dict[str, Any] = {"solves_by_passes": True, "sums_waves": options.sums_waves}
    by_passes["n_terms"] = options.n_terms(source.n_features)
    plan = plan_of(**job | by_passes if job.get("solves_by_passes") else job)
    # Double precision is for small penalties, which take many iterations, each of which would
    # compute lazy rows again.
    suits = plan.precision == "single" and not (options.sums_waves or source.loads_whole_shards)
    suits = suits and _ALWAYS_DIRECT < D <= source.n_samples
    if may_solve_by_passes and not plan.solves_by_passes and (suits or not plan.fits):
        other = plan_of(**job | by_passes)
        is_faster = suits and passes_cost_less(other, plan, from_rows=from_rows)
        if (is_faster or not plan.fits) and other.fits:
            plan = other
    return plan


def plan_for(
    source: Source,
    options: FitOptions,
    n_sample: int | None = None,
    *,
    needs_targets: bool = True,
    **job: Any,
) -> Plan:
    """Plan a fit on what the current scheduler offers, tell it, and refuse what does not fit."""
    if needs_targets and not source.n_targets:
        raise DataError("a fit needs targets, but the source has none; name a dataset with y.")
    plan = planned(options, source, n_sample, **current_resources()._asdict(), **job)
    plan.check()
    facts = {"allowed_bytes": plan.allowed_bytes, "seconds": plan.seconds}
    tell_of_job("planned", worker_bytes=plan.worker_bytes, readings=plan.n_strips, **facts)
    return plan


def plan_here(source: Source, options: FitOptions, **job: Any) -> Plan:
    """Return the plan of a fit on what the current scheduler offers, whether it fits or not."""
    return planned(options, source, **current_resources()._asdict(), **job)


def tell_of_solution(
    source: Source, options: FitOptions, plan: Plan, solution: dict[str, Any]
) -> None:
    """Tell what follows the main pass, as the operations of all slots in that time.

    Folds are solved side by side, then the whole; before that all rows may be left out in turn.
    """
    D, n_slots = options.components_for(source.n_features), current_resources().n_slots
    rounds = -(-options.n_folds // n_slots) if options.n_folds > 1 else 0
    cubes = _FACTORISED if solution.get("fixed_alpha") else _WHOLE + _A_FOLD * rounds
    flops = float(D) ** 3 * cubes * n_slots
    if plan.solves_by_passes:
        flops = 0.0  # nobody knows how many passes follow
    if n_left_out := solution.get("n_left_out", 0):
        width = source.n_features + n_left_out * source.n_targets
        flops += 2 * fit_flops(source.n_samples, width, D, 1)
    tell_of_job("solution planned", flops=flops)


def _shards(
    source: Source, shard_rows: int, block_rows: int, *, by_waves: bool
) -> tuple[Sequence[Shard], int]:
    """Return the shards, and the rows of a block, which are no more than the longest shard's.

    Of waves the last shards are not smaller, since each transforms the whole lattice.
    """
    longest = max(shard.n_rows for shard in source.shards(shard_rows, block_rows))
    block_rows = min(block_rows, longest)
    return source.shards(shard_rows, shard_rows if by_waves else block_rows), block_rows


def _cut_for_waves(
    source: Source, n_components: int, n_folds: int, most_rows: int
) -> tuple[int, int]:
    """Return the rows of a shard and of a block, of so many at the most, where waves are summed."""
    (fewest, most), (few, many) = _SHARD_ROWS, _SHARDS_OF_WAVES
    enough, n_shards = rows_of_a_transform(n_components), max(many, _SHARDS_A_FOLD * n_folds)
    if n_folds == 1:
        n_shards = min(max(source.n_samples // enough, few), many)
    shard_rows = min(max(-(-source.n_samples // n_shards), fewest), max(most, enough))
    row_bytes = _TARGET_BYTES * source.n_targets + source.row_bytes
    block_rows = min(_BLOCK_BYTES // row_bytes, most_rows, shard_rows)
    if source.loads_whole_shards:
        shard_rows = min(shard_rows, max(_BLOCK_BYTES // row_bytes, 1))
        block_rows = min(block_rows, shard_rows)
    return -(-shard_rows // block_rows) * block_rows, block_rows


def chunk_sizes(source: Source, feature_bytes: int) -> tuple[int, int]:
    """Return the rows of a shard and of a block, given the bytes of one row of features."""
    (fewest, most), target_bytes = _BLOCK_ROWS, _TARGET_BYTES * source.n_targets
    if target_bytes > feature_bytes:
        feature_bytes, fewest = target_bytes, _WIDE_ROWS
    block_rows = _of_chunks(min(max(_BLOCK_BYTES // feature_bytes, fewest), most), source)
    fewest, most = _SHARD_ROWS
    shard_rows = min(max(-(-source.n_samples // _SHARDS), fewest), most)
    shard_rows = -(-shard_rows // block_rows) * block_rows
    if source.loads_whole_shards:
        loaded = max(source.row_bytes, 8 * source.n_targets)
        shard_rows = min(shard_rows, max(_BLOCK_BYTES // loaded, _chunk_rows(source)))
    return shard_rows, block_rows


def _column_block_rows(source: Source) -> int:
    """Return the rows of a block that no features are made of."""
    row_bytes = max(source.row_bytes, 8 * source.n_targets)
    rows = min(_COLUMN_BLOCK_BYTES // row_bytes, _COLUMN_BLOCK_ROWS)
    return _of_chunks(max(rows, 1), source)


def _of_chunks(block_rows: int, source: Source) -> int:
    """Return as many rows as whole chunks have, if a block is larger than one."""
    chunk_rows = _chunk_rows(source)
    return block_rows - block_rows % chunk_rows if 1 < chunk_rows <= block_rows else block_rows


def _chunk_rows(source: Source) -> int:
    return max(segment.chunk_rows for segment in source.segments())
