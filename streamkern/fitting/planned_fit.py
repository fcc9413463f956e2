"""The plan of a fit, made before its passes: what is asked of its rows, and what that takes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from streamkern.errors import DataError, ParameterError
from streamkern.features.metric import check_kernel_in_metric, learning_of
from streamkern.kernels import Kernel, Linear
from streamkern.parameters.fit_options import SAMPLE_ROWS, FitOptions
from streamkern.parameters.planning import plan_here
from streamkern.passes.fit_context import FitContext
from streamkern.passes.fold_rules import column_folds, placed_folds
from streamkern.sources import Source

if TYPE_CHECKING:
    from streamkern.parameters.template import Template
    from streamkern.statistics import Folds

# Rows that a metric is learnt of, at the least.
_FEWEST_ROWS = 60
# What a context is told as it is.
_OF_CONTEXT = ("like", "indexed", "more_to_come", "penalty", "target_range", "folder", "searched")


def planned_fit(
    source: Source,
    options: FitOptions,
    *,
    pairs: Sequence[tuple[Kernel, str]] = (),
    n_sample: int | None = None,
    needs_targets: bool = True,
    **job: Any,
) -> FitContext:
    """Return the context of a fit, with its plan and the folds that are known before the rows.

    Of several `pairs` of kernel and map, the plan is for the one that takes most.  `job` is what
    `FitContext` is told of the fit, and what `plan_fit` counts of what follows it.
    """
    given = pairs or [(options.kernel, options.feature_map)]
    each = [replace(options, kernel=kernel, feature_map=name) for kernel, name in given]
    like: Template | None = job.get("like")
    if like is not None:
        like.check(source)
        n_sample = SAMPLE_ROWS
    else:
        check_metric_of(options, [kernel for kernel, _ in given], source)
        n_sample = max(n_sample or 0, *(one.sample_rows(source) for one in each))
    told = {name: job.pop(name) for name in _OF_CONTEXT if name in job}
    empty_folds = like is not None or told.get("more_to_come", False)
    solution = job | {"indexed": told.get("indexed", False), "empty_folds": empty_folds}
    heaviest = max(each, key=lambda one: one.cost)
    plan = plan_here(source, heaviest, n_sample, **solution)
    plan = plan.accepted(needs_targets=needs_targets)
    context = FitContext(source, options, plan, n_sample, plan_arguments=solution, **told)
    return _with_known_folds(context)


def _with_known_folds(context: FitContext) -> FitContext:
    """Return the context with the folds that are known before the rows are read.

    Folds of regions follow from the first pass.
    """
    options, plan = context.options, context.plan
    by_column = options.n_folds > 1 and options.fold_column is not None
    if plan.fold_by != "space" and not by_column:
        folds: Folds = placed_folds(
            context.source,
            plan,
            options,
            empty_folds=context.empty_folds,
            turned=context.like is not None,
        )
        return replace(context, fold_rule=folds)
    if context.grows:
        raise ParameterError(
            f"folds by {plan.fold_by} are of rows that are all there, but moments are for "
            f"others to come; take fold_by 'rows' or 'blocks' (--fold-by rows)."
        )
    if by_column:
        return replace(context, fold_rule=column_folds(context.source, options))
    if context.source.sparse_row_bytes:
        raise ParameterError(
            "regions are of distances between all inputs, but these rows are sparse; take "
            "fold_by 'rows' or 'blocks' (--fold-by rows), or dense rows."
        )
    return context


def check_metric_of(options: FitOptions, kernels: Sequence[Kernel], source: Source) -> None:
    """Raise an error unless a metric can be learnt, or taken, for these kernels and rows."""
    if options.metric is None:
        return
    if learning_of(options.metric) and source.n_samples < _FEWEST_ROWS:
        raise DataError(
            f"a metric is learnt of at least {_FEWEST_ROWS} rows, but there are "
            f"{source.n_samples}; add rows, or leave the metric out."
        )
    for kernel in kernels:
        check_kernel_in_metric(Linear() if options.is_identity else kernel)
