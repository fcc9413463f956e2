"""How a job is planned: its rows cut up, and a solver, workers and threads that have room.

Shards and blocks follow from the data, the options and the solver alone, so that results do not
depend on who computes them, unless memory that is short forces another solver, or strips.  Workers
and threads follow from the machine.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from streamkern.features import LEVELS
from streamkern.parameters.chunking import SHARDS_A_FOLD, column_block_rows
from streamkern.parameters.cost_estimate import fit_flops, rough_flops_per_second
from streamkern.parameters.fit_options import FitOptions, check_folds
from streamkern.parameters.footprint import Footprint
from streamkern.parameters.plan import Plan
from streamkern.registry import extension
from streamkern.runtime.events import tell_of_job
from streamkern.runtime.memory import available_bytes, usable_cores
from streamkern.runtime.resources import current_resources
from streamkern.sources import Source
from streamkern.statistics import dtype_of_features

# Into how many strips the products are cut where a worker cannot hold all, with their partials.
_STRIPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
# What a solution takes of one core, in D^3 operations at the speed of products, as measured: a
# factorisation, else a decomposition of the whole, and one of a fold beside others.
_FACTORISED, _WHOLE, _A_FOLD = 2, 12, 5
# So many features have a D x D system whatever it takes: more can be done with it.
_ALWAYS_DIRECT = 4096
# Below this much work in seconds, starting worker processes costs more than it saves.
_IN_PROCESS_SECONDS = 20.0
# About a fortieth of a pass holds the interpreter's lock, so more threads would wait for it.
_THREADS_A_PROCESS = 16


def plan_system(
    source: Source,
    n_components: int,
    *,
    needs_of: type[Footprint] = Footprint,
    precision: str = "single",
    n_folds: int = 1,
    fold_by: str = "auto",
    can_strip: bool = False,
    takes_sparse: bool = False,
    begins_on_sample: bool = False,
    n_workers: int | None = None,
    n_threads: int | None = None,
    allowed_bytes: int | None = None,
    **more: Any,
) -> Plan:
    """Plan a fit whose system has these needs; `more` are fields of `Footprint`.

    With `takes_sparse` the features of sparse rows are made of what is stored.  A fit that
    `begins_on_sample` has sums of the sample before, whose rows are dealt to folds one by one.
    """
    n, p, q, D = source.n_samples, source.n_features, source.n_targets, n_components
    itemsize = dtype_of_features(precision).itemsize
    stored = takes_sparse and source.sparse_row_bytes
    width = min(p, source.sparse_row_bytes // source.dtype.itemsize) if stored else p
    chunks = needs_of.chunks(source, D, itemsize, n_folds)
    shards, shard_rows, block_rows = chunks
    if fold_by == "auto":
        n_dealt = needs_of.n_dealt(chunks, source, itemsize * D)
        fold_by = "shards" if n_dealt >= SHARDS_A_FOLD * n_folds else "rows"
    needs = needs_of(
        source,
        D,
        itemsize,
        n_shards=len(shards),
        shard_rows=shard_rows,
        block_rows=block_rows,
        precision=precision,
        n_folds=n_folds,
        width=width,
        # Rows that are dealt one by one reach every fold.
        folds_at_once={"shards": 1, "blocks": min(2, n_folds)}.get(fold_by, n_folds),
        **more,
    )

    of_sample = replace(needs, folds_at_once=n_folds, n_shards=-(-needs.n_sample // block_rows))

    def process_bytes(threads: int, workers: int, n_strips: int = 1) -> int:
        held = needs.process(threads, n_strips, workers)
        if begins_on_sample:
            held = max(held, of_sample.process(threads, n_strips, workers))
        return held + needs.carried(workers)

    def room(processes: int) -> int:
        """Return what each may use, of workers beside this process that receives the model."""
        received, free = needs.receiving(), available_bytes(max(processes, 1))
        return free - (min(received // processes, free // 2) if processes else 0)

    def threads_that_fit(most: int, room: int) -> int:
        return next((t for t in range(most, 1, -1) if process_bytes(t, 0) <= room), 1)

    cores, blas = usable_cores(), 1
    if n_workers is None:
        threads = min(cores, _THREADS_A_PROCESS)
        seconds = needs.pass_flops(len(shards)) / (rough_flops_per_second(precision) * threads)
        free = room(0) if allowed_bytes is None else allowed_bytes
        n_workers, n_threads = 0, threads_that_fit(threads, free)
        # Rows that come with tasks would be held in workers again.
        if seconds > _IN_PROCESS_SECONDS and not source.comes_with_tasks:
            # Of several numbers of processes that keep most cores busy, with as many threads each,
            # the largest, since a process does more than products.
            most = max((free - needs.receiving()) // process_bytes(1, 0), 1)
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
        needed = {k: process_bytes(n_threads, n_workers, k) for k in _STRIPS}
        fits = (k for k, held in needed.items() if held <= allowed_bytes)
        n_strips = next(fits, min(_STRIPS, key=lambda k: needed[k]))
    return (needs.plan_class or Plan)(
        n_rows=n,
        n_features=p,
        n_targets=q,
        n_components=D,
        precision=precision,
        shard_rows=shard_rows,
        n_shards=len(shards),
        block_rows=block_rows,
        column_block_rows=min(column_block_rows(source), shard_rows),
        graph_tasks=2 * len(shards),
        flops=needs.flops,
        n_workers=n_workers,
        n_threads=n_threads,
        blas_threads=blas,
        fold_by=fold_by,
        worker_bytes=process_bytes(n_threads, n_workers, n_strips),
        client_bytes=needs.receiving(),
        allowed_bytes=allowed_bytes,
        index_bytes=needs.index,
        carried_bytes=needs.carried(n_workers),
        n_strips=n_strips,
        row_bytes=source.row_bytes,
        sum_bytes=needs.folds_at_once * needs.sums(n_strips),
        n_folds=n_folds,
        checkpoint_bytes=needs.saving(math.isqrt(len(shards)) + 1, n_strips),
    )


def plan_fit(
    source: Source,
    options: FitOptions,
    n_sample: int | None = None,
    *,
    empty_folds: bool = False,
    solves_by_passes: bool = False,
    may_solve_by_passes: bool = False,
    **job: Any,
) -> Plan:
    """Return the plan of a fit: what its options say, with what is counted of the job.

    Every fold needs a row, unless there may be `empty_folds`, as of rows that come to others.
    Where the D x D system has no room, or takes longer and has no more features than rows,
    conjugate gradients solve if they may.
    """
    if not empty_folds:
        check_folds(options, source)
    D, from_rows = options.components_for(source.n_features), options.family.rows_a_feature > 0
    plan_of = partial(
        plan_system,
        source,
        D,
        precision=options.precision,
        n_folds=options.n_parts,
        fold_by=options.fold_by,
        is_listed=options.fold_column is not None,
        n_sample=n_sample or options.sample_rows(source),
        can_strip=options.can_strip,
        takes_sparse=options.family.made.takes_sparse and not options.is_identity,
        from_rows=from_rows,
        **job,
    )

    def by_passes() -> Any:
        needs = extension("gradients", "iterative_plan").footprint_of(options.own_solver)
        return plan_of(needs_of=needs, n_terms=options.n_terms(source.n_features))

    if solves_by_passes:
        found: Plan = by_passes()
        return found
    plan = plan_of(needs_of=_needs_of(options))
    # Double precision is for small penalties, which take many iterations, each of which would
    # compute lazy rows again.
    suits = plan.precision == "single" and options.own_solver is None
    suits = suits and not source.loads_whole_shards and _ALWAYS_DIRECT < D <= source.n_samples
    if may_solve_by_passes and (suits or not plan.fits):
        other = by_passes()
        is_faster = suits and other.is_faster(plan, from_rows=from_rows)
        if (is_faster or not plan.fits) and other.fits:
            plan = other
    return plan


def _needs_of(options: FitOptions) -> Any:
    """Return what the D x D system needs."""
    if options.precision in LEVELS:
        return extension("integers", "integer_system").IntegerFootprint
    own = options.own_solver
    return Footprint if own is None else own.footprint


class Job(NamedTuple):
    """What is known of a fit before its rows: the options of its passes, and what follows them."""

    options: FitOptions
    plan_arguments: dict[str, Any]  # of `plan_fit`, by keyword: what it counts of the solution
    for_rows: Callable[[FitOptions, Source], FitOptions] = lambda options, _: options

    def plan(self, source: Source, **resources: Any) -> Plan:
        """Return the plan of a fit to these rows, of whose size options may be chosen."""
        options = self.for_rows(self.options, source)
        return plan_fit(source, options, **resources, **self.plan_arguments)


def plan_here(source: Source, options: FitOptions, n_sample: int | None = None, **job: Any) -> Plan:
    """Return the plan of a fit on what the current scheduler offers, whether it fits or not."""
    return plan_fit(source, options, n_sample, **current_resources()._asdict(), **job)


def tell_of_plan(source: Source, options: FitOptions, plan: Plan, solution: dict[str, Any]) -> None:
    """Tell what follows the main pass, as the operations of all slots in that time.

    Folds are solved side by side, then the whole; before that all rows may be left out in turn.
    """
    D, n_slots = options.components_for(source.n_features), current_resources().n_slots
    rounds = -(-options.n_folds // n_slots) if options.n_folds > 1 else 0
    cubes = _FACTORISED if solution.get("fixed_alpha") else _WHOLE + _A_FOLD * rounds
    flops = plan.solving_flops(cubes) * n_slots
    if n_loo_penalties := solution.get("n_loo_penalties", 0):
        width = source.n_features + n_loo_penalties * source.n_targets
        flops += 2 * fit_flops(source.n_samples, width, D, 1)
    tell_of_job("solution planned", flops=flops)
