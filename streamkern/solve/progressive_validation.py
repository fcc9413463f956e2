"""Progressive validation: a model of the rows read so far predicts the next rows.

While a pass goes on, the sums so far give a model, and those of the next group of shards its error,
before the two are added.  To cost next to nothing, the model has the leading features alone: where
the final model has more, this is the error of a smaller one.

Blum, Kalai and Langford (1999), "Beating the hold-out: bounds for k-fold and progressive
cross-validation".
"""

from functools import reduce
from typing import Any

import numpy as np

from streamkern.errors import ParameterError
from streamkern.solve import Cholesky
from streamkern.statistics import CentredMoments, FeatureSums, FoldStatistics

# How many features, and the penalties, in units of N, of which the best counts.
_COMPONENTS = 512
_ALPHAS = (1e-6, 1e-4, 1e-2)


def progressive_error(
    before: FoldStatistics, coming: FoldStatistics, *, intercept: bool = True
) -> dict[str, Any] | None:
    """Return the error on coming rows of a model of the rows before, in the units of y.

    That is the root mean squared error over rows and targets, `error`, of a model with the
    `leading` of `n_components` features at the best of three penalties.  None where it is unknown:
    of a strip of the products, or where no y varies.
    """
    past, held = _leading(before, intercept), _leading(coming, intercept=True)
    if past is None or held is None or not len(held.target):
        return None
    spread = held.target
    best = np.full(len(spread), np.inf)
    for alpha in np.array(_ALPHAS) * past.weight:
        try:
            coef = Cholesky.of_shifted(past.gram, alpha, 1).solve(past.cross)
        except np.linalg.LinAlgError:  # noise of single precision makes G indefinite
            continue
        gap = held.target_mean - past.target_mean - (held.feature_mean - past.feature_mean) @ coef
        squares = np.einsum("dq,dq->q", coef, held.gram @ coef - 2.0 * held.cross)
        best = np.minimum(best, spread + squares + held.weight * gap**2)
    if not np.isfinite(best).all() or not (spread > 0).all():
        return None
    return {
        "error": float(np.sqrt(np.maximum(best / held.weight, 0.0).mean())),
        "leading": len(past.feature_mean),
        "n_components": next(iter(before.parts.values())).feature_map.n_components,
    }


def _leading(folds: FoldStatistics, intercept: bool) -> CentredMoments | None:
    """Return the moments of the leading features over all folds, or None if there are none."""
    parts = [part for part in folds.parts.values() if isinstance(part, FeatureSums)]
    if not parts or any(part.first_row for part in parts):
        return None
    order = min(_COMPONENTS, parts[0].feature_map.n_components)
    try:
        firsts = [part.leading(order) for part in parts]
    except ParameterError:  # sums are turned, which takes longer than to add those of folds
        firsts = parts
    try:
        whole = reduce(FeatureSums.merge, firsts).solvable(order)
        return whole.centred(intercept=intercept)
    except ParameterError:  # a map without leading part, or rows without weight
        return None
