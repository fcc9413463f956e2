"""Sigmoids from sums over scores alone, where the scores are not there any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streamkern.calibration.calibrators import PlattSigmoid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern._typing import Floats

# The least variance inside classes, as a part of all of it.
_LEAST = 1e-6


class ScoreSums(NamedTuple):
    """Weighted sums over rows of q scores s and targets t, which are +1 and -1.

    Parameters
    ----------
    n_rows : int
    weight : float
    targets, scores, squares, products : ndarray of shape (q,)
        Of t, s, s^2 and s t.
    """

    n_rows: int
    weight: float
    targets: Floats
    scores: Floats
    squares: Floats
    products: Floats


def row_weight(n_rows: int, weight: float) -> float:
    """Return what counts as one row among so many: 1, or less where rows weigh less on average.

    Calibration adds one row to those that there are.  Weights that count rows are left as they are;
    beside weights that add up to 1, say, a row of weight 1 would be half of all.
    """
    return min(1.0, weight / n_rows)


def normal_sigmoid(parts: Sequence[ScoreSums]) -> PlattSigmoid:
    """Return the sigmoids of scores that are normal, with one variance in a class and in the rest.

    With means m+ and m-, variance v and weights N+ and N-, the odds of the class are
    exp(a s + b) with a = (m+ - m-) / v and b = log(N+ / N-) - a (m+ + m-) / 2.  One row is added to
    each weight, as in Platt's targets, and a slope is not below 0.

    Parameters
    ----------
    parts : sequence of ScoreSums
        Over parts of the rows.

    References
    ----------
    Hastie, Tibshirani and Friedman (2009), "The elements of statistical learning", section 4.3.
    """
    n_rows, weight, targets, scores, squares, products = map(sum, zip(*parts, strict=True))
    one = row_weight(n_rows, weight)
    upper, lower = (weight + targets) / 2, (weight - targets) / 2
    sum_upper, sum_lower = (scores + products) / 2, (scores - products) / 2
    level = np.log((upper + one) / (lower + one))
    there = (upper > 0) & (lower > 0)
    mean_upper = sum_upper / np.where(there, upper, 1.0)
    mean_lower = sum_lower / np.where(there, lower, 1.0)
    between = upper * mean_upper**2 + lower * mean_lower**2
    variance = np.maximum((squares - between) / weight, _LEAST * squares / weight)
    apart = there & (mean_upper > mean_lower) & (variance > 0)
    slope = np.where(apart, (mean_upper - mean_lower) / np.where(apart, variance, 1.0), 0.0)
    return PlattSigmoid(slope, level - slope * (mean_upper + mean_lower) / 2)
