"""The job of a fit: columns and a sample first, then moments."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamkern.errors import ParameterError, warn
from streamkern.features.metric import GivenMetric
from streamkern.kernels import ShiftInvariantKernel
from streamkern.models.checkpoint_job import RowPasses, checkpointed, hash_of_rows
from streamkern.models.data_moments import DataMoments
from streamkern.models.field_kernel import with_chosen_kernel
from streamkern.models.moments_pass import moments_pass
from streamkern.parameters.fit_options import SAMPLE_ROWS, FitOptions
from streamkern.parameters.fit_report import FitReport
from streamkern.parameters.job_plan import Plan
from streamkern.parameters.parameters import AUTO
from streamkern.parameters.penalty_options import PenaltyOptions
from streamkern.parameters.plan import plan_for
from streamkern.parameters.template import Template
from streamkern.sources import Source
from streamkern.statistics import Folds, RowFolds, RowIndex, block_folds, shard_folds
from streamkern.statistics.folds import TurnedFolds
from streamkern.tune.budget import Clock
from streamkern.tune.candidates import Contender
from streamkern.tune.column_pass import ColumnPass, run_column_pass, warn_of_outliers
from streamkern.tune.metric_beginnings import Pair
from streamkern.tune.metric_learning import LearntMetric, check_metric_of, in_metric
from streamkern.tune.row_order import order_note
from streamkern.tune.sample_choice import chosen_on_sample
from streamkern.tune.trials import ISOTROPIC, STANDARD

# Rows, or shards, for every fold: fewer are dealt unevenly.
_FEW = 10


def fit_moments(
    source: Source,
    options: FitOptions,
    *,
    checkpoint: str | Path | None = None,
    penalty: PenaltyOptions | None = None,
    **job: Any,
) -> DataMoments:
    """Read the rows twice, lightly for the columns and a sample, then for the moments.

    Where the plan `solves_by_passes`, they may be read more often, for moments of the combinations
    of features that the choice of the penalty and the solution need.  `job` is as of `fit_job`.
    """
    with fit_job(source, options, checkpoint, **job) as (rows, (best, *_), learnt):
        passes, seen = with_chosen_kernel(rows, best.column_pass)
        return moments_pass(passes, seen, learnt=learnt, penalty=penalty)


@contextmanager
def fit_job(
    source: Source,
    options: FitOptions,
    folder: str | Path | None,
    *,
    pairs: Sequence[Pair] = (),
    n_sample: int | None = None,
    like: Template | None = None,
    indexed: bool = False,
    more_to_come: bool = False,
    searched: Sequence[Any] = (),
    clock: Clock | None = None,
    **solution: Any,
) -> Iterator[tuple[RowPasses, list[Contender], LearntMetric | None]]:
    """Hold the passes of a fit after the column pass, the best metrics, and how they were learnt.

    Without `pairs` of kernel and map to choose from, the passes have the kernel in the best metric;
    with them the plan is of the map that is made of most rows, and of one that makes features where
    any does.  With a `clock` metrics are learnt, while there is time, and the last contender is a
    plain fit: of the first pair, to standardised inputs if the scale was chosen.  Where the kernel
    is open, it is what a fit would choose, and the one before has the standardised inputs and no
    kernel.  `solution` is what `plan_for` counts of what follows.
    """
    given = pairs or [(options.kernel, options.feature_map)]
    each = [replace(options, kernel=kernel, feature_map=name) for kernel, name in given]
    if like is not None:
        like.check(source)
        n_sample = SAMPLE_ROWS
    else:
        check_metric_of(options, [kernel for kernel, _ in given], source)
        n_sample = max(n_sample or 0, *(one.sample_rows(source) for one in each))
    heaviest = max(each, key=lambda one: one.heaviness)
    solution |= {"indexed": indexed, "few_rows": like is not None or more_to_come}
    plan = plan_for(source, heaviest, n_sample, **solution)
    # Of rows that come in single shards, one fold would get all.
    few_rows = like is not None or (more_to_come and plan.fold_by != "shards")
    dealt = _folds(source, plan, options, few_rows=few_rows)
    folds = dealt if like is None else _turned(dealt, source, plan, options)
    job: Any = {"like": like, "indexed": indexed, "searched": searched}
    with checkpointed(folder, source, options, plan, **job) as saved:
        index = RowIndex(folds) if indexed else None
        how: Any = {"like": like, "index": index, "more_to_come": more_to_come}
        seen = run_column_pass(source, options, plan, n_sample, checkpoint=saved, **how)
        wanted = options if like is None else replace(options, metric=None)  # its map has one
        scaled = FitReport(scale=options.scale)
        plain, given_scale = seen, options.scale
        kernel_is_open = options.chooses_kernel and not options.has_grid
        if (options.scale == "auto" or kernel_is_open) and like is None:
            choosing = replace(options, chooses_kernel=kernel_is_open)
            seen, chosen_options, scaled = chosen_on_sample(seen, choosing, clock)
            # The kernel of a field is still to be chosen, in windows.
            still = options.chooses_kernel and not kernel_is_open
            options = replace(chosen_options, chooses_kernel=still)
            wanted = replace(wanted, scale=options.scale)
            given = given if pairs else [(options.kernel, options.feature_map)]
        if like is None:
            scaled |= _warned(source, seen, options, plan, more_to_come=more_to_come)
        contenders, learnt = in_metric(seen, wanted, given, plan, clock)
        chosen = wanted.scale != given_scale
        if clock is not None and (learnt is not None or chosen):
            name, scale = (STANDARD, "standard") if chosen else (ISOTROPIC, None)
            if isinstance(options.metric, GivenMetric):
                plain = in_metric(plain, wanted, given, plan)[0][0].column_pass
            default = Contender(name, plain, given[:1], scale, is_default=True)
            if kernel_is_open:
                if learnt is not None:  # linear ridge may be compared
                    contenders.append(default._replace(pairs=[], is_default=False))
                usual = [(options.kernel, options.feature_map)]
                default = Contender(ISOTROPIC, seen, usual, is_default=True)
            contenders.append(default)
        if not pairs:
            options = replace(options, kernel=contenders[0].pairs[0][0])
        passes = RowPasses(source, options, plan, saved, folds, like, few_rows, scaled)
        yield passes, contenders, learnt


def _warned(
    source: Source, seen: ColumnPass, options: FitOptions, plan: Plan, *, more_to_come: bool
) -> FitReport:
    """Warn of outliers, and of rows that crowd where folds are of rows and nobody said so."""
    warn_of_outliers(source, seen)
    is_open = options.n_folds > 1 and options.fold_by == AUTO and plan.fold_by == "rows"
    of_distances = isinstance(options.kernel, ShiftInvariantKernel) and not options.is_identity
    if more_to_come or not (is_open and of_distances) or options.has_grid:  # which holds in gaps
        return {}
    if note := order_note(seen, options.random_state):
        warn(note)
    return {"order_note": note} if note else {}


def _turned(folds: Folds, source: Source, plan: Plan, options: FitOptions) -> Folds:
    """Return folds that follow from what rows hold where few come, which may go on and on."""
    K, n_units = options.n_folds, source.n_samples
    if plan.fold_by == "shards":
        n_units = plan.n_shards
    if K == 1 or n_units >= _FEW * K:
        return folds
    known = source.tolerant() if options.on_bad_rows == "skip" else source
    return TurnedFolds(K, folds, int(hash_of_rows(known), 16) % K)


def _folds(source: Source, plan: Plan, options: FitOptions, *, few_rows: bool) -> Folds:
    """Return how rows, of which the plan has seen that there are enough, are dealt to folds."""
    K, by = options.n_folds, plan.fold_by
    if K == 1:
        return block_folds(source.n_samples, 1)
    if by == "shards":
        shards = source.shards(plan.shard_rows, plan.fewest_rows)
        if len(shards) < K and not few_rows:
            raise ParameterError(
                f"{K} folds need as many shards, but there are {len(shards):,}; take fewer folds, "
                f"or deal rows with fold_by 'rows' (--fold-by rows)."
            )
        return shard_folds(shards, K, options.random_state)
    if by == "blocks":
        return block_folds(source.n_samples, K)
    return RowFolds(K, options.random_state)
