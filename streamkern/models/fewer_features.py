"""What fewer features come to, beside a fit of so many that conjugate gradients solve it."""

from collections.abc import Callable
from dataclasses import replace

from streamkern.engine.scheduler import shared
from streamkern.features import FeatureMap
from streamkern.parameters.penalty_options import PenaltyOptions
from streamkern.runtime.threads import blas_threads
from streamkern.statistics import ByFold, ToeplitzMoments
from streamkern.tune.fold_solution import nested_sizes
from streamkern.tune.penalty_search import Size, solve_sizes

# Leading features whose moments take about one iteration's pass, and their share of all.
_MOST_COMPONENTS, _PART = 2048, 4


def fewer_features(
    sums: ByFold,
    feature_map: FeatureMap,
    penalty: PenaltyOptions,
    read: Callable[[FeatureMap], ByFold],
    *,
    intercept: bool,
) -> tuple[Size, ...]:
    """Return what leading features of a map come to, each number with a penalty of its own.

    They have the folds of the fit.  Sums of waves tell their moments, of other maps `read` returns
    those of the most.  Without folds, or smaller maps in the map, there are none.
    """
    D = feature_map.n_components
    most = min(D // _PART, _MOST_COMPONENTS)
    sizes = [size for size in nested_sizes(D, feature_map.nesting) if size <= most]
    if not (sizes and penalty.needs_folds):
        return ()
    if isinstance(sums.empty, ToeplitzMoments):
        found = {fold: part.leading(sizes[-1]) for fold, part in sums.parts.items()}
    else:
        parts = read(feature_map.first(sizes[-1]).summed()).parts
        with blas_threads(1):
            found = {fold: part.solvable() for fold, part in parts.items()}
    folds = ByFold(sums.rule, next(iter(found.values())).zero())
    folds.parts = found
    tried = solve_sizes(shared(folds), penalty, intercept=intercept, sizes=sizes)
    return tuple(replace(size, total=None, basis=None) for size in tried)
