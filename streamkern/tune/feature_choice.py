"""What is open of the features of a fit, chosen on the sample of its first pass."""

from dataclasses import replace

from streamkern.parameters.fit_options import CHOICE_ROWS
from streamkern.parameters.parameters import AUTO
from streamkern.passes.column_summary import ColumnSummary, block_of
from streamkern.passes.fit_context import FitContext
from streamkern.passes.fold_rules import region_folds
from streamkern.tune.budget import Clock
from streamkern.tune.field_kernel import with_chosen_kernel
from streamkern.tune.metric_learning import LearntMetric, in_metric
from streamkern.tune.sample_choice import chosen_on_sample, chosen_where_rows_crowd


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
