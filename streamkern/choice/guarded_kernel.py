"""The kernel of rows that crowd: rough, of a short length scale that costs next to nothing."""

import math
import time
from dataclasses import replace
from operator import itemgetter
from typing import Any

from streamkern.choice.cross_validated_fit import CrossValidatedFit
from streamkern.choice.small_fit import kernels_of_map
from streamkern.engine.scheduler import compute_all, delayed, scatter
from streamkern.kernels import Laplacian, Matern
from streamkern.parameters.fit_options import CHOICE_ROWS
from streamkern.parameters.parameters import AUTO
from streamkern.passes.column_summary import ColumnSummary, block_of
from streamkern.passes.fit_context import FitContext
from streamkern.passes.fold_rules import region_folds
from streamkern.runtime.threads import blas_threads

# What kernels are chosen from: what is rough is not sure of gaps.  How often their
# length scales are halved at the most, how many are tried at once, and by how much the mean squared
# error between neighbours may rise for a shorter one.
_ROUGH, _HALVINGS, _AT_ONCE, _NEXT_TO_NOTHING = (Laplacian(), Matern(1.5)), 8, 2, 1.15
_COMPONENTS, _ROWS_A_FEATURE = 768, 4


def with_guarded_kernel(context: FitContext, summary: ColumnSummary) -> FitContext:
    """Choose an open kernel by regions, where predictions swing far from rows that crowd.

    It is the rough one that predicts best between neighbours.  At long length scales only large
    penalties keep predictions from swinging where no rows are, and at short ones the kernel does.
    So length scales are halved while that costs next to nothing, and the shortest of these is
    taken: of all rows, which are denser than the sample, it costs less still.
    """
    options, crowding = context.options, context.crowding
    if crowding is None or not (crowding.swings and options.chooses_kernel):
        return context
    if not (rough := kernels_of_map(_ROUGH, options, context.source.n_features)):
        return context
    begun, regions = time.perf_counter(), context.fold_rule
    if context.plan.fold_by != "space":
        regions = region_folds(summary, options.n_folds, options.random_state)
    folds = regions.of(block_of(summary.sample.first(CHOICE_ROWS)))
    if options.scale == AUTO:
        options = replace(options, scale="standard")
    m, columns = len(folds), summary.standardizer.columns
    weights = None if summary.weights is None else summary.weights[:m]
    with blas_threads(1):  # length scales are part of the result
        X = summary.standardizer(summary.sample.X[:m])
        kernels = [each.resolved(X, columns, weights).restricted(columns) for each in rough]
    sample: Any = *map(scatter, (X, summary.targets[:m], weights, folds)), True
    D = max(min(options.n_components, _COMPONENTS, m // _ROWS_A_FEATURE) // 2 * 2, 2)
    found: list[tuple[int, float, Any]] = []
    for own in kernels:
        fit, errors = CrossValidatedFit(replace(options, kernel=own), D, m), list[float]()
        while not errors or (
            len(errors) < _HALVINGS and errors[-1] <= _NEXT_TO_NOTHING * min(errors)
        ):
            halvings = range(len(errors), len(errors) + _AT_ONCE)
            shorter = [own.stretched(0.5**k) for k in halvings]
            tried = [(fit.cross_validated, each, *sample) for each in shorter]
            made = compute_all([delayed(*each, name="crowded-try") for each in tried])
            errors += [each.relative_mse for each in made]
            found += zip(halvings, errors[halvings[0] :], shorter, strict=True)
    most = _NEXT_TO_NOTHING * min(error for _, error, _ in found)
    cheap = (each for each in found if each[1] <= most)
    _, _, kernel = min(cheap, key=lambda each: (-each[0], each[1]))
    by_error = sorted(found, key=itemgetter(1), reverse=True)
    options = replace(options, kernel=kernel, chooses_kernel=False)
    return replace(context, options=options).told(
        scale=options.scale,
        kernel_errors={each.name: math.sqrt(error) for _, error, each in by_error},
        seconds={"scale": time.perf_counter() - begun},
    )
