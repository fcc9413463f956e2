"""Probability calibration: Platt's sigmoid and isotonic regression, fitted to scores in bins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.errors import ParameterError
from streamkern.errors.formatting import unknown
from streamkern.predict.calibrators import Calibrator, IsotonicSteps, PlainRule, PlattSigmoid

if TYPE_CHECKING:
    from streamkern._typing import Floats
    from streamkern.predict.class_scores import ScoreTable

METHODS = ("sigmoid", "isotonic")
_MOST_STEPS, _SMALL_STEP, _ENOUGH = 100, 1e-10, 1e-4


def checked_method(calibration: Any) -> str | None:
    """Return how to calibrate; raise ParameterError if there is no such way."""
    if calibration is not None and calibration not in METHODS:
        raise ParameterError(
            f"calibration must be one of {', '.join(METHODS)}, or None, not "
            f"{unknown(calibration, METHODS)}; choose one of them."
        )
    return calibration  # type: ignore[no-any-return]


def fitted_calibrator(method: str | None, table: ScoreTable) -> Calibrator:
    """Return the calibrator of a table of scores; no method is the rule that needs no scores."""
    q = len(table.weights)
    if method is None:
        return PlainRule(q)
    unit = row_weight(table.n_rows, table.weights[0].sum())
    bins = [
        (scores, weights / unit, shares) for scores, weights, shares in map(table.shares, range(q))
    ]
    if method == "sigmoid":
        slopes, offsets = np.array([platt(*each) for each in bins]).T
        return PlattSigmoid(slopes, offsets)
    steps = [_isotonic(*each) for each in bins]
    return IsotonicSteps(tuple(x for x, _ in steps), tuple(p for _, p in steps))


def row_weight(n_rows: int, weight: float) -> float:
    """Return what counts as one row among so many: 1, or less where rows weigh less on average.

    Calibration adds one row to those that there are.  Weights that count rows are left as they are;
    beside weights that add up to 1, say, a row of weight 1 would be half of all.
    """
    return min(1.0, weight / n_rows)


def platt(scores: Floats, weights: Floats, shares: Floats) -> tuple[float, float]:
    """Return slope and offset of the sigmoid of largest likelihood, with Platt's targets.

    They are (N+ + 1) / (N+ + 2) and 1 / (N- + 2) in the place of 1 and 0, N+ and N- the weights of
    the class and of the rest.  A slope is not below 0: scores that are no better than chance tell
    nothing about a row, and those of rows left out are then on the wrong side of the mean.
    Without one, the probability is the mean of the targets.  Shares (m,) are those of the weights
    (m,) that are of the class.

    References
    ----------
    Platt (1999), "Probabilistic outputs for support vector machines".
    Lin, Lin and Weng (2007), "A note on Platt's probabilistic outputs for support vector machines",
    for Newton's method with steps halved.
    """
    N, rest = weights @ shares, weights @ (1.0 - shares)
    targets = shares * (N + 1.0) / (N + 2.0) + (1.0 - shares) / (rest + 2.0)
    level, mean = np.log((N + 1.0) / (rest + 1.0)), np.average(targets, weights=weights)
    constant = 0.0, float(np.log(mean / (1.0 - mean)))
    centre = np.average(scores, weights=weights)
    spread = np.sqrt(np.average((scores - centre) ** 2, weights=weights))
    if not spread > 0:
        return constant
    inputs = np.column_stack([(scores - centre) / spread, np.ones(len(scores))])

    def loss(w: Floats) -> float:
        odds = inputs @ w
        return float(weights @ (np.logaddexp(0.0, odds) - targets * odds))

    w, least = np.array([0.0, level]), np.inf
    for _ in range(_MOST_STEPS):
        p = 1.0 / (1.0 + np.exp(-np.clip(inputs @ w, -700, 700)))
        gradient = inputs.T @ (weights * (p - targets))
        curved = inputs.T @ ((weights * p * (1.0 - p))[:, None] * inputs)
        curved[np.diag_indices(2)] += _SMALL_STEP * max(np.trace(curved), 1e-300)
        step, least = np.linalg.solve(curved, gradient), loss(w)
        decrement, length = float(gradient @ step), 1.0
        if decrement <= _SMALL_STEP * max(least, 1.0):
            break
        while loss(w - length * step) > least - _ENOUGH * length * decrement:
            length /= 2
            if length < _SMALL_STEP:
                break
        w = w - length * step
    if w[0] <= 0:
        return constant
    return float(w[0] / spread), float(w[1] - w[0] * centre / spread)


def _isotonic(scores: Floats, weights: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Return the points of the function that never falls and is nearest to the classes.

    It stays as far from 0 and 1 as one row among all of the same weight could be told.
    """
    from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415  slow

    least = 1.0 / (weights.sum() + 2.0)
    fitted = IsotonicRegression(y_min=least, y_max=1.0 - least, out_of_bounds="clip")
    fitted.fit(scores, shares, sample_weight=weights)
    return fitted.X_thresholds_, fitted.y_thresholds_
