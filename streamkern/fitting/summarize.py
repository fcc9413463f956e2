"""The first call of a fit: what its columns hold, whether its rows crowd, and its folds."""

from dataclasses import replace
from functools import partial

import numpy as np

from streamkern.choice.crowding import Crowding, NewValues, crowding
from streamkern.errors import DataError, warn
from streamkern.kernels import ShiftInvariantKernel
from streamkern.parameters.parameters import AUTO
from streamkern.passes.column_summary import ColumnSummary, read_columns, warn_of_outliers
from streamkern.passes.fit_context import FitContext
from streamkern.passes.fold_rules import placed_folds, region_folds
from streamkern.sources.columns import recipe_of
from streamkern.statistics import Folds


def summarize(context: FitContext) -> tuple[FitContext, ColumnSummary]:
    """Read what the columns of the rows hold, and let folds see the gaps where rows crowd.

    Where predictions swing in these gaps, landmarks take the place of a map that is open.
    """
    summary = read_columns(context)
    _check_targets(context, summary)
    context = context.told(scale=context.options.scale)
    if context.fold_rule is None:
        context = replace(context, fold_rule=_regions(context, summary))
    if context.like is None:
        warn_of_outliers(context.source, summary)
    crowded = None if context.grows else _crowding(context, summary)
    if crowded is None:
        return context, summary
    context = context.told(crowding=crowded._asdict() | {"note": crowded.note()})
    if isinstance(crowded, NewValues):
        return context, summary
    warn(crowded.note())
    options = context.options
    if context.plan.fold_by != "shards":  # which are blocks
        options = replace(options, fold_by=crowded.fold_by)
    if crowded.swings and options.may_take_landmarks:
        options = replace(options, feature_map="nystroem", metric=None)
    n_sample = max(context.n_sample, options.sample_rows(context.source))
    context = context.planned_again(options, n_sample)
    if len(summary.sample.X) < min(n_sample, summary.passed.n_rows):
        summary = read_columns(context, "columns again")
    by_region = context.plan.fold_by == "space"
    folds = (
        _regions(context, summary)
        if by_region
        else placed_folds(context.source, context.plan, options)
    )
    return replace(context, fold_rule=folds, crowding=crowded), summary


def _regions(context: FitContext, summary: ColumnSummary) -> Folds:
    return region_folds(summary, context.options.n_folds, context.options.random_state)


def _check_targets(context: FitContext, summary: ColumnSummary) -> None:
    low, high = context.target_range or (-np.inf, np.inf)
    p = context.source.n_features
    least, largest = summary.columns.minimum[p:], summary.columns.maximum[p:]
    for j in np.flatnonzero((least < low) | (largest > high)).tolist():
        raise DataError(
            f"target {j} has values from {least[j]:.6g} to {largest[j]:.6g}, which are not all "
            f"in target_range, from {low:g} to {high:g}; give a wider one (--range), or leave "
            f"out the rows outside."
        )


def _crowding(context: FitContext, summary: ColumnSummary) -> Crowding | NewValues | None:
    """Return how rows crowd, where folds choose the penalty and nobody named them.

    A field holds where no rows are.
    """
    options = context.options
    of_distances = isinstance(options.kernel, ShiftInvariantKernel) and not options.is_identity
    is_open = options.n_folds > 1 and options.fold_by == AUTO and not options.is_field
    if not (is_open and of_distances) or context.source.sparse_row_bytes:
        return None
    described = context.source.describe()
    # Files that a table was converted to have no columns that folds could go by.
    recipe = None if described.get("kind") == "hdf5" else recipe_of(described)
    regions = partial(_regions, context, summary)
    return crowding(summary, regions, options.random_state, recipe)
