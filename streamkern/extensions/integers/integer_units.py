"""The units in which targets and weights are integers."""

from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.features import LEVELS
from streamkern.features.exact_products import sure

# Targets and weights in units that keep so many bits of their deviation and of their mean.
TARGET_BITS, WEIGHT_BITS = 20, 10
# Sums of products of two features, which are in int64.
MOST_SUM = 2.0**62
# A constant target says little of those to come: a share of its value stands for the deviation.
_CONSTANT = 2.0**-10
# The relative rounding errors of weights, at most, in a mean, and in rows that are lost besides: a
# few that are forgotten may be those whose weights were nothing beside the others.
_MOST_ROUNDING, _LOST = 1.0 / 16.0, 8


def integer_units(mean: Floats, deviation: Floats) -> dict[str, Any]:
    """Return shifts and units of targets (q,) of some means and deviations, 0 of constant ones.

    Those of values that differ by rounding alone are the same.
    """
    size = np.where(deviation > 0, deviation, _CONSTANT * np.abs(mean))
    size = _power_of_two(np.where(size > 0, size, 1.0))
    shift = size * np.rint(sure(mean / size))
    return {"target_shift": shift, "target_unit": size * 2.0**-TARGET_BITS}


def unit_of_weights(weight: float, n_rows: int, precision: str, *, whole: bool) -> float:
    """Return the unit of weights of some sum: as coarse as its room needs, but for whole ones 1."""
    fine = weight / n_rows * 2.0**-WEIGHT_BITS
    needed = 4.0 * weight * LEVELS[precision] ** 2 / MOST_SUM  # some weights are rounded up
    unit = float(_power_of_two(np.array(max(fine, needed))))
    return min(unit, 1.0) if whole else unit


def _power_of_two(values: Floats) -> Floats:
    """Return the largest powers of two up to positive values."""
    return np.ldexp(1.0, np.frexp(sure(values))[1] - 1)


def are_lost(weights: Floats, unit: float) -> bool:
    """Say whether the rounding of weights to whole units is seen."""
    some = weights / unit
    some = some[some > 0]
    errors = np.abs(np.rint(some) - some) / some
    return bool(errors.sum() > _MOST_ROUNDING * len(some) + _LOST)
