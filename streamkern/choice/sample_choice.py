"""What is open of the features of a fit, by the sample of the first pass.

Scale and kernel are chosen by small fits and their held-out errors.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

from streamkern.choice.guarded_kernel import with_guarded_kernel
from streamkern.choice.held_out_fit import TRAINING, HeldOutFit, HeldOutResult, far_steps
from streamkern.choice.input_weights import (
    DESCENT_TARGETS,
    ROWS_AN_INPUT,
    descent_rows,
    has_descent,
    weights_by_descent,
)
from streamkern.choice.small_fit import Sample, kernels_of_map
from streamkern.choice.time_limit import TimeLimit
from streamkern.engine.scheduler import compute, delayed, scatter
from streamkern.features.metric import GivenMetric, metric_of
from streamkern.kernels import Gaussian, Laplacian, ShiftInvariantKernel
from streamkern.parameters.cost_estimate import rough_flops_per_second
from streamkern.parameters.fit_options import CHOICE_ROWS, OF_CATEGORIES, FitOptions
from streamkern.parameters.parameters import AUTO, FEWEST_ROWS
from streamkern.passes.column_summary import ColumnSummary
from streamkern.passes.fit_context import FitContext
from streamkern.registry import extension
from streamkern.runtime.threads import blas_threads

# What the kernel 'auto' is chosen from: what suits most tables, and what is smooth.
_KERNELS = Laplacian(), Gaussian()
# And the scale 'auto', beside 'common' of inputs of one unit, and those of categories.
_SCALES = "standard", "robust"
# Features of the small fits at the most, and half octaves from a kernel's own length scale.
_COMPONENTS, _STEPS = 1024, (0, -2, 2)
# Rows of a descent of weights at the least and the most, and its multiply-adds and bytes.
_DESCENT_ROWS, _DESCENT_FLOPS, _DESCENT_BYTES = (200, 700), 60e9, 40e6
# What they take of the seconds by the formula, where nothing else runs.
_TIMES = 8.5


def chosen_features(
    context: FitContext, summary: ColumnSummary
) -> tuple[FitContext, ColumnSummary, Any]:
    """Return the context with nothing left open, the summary in its metric, and how it was learnt.

    A metric is learnt by an extension.
    """
    context = with_guarded_kernel(context, summary)
    context, summary = with_chosen_scale(context, summary, weighs=True)
    options, learnt = context.options, None
    if isinstance(options.metric, GivenMetric):
        summary = in_given_metric(summary, options.metric)
    elif options.metric is not None:
        pairs = [(options.kernel, options.feature_map)]
        learn = extension("search", "metric_learning").learnt_metric
        learnt = learn(summary, options, pairs, context.plan)
        best = next(iter(learnt.metrics.values()))
        summary, ((kernel, _),) = best.summary, best.pairs
        context = replace(context, options=replace(options, kernel=kernel))
    if context.options.chooses_kernel:
        choose = extension("fields", "field_kernel").with_chosen_kernel
        context, summary = choose(context, summary)
    return context, summary, learnt


def in_given_metric(summary: ColumnSummary, metric: GivenMetric) -> ColumnSummary:
    with blas_threads(1):  # roots are part of the result
        return summary.in_metric(metric.linear(summary.standardizer.columns))


def all_at_once(calls: Sequence[Any], **_: Any) -> list[Any]:
    """Make all trials: a search within seconds makes some."""
    return TimeLimit().compute_all(calls)


def with_chosen_scale(
    context: FitContext, summary: ColumnSummary, make: Any = all_at_once, *, weighs: bool = False
) -> tuple[FitContext, ColumnSummary]:
    """Choose the scale of inputs and the kernel, if these are open; that of a field is not yet.

    The first of either stays unless others are better by more than a standard error.  `make` makes
    trials, the fewest or more of them.  A fit that `weighs` inputs with an open kernel tries that.
    """
    begun, options = time.perf_counter(), context.options
    is_open = options.chooses_kernel and not options.is_field
    is_field = options.chooses_kernel and options.is_field
    if options.scale != AUTO and not is_open:
        return context, summary
    scales, options = {options.scale: summary}, replace(options, chooses_kernel=is_open)
    if options.scale == AUTO:
        options, names = replace(options, scale="standard"), list(_SCALES)
        names += ["common"] * summary.one_unit + [*OF_CATEGORIES] * bool(summary.categories)
        scales = {name: summary.in_scale(name, options.precision) for name in names}
    # Others were skipped, or do not count.
    few = is_open and len(summary.sample.X) < FEWEST_ROWS
    if few or options.is_identity or not isinstance(options.kernel, ShiftInvariantKernel):
        options = replace(options, chooses_kernel=is_field)
        return replace(context, options=options).told(scale=options.scale), summary
    sample = Sample.of(summary, CHOICE_ROWS)
    fits = list(_small_fits(sample, options, scales, make))
    by_error = sorted(fits, key=lambda fit: fit[1].relative_mse)
    # The last of every name is the best.
    of_scales = {name: tried for scale in scales for name, tried in by_error[::-1] if name == scale}
    first = fits[0] if is_open else next(fit for fit in by_error if fit[0] == options.scale)
    scale, best = next((fit for fit in by_error if fit[1].beats(first[1])), first)
    facts: dict[str, Any] = {"scale": scale}
    if len(scales) > 1:
        facts["scale_errors"] = _errors(of_scales)
    if is_open:
        weighted = _with_weights(sample, scales[scale], options, best) if weighs else None
        mine = [tried for name, tried in reversed(by_error) if name == scale]
        facts["kernel_errors"] = _errors({each.kernel.name: each for each in mine})
        if weighted is not None:
            facts["metric_errors"] = _errors({"plain": best, "weights": weighted[1]})
            if weighted[1].beats(best):
                metric, best = weighted
                options = replace(options, metric=metric)
        options = replace(options, kernel=best.kernel)
    options = replace(options, scale=scale, chooses_kernel=is_field)
    context = context.told(**facts, seconds={"scale": time.perf_counter() - begun})
    return replace(context, options=options), scales[scale]


def _errors(tried: Mapping[str, HeldOutResult]) -> dict[str, float]:
    """Return errors over the deviation of the targets."""
    return {name: math.sqrt(each.relative_mse) for name, each in tried.items()}


def _with_weights(
    sample: Sample, summary: ColumnSummary, options: FitOptions, best: HeldOutResult
) -> tuple[GivenMetric, HeldOutResult] | None:
    """Return weights of the inputs by descent, and the best small fit with them.

    None where rows are too few to tell inputs apart, or inputs and targets too many.
    """
    standardizer, n_targets = summary.standardizer, summary.targets.shape[1]
    n_groups, p = int(summary.groups.max()) + 1, len(standardizer.columns)
    n_fitted = int(TRAINING * len(sample.rows))
    n = descent_rows(n_fitted, p, _DESCENT_FLOPS, _DESCENT_BYTES, _DESCENT_ROWS)
    few = n < max(_DESCENT_ROWS[0], ROWS_AN_INPUT * n_groups)
    if few or n_groups == 1 or n_targets > DESCENT_TARGETS or not has_descent(best.kernel):
        return None
    rows = scatter(standardizer(sample.rows[:n]))
    given = best.kernel, rows, sample.y, sample.s, summary.groups
    found = compute(delayed(weights_by_descent, *given, name="input-weights"))
    metric = GivenMetric(metric_of(found, standardizer.columns, standardizer.n_features))
    scales = {options.scale: in_given_metric(summary, metric)}
    own = replace(best.kernel, length_scale="median")
    options = replace(options, kernel=own, chooses_kernel=False)
    fits = [fit for _, fit in _small_fits(sample, options, scales, all_at_once)]
    return metric, min(fits, key=lambda fit: fit.relative_mse)


def _small_fits(
    sample: Sample, options: FitOptions, scales: Mapping[str, ColumnSummary], make: Any
) -> Iterator[tuple[str, HeldOutResult]]:
    """Return fits to some rows in every scale, with every kernel that is open or the one given."""
    D, parts = min(options.n_components, _COMPONENTS), list[Any]()
    for name, scaled in scales.items():
        standardizer, columns = scaled.standardizer, scaled.standardizer.columns
        fit = HeldOutFit(options, D, len(sample.rows), standardizer)
        with blas_threads(1):  # length scales are part of the result
            rows, named = standardizer(sample.rows), _kernels(sample.rows.shape[1], options)
            kernels = [each.resolved(rows, columns, sample.weights) for each in named]
        for own in (each.restricted(columns) for each in kernels):
            steps = (*_STEPS, *far_steps(own, rows))
            call = partial(fit.held_out_call, "sample-try", own, sample=sample, keeps_coef=False)
            calls = [call(step=step) for step in steps]
            parts += zip(range(len(calls)), [name] * len(calls), calls, strict=True)
    # Own length scales come first, in case there is no time for others.
    _, names, several = zip(*sorted(parts, key=itemgetter(0)), strict=True)
    expected = _TIMES * fit.flops / rough_flops_per_second(options.precision)
    fewest = len(scales) * len(kernels)
    return zip(names, make(several, fewest=fewest, expected=expected), strict=False)


def _kernels(n_features: int, options: FitOptions) -> list[Any]:
    """Return the kernel, or if it is open those that the map has features of."""
    open_ones = _KERNELS if options.chooses_kernel else ()
    return kernels_of_map(open_ones, options, n_features) or [options.kernel]
