"""The units of integers, and what rounding to them costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.features import LEVELS
from streamkern.features.base import cached_slices
from streamkern.features.exact_products import sure
from streamkern.runtime.scratch import Scratch

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats
    from streamkern.features import FeatureMap

# Targets and weights in units that keep so many bits of their deviation and of their mean.
TARGET_BITS, WEIGHT_BITS = 20, 10
# Sums of products of two features, which are in int64.
MOST_SUM = 2.0**62
# A constant target says little of those to come: a share of its value stands for the deviation.
_CONSTANT = 2.0**-10
# The mean of the relative rounding errors of weights, at most, and how many have a mean to judge
# by: rows that are forgotten may be few, and of weights that were nothing beside the others.
_MOST_ROUNDING, _ENOUGH = 1.0 / 16.0, 64
_MEASURED_ROWS = 256


def integer_units(
    mean: Floats,
    deviation: Floats,
    precision: str = "int8",
    *,
    row_weight: float | None = None,
    whole: bool = False,
    weight: float = 0.0,
) -> dict[str, Floats | float]:
    """Return shifts and units of targets (q,), and that of weights.

    Targets are of some means and deviations, 0 where they are constant.  `row_weight` is the mean
    of weights, if there are any, which may all be whole numbers, and `weight` is their sum.
    Values that differ by rounding alone have the same units.
    """
    size = np.where(deviation > 0, deviation, _CONSTANT * np.abs(mean))
    size = _power_of_two(np.where(size > 0, size, 1.0))
    # Twice what fits, since some weights are rounded up.
    room = 2 * _power_of_two(np.array(2.0 * weight * LEVELS[precision] ** 2 / MOST_SUM))
    unit = np.maximum(room, 1.0)
    if row_weight is not None:
        unit = np.maximum(room, _power_of_two(np.array(row_weight)) * 2.0**-WEIGHT_BITS)
    return {
        "target_shift": size * np.rint(sure(mean / size)),
        "target_unit": size * 2.0**-TARGET_BITS,
        "weight_unit": float(np.minimum(unit, 1.0) if whole else unit),
    }


def _power_of_two(values: Floats) -> Floats:
    """Return the largest powers of two up to values that are not negative, or 0."""
    powers: Floats = np.where(values > 0, np.ldexp(1.0, np.frexp(sure(values))[1] - 1), 0.0)
    return powers


def are_coarse(weights: Floats, unit: float, *, enough: int = _ENOUGH) -> bool:
    """Say whether the rounding of weights to units is seen, where there are enough of them."""
    some = weights[weights > 0]
    if len(some) < enough:
        return False
    errors = np.abs(np.rint(some / unit) * unit - some) / some
    return bool(errors.mean() > _MOST_ROUNDING)


def rounding_of(feature_map: FeatureMap, X: Array, precision: str) -> float:
    """Return the root mean square error of rounded features, in units of a level, at some rows."""
    D, levels = feature_map.n_components, LEVELS[precision]
    some = X[next(cached_slices(min(len(X), _MEASURED_ROWS), D))]
    rounded, exact = np.empty((D, len(some)), np.int16), np.empty((len(some), D))
    feature_map.round_into(some, levels, rounded, Scratch())
    feature_map.evaluate(some, exact)
    bounds: Any = feature_map.bounds
    return float(np.sqrt(np.mean((rounded.T - exact * (levels / bounds)) ** 2)))


def rounding_errors(
    feature_map: FeatureMap, precision: str, coef: Floats, rounding: float | None = None
) -> Floats:
    """Return the root mean square of what rounding moves predictions by, (q,): sigma |w|.

    sigma is `rounding_of` the features, where it was measured, or the usual 1 / sqrt(12) of a unit;
    0 where nothing is rounded.
    """
    if precision not in LEVELS:
        return np.zeros(coef.shape[1])
    bounds: Any = feature_map.bounds
    units = feature_map.scale * np.broadcast_to(bounds, len(coef)) / LEVELS[precision]
    errors: Floats = np.sqrt(units**2 @ coef**2)
    return errors * (12.0**-0.5 if rounding is None else rounding)
