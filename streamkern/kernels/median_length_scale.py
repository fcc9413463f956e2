"""The median heuristic for length scales."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamkern.errors import DataError

if TYPE_CHECKING:
    from streamkern._typing import Floats
    from streamkern.kernels.scaled import ScaledKernel

# Rows whose pairs the median is taken over: half a million pairs.
MEDIAN_ROWS = 1024


def median_distance(kernel: ScaledKernel, rows: Floats, weights: Floats | None = None) -> float:
    """Return the median distance between pairs of different rows, in the kernel's own metric.

    Of standardised rows that are spread over the data the first 1,024 are used, each as often as
    its weight says.  Garreau, Jitkrittum and Kanagawa (2017), "Large sample analysis of the median
    heuristic".
    """
    rows = rows[:MEDIAN_ROWS]
    left, right = np.triu_indices(len(rows), 1)
    pairs = kernel.distance(rows, rows)[left, right]
    # Rows that are equal, as in tables with many repeats, say nothing about scale.
    differ = pairs > 0
    positive = pairs[differ]
    if not len(positive):
        raise DataError(
            "the median length scale needs two different rows, but all sampled rows are equal; "
            "give a number (--length-scale)."
        )
    if weights is None:
        return float(np.median(positive))
    return _weighted_median(positive, weights[left[differ]] * weights[right[differ]])


def _weighted_median(values: Floats, weights: Floats) -> float:
    """Return the median of values that each count as often as their weight says."""
    order = np.argsort(values)
    values, reached = values[order], np.cumsum(weights[order])
    half = reached[-1] / 2.0
    # The middle lies between two values where the first ones have just half of the weight.
    low, high = np.searchsorted(reached, half), np.searchsorted(reached, half, side="right")
    return float(values[low] + values[min(high, len(values) - 1)]) / 2.0
