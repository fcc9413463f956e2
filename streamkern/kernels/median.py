"""The length scale that the rows suggest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamkern.errors import DataError

if TYPE_CHECKING:
    from streamkern._typing import Floats
    from streamkern.kernels.scaled import ScaledKernel

# Rows whose pairs the median is taken over: half a million pairs.
MEDIAN_ROWS = 1024


def median_distance(kernel: ScaledKernel, rows: Floats) -> float:
    """Return the median distance between pairs of distinct rows, in the kernel's own metric.

    Parameters
    ----------
    kernel : ScaledKernel
        Its `distance` is used, at length scale 1.
    rows : ndarray of shape (n, p)
        Standardised rows, spread over the whole data; the first 1,024 are used.

    Raises
    ------
    DataError
        If there is no pair of different rows.

    References
    ----------
    Garreau, Jitkrittum and Kanagawa (2017), "Large sample analysis of the median heuristic".
    """
    rows = rows[:MEDIAN_ROWS]
    pairs = kernel.distance(rows, rows)[np.triu_indices(len(rows), 1)]
    # Rows that are equal, as in tables with many repeats, say nothing about scale.
    positive = pairs[pairs > 0]
    if not len(positive):
        raise DataError(
            "the median length scale needs two different rows, but all sampled rows are equal; "
            "give --length-scale a number."
        )
    return float(np.median(positive))
