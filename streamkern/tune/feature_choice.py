"""What is open of the features of a fit, and what a search compares: by the first pass's sample."""

from collections.abc import Sequence
from dataclasses import replace

from streamkern.features.metric import GivenMetric
from streamkern.parameters.fit_options import CHOICE_ROWS
from streamkern.parameters.parameters import AUTO
from streamkern.passes.column_summary import ColumnSummary, block_of
from streamkern.passes.fit_context import FitContext
from streamkern.passes.fold_rules import region_folds
from streamkern.tune.budget import Clock
from streamkern.tune.field_kernel import with_chosen_kernel
from streamkern.tune.metric_beginnings import Pair
from streamkern.tune.metric_learning import LearntMetric, in_metric
from streamkern.tune.sample_choice import chosen_on_sample, chosen_where_rows_crowd
from streamkern.tune.settings import MetricSettings
from streamkern.tune.trials import ISOTROPIC, STANDARD


def chosen_features(
    context: FitContext, summary: ColumnSummary
) -> tuple[FitContext, ColumnSummary, LearntMetric | None]:
    """Return the context with nothing left open, the summary in its metric, and the rounds."""
    context = with_guarded_kernel(context, summary)
    context, summary = with_chosen_scale(context, summary)
    options = context.options
    pairs = [(options.kernel, options.feature_map)]
    (best, *_), learnt = in_metric(summary, options, pairs, context.plan)
    context = replace(context, options=replace(options, kernel=best.pairs[0][0]))
    return *with_chosen_kernel(context, best.summary), learnt


def with_guarded_kernel(context: FitContext, summary: ColumnSummary) -> FitContext:
    """Choose an open kernel by regions, where predictions swing far from rows that crowd."""
    options, crowding = context.options, context.crowding
    if crowding is None or not (crowding.swings and options.chooses_kernel):
        return context
    regions = context.folds  # which fits in the order of rows deal by blocks instead
    if context.plan.fold_by != "space":
        regions = region_folds(summary, options.n_folds, options.random_state)
    folds = regions.of(block_of(summary.sample.first(CHOICE_ROWS)))
    if options.scale == AUTO:
        options = replace(options, scale="standard")
    options, facts = chosen_where_rows_crowd(summary, options, folds)
    return replace(context, options=options).told(**facts)


def with_chosen_scale(
    context: FitContext, summary: ColumnSummary, clock: Clock | None = None
) -> tuple[FitContext, ColumnSummary]:
    """Choose the scale of inputs and the kernel, if these are open; that of a field is not yet."""
    options = context.options
    kernel_is_open = options.chooses_kernel and not options.has_grid
    if options.scale != AUTO and not kernel_is_open:
        return context, summary
    choosing = replace(options, chooses_kernel=kernel_is_open)
    summary, chosen, facts = chosen_on_sample(summary, choosing, clock)
    is_field = options.chooses_kernel and not kernel_is_open
    options = replace(chosen, chooses_kernel=is_field)
    return replace(context, options=options).told(**facts), summary


def contenders_of(
    context: FitContext, summary: ColumnSummary, pairs: Sequence[Pair], clock: Clock | None
) -> tuple[FitContext, list[MetricSettings], LearntMetric | None]:
    """Return the best metrics with their kernels and maps, and how the metrics were learnt.

    By a clock metrics are learnt while there is time, and the last contender is a plain fit: of the
    first pair, to standardised inputs if the scale was chosen.  Where the kernel is open, it is
    what a fit would choose, and the one before has the standardised inputs and no kernel.
    """
    context = with_guarded_kernel(context, summary)
    options, given, plain = context.options, pairs, summary
    given_scale, kernel_is_open = options.scale, options.chooses_kernel and not options.has_grid
    if context.crowding is not None and (options.kernel, options.feature_map) not in pairs:
        given = [(options.kernel, options.feature_map)]  # which holds where no rows are
    context, scaled = with_chosen_scale(context, summary, clock)
    options = context.options
    contenders, learnt = in_metric(scaled, options, given, context.plan, clock)
    chosen = options.scale != given_scale
    if clock is None or (learnt is None and not chosen):
        return context, contenders, learnt
    name, scale = (STANDARD, "standard") if chosen else (ISOTROPIC, None)
    if isinstance(options.metric, GivenMetric):
        plain = in_metric(plain, options, given, context.plan)[0][0].summary
    default = MetricSettings(name, plain, given[:1], scale, is_default=True)
    if kernel_is_open:
        if learnt is not None:  # linear ridge may be compared
            contenders.append(default._replace(pairs=[], is_default=False))
        usual = [(options.kernel, options.feature_map)]
        default = MetricSettings(ISOTROPIC, scaled, usual, is_default=True)
    return context, [*contenders, default], learnt
