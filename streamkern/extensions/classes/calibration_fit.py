"""Calibration: splines, Platt's sigmoid and isotonic regression, of scores in bins or sums."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Floats
from streamkern.errors.checks import check_choice
from streamkern.extensions.classes.class_errors import ScoreTable
from streamkern.extensions.classes.class_rule import (
    LEAST,
    Calibrator,
    IsotonicSteps,
    LogOddsSpline,
    PlainRule,
    PlattSigmoid,
)

METHODS = ("auto", "spline", "sigmoid", "isotonic")
# Knots of a spline, and what a square of one's change of slope costs, of a score over its spread;
# decimals of that which tell knots apart, and the least slope, as a part of the sigmoid's.
_KNOTS, _BENT, _DECIMALS, _LEAST = 8, 3.0, 6, 0.05
# Points of a quadrature, and steps between the sigmoid that is safe and the likely one.
_POINTS, _STEPS = 32, 1000
_MOST_STEPS, _SMALL_STEP, _ENOUGH = 100, 1e-10, 1e-4


def checked_method(calibration: Any) -> str | None:
    if calibration is not None:
        check_choice("calibration", calibration, METHODS, ", or None")
    return calibration


def fitted_calibrator(
    method: str | None, table: ScoreTable, factors: Floats | None = None
) -> Calibrator:
    """Return the calibrator of a table of scores: a spline, unless another method is given.

    None is the rule that needs no scores.  Factors (K,) are what weights were multiplied by, for
    their class: without them a weight counts rows.
    """
    if method is None:
        return PlainRule()
    of_class = table.weights.sum(axis=2)
    of_class = of_class[0] if len(of_class) == 1 else of_class[:, 1]
    counted = float(np.sum(of_class / (1.0 if factors is None else factors)))
    unit = row_weight(max(table.n_rows, counted), table.weights[0].sum())
    each = map(table.shares, range(len(table.weights)))
    bins = [(s, weights / unit, shares) for s, weights, shares in each]
    if method == "sigmoid":
        slopes, offsets = np.array([platt(*each) for each in bins]).T
        return PlattSigmoid(slopes, offsets)
    curve, made = (_isotonic, IsotonicSteps) if method == "isotonic" else (_spline, LogOddsSpline)
    curves = [curve(*each) for each in bins]
    return made(tuple(x for x, _ in curves), tuple(v for _, v in curves))


def row_weight(n_rows: float, weight: float) -> float:
    """Return what counts as one row among so many: 1, or less where rows weigh less on average."""
    return min(1.0, weight / n_rows)


def platt(scores: Floats, weights: Floats, shares: Floats) -> tuple[float, float]:
    """Return slope and offset of the sigmoid of largest likelihood, with Platt's targets.

    They are (N+ + 1) / (N+ + 2) and 1 / (N- + 2) in the place of 1 and 0, N+ and N- the weights of
    the class and of the rest.  A slope is not below 0: held-out scores that are no better than
    chance are on the wrong side of the mean.  Shares (m,) are those of the weights (m,) that are of
    the class.

    Platt (1999), "Probabilistic outputs for support vector machines".
    Lin, Lin and Weng (2007), "A note on Platt's probabilistic outputs for support vector machines",
    for Newton's method with steps halved.
    """
    targets, level = _smoothed(weights, shares)
    mean = np.average(targets, weights=weights)
    constant = 0.0, float(np.log(mean / (1.0 - mean)))
    centre, spread = _moments(scores, weights)
    if not spread > 0:
        return constant
    inputs = np.column_stack([(scores - centre) / spread, np.ones(len(scores))])
    w = _most_likely(inputs, weights, targets, np.array([0.0, level]))
    if w[0] <= 0:
        return constant
    return float(w[0] / spread), float(w[1] - w[0] * centre / spread)


def _smoothed(weights: Floats, shares: Floats) -> tuple[Floats, float]:
    """Return Platt's targets (m,), and the log-odds of the class."""
    N, rest = weights @ shares, weights @ (1.0 - shares)
    targets = shares * (N + 1.0) / (N + 2.0) + (1.0 - shares) / (rest + 2.0)
    return targets, float(np.log((N + 1.0) / (rest + 1.0)))


def _moments(scores: Floats, weights: Floats) -> tuple[Any, Any]:
    """Return the mean and the deviation of scores."""
    centre = np.average(scores, weights=weights)
    return centre, np.sqrt(np.average((scores - centre) ** 2, weights=weights))


def _most_likely(
    inputs: Floats, weights: Floats, targets: Floats, w: Floats, penalty: Floats | float = 0.0
) -> Floats:
    """Return the coefficients of largest likelihood, from w, less penalty * w^2 / 2."""

    def loss(w: Floats) -> float:
        odds = inputs @ w
        of_rows = weights @ (np.logaddexp(0.0, odds) - targets * odds)
        return float(of_rows + np.sum(penalty * w * w) / 2.0)

    least = np.inf
    for _ in range(_MOST_STEPS):
        p = 1.0 / (1.0 + np.exp(-np.clip(inputs @ w, -700, 700)))
        gradient = inputs.T @ (weights * (p - targets)) + penalty * w
        curved = inputs.T @ ((weights * p * (1.0 - p))[:, None] * inputs)
        curved[np.diag_indices(len(w))] += penalty + _SMALL_STEP * max(np.trace(curved), 1e-300)
        step, least = np.linalg.solve(curved, gradient), loss(w)
        decrement, length = float(gradient @ step), 1.0
        if decrement <= _SMALL_STEP * max(least, 1.0):
            break
        while loss(w - length * step) > least - _ENOUGH * length * decrement:
            length /= 2
            if length < _SMALL_STEP:
                break
        w = w - length * step
    return w


def _spline(scores: Floats, weights: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Return points and log-odds of the linear spline of largest likelihood, which always rises.

    Its knots are quantiles of the scores, and changes of slope are penalised.

    Ruppert, Wand and Carroll (2003), "Semiparametric regression", chapter 3.
    """
    from sklearn.isotonic import isotonic_regression

    slope, offset = platt(scores, weights, shares)
    centre, spread = _moments(scores, weights)
    if not slope > 0:
        return np.array([centre]), np.array([offset])
    inputs = (scores - centre) / spread
    quantiles = np.linspace(0.0, 1.0, _KNOTS + 2)[1:-1]
    knots = _apart(np.interp(quantiles, np.cumsum(weights) / weights.sum(), inputs))

    def bent(inputs: Floats) -> Floats:
        hinges = np.maximum(inputs[:, None] - knots, 0.0)
        return np.column_stack([inputs, np.ones(len(inputs)), hinges])

    begun = np.zeros(2 + len(knots))
    begun[:2] = slope * spread, offset + slope * centre
    penalty = np.where(np.arange(len(begun)) < 2, 0.0, _BENT)
    w = _most_likely(bent(inputs), weights, _smoothed(weights, shares)[0], begun, penalty)
    points = _apart(np.concatenate([inputs[:1], knots, inputs[-1:]]))
    line = _LEAST * slope * spread * points
    return centre + spread * points, line + isotonic_regression(bent(points) @ w - line)


def _apart(points: Floats) -> Floats:
    return np.unique(points.round(_DECIMALS))


def _isotonic(scores: Floats, weights: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Return the points of the function that never falls and is nearest to the classes."""
    from sklearn.isotonic import IsotonicRegression

    least = 1.0 / (weights.sum() + 2.0)  # as one row among all of the same weight could tell
    fitted = IsotonicRegression(y_min=least, y_max=1.0 - least, out_of_bounds="clip")
    fitted.fit(scores, shares, sample_weight=weights)
    return fitted.X_thresholds_, fitted.y_thresholds_


class ScoreSums(NamedTuple):
    """Weighted sums over rows of t, s, s^2 and s t, (q,): scores s, and targets t of +1 and -1."""

    n_rows: int
    weight: float
    targets: Floats
    scores: Floats
    squares: Floats
    products: Floats


def sigmoid_of_sums(parts: Sequence[ScoreSums]) -> PlattSigmoid:
    """Return the sigmoids of q scores whose distribution is not known, but for these sums.

    Each is Platt's for a mixture of distributions that have the mean and variance of the sums, as
    far as its log loss is bounded by that of the shares of the classes.

    Golub and Welsch (1969), "Calculation of Gauss quadrature rules".
    """
    n_rows, weight, *sums = map(sum, zip(*parts, strict=True))
    targets, scores, squares, products = (np.asarray(each) / weight for each in sums)
    variance = np.maximum(squares - scores**2, 0.0)
    together = np.maximum(products - scores * targets, 0.0)
    n = weight / row_weight(n_rows, weight)
    per_score = np.divide(together, variance, out=np.zeros_like(variance), where=variance > 0)
    most = (1.0 - 1.0 / (n + 2.0)) ** 2 - targets**2  # as one row among all could tell
    explained = np.minimum(together * per_score, most)
    a, b = np.array([_sigmoid(m, V, n) for m, V in zip(targets, explained, strict=True)]).T
    return PlattSigmoid(a * per_score, b + a * (targets - per_score * scores))


def _sigmoid(m: float, V: float, n: float) -> tuple[float, float]:
    nothing = platt(np.array([m]), np.array([n]), np.array([(1.0 + m) / 2.0]))
    if not V > LEAST:
        return nothing
    R = np.sqrt(m * m + V)
    points, weights = _likely(m, V, R)
    likely = np.array(platt(points, n * weights, (1.0 + points) / 2.0))
    safe = np.array([2.0 * np.arctanh(R) / R, 0.0])
    a, b = (safe + np.linspace(0.0, 1.0, _STEPS + 1)[:, None] * (likely - safe)).T
    half = np.sqrt(a * a * V + (a * m + b) ** 2) / 2.0
    bound = np.logaddexp(half, -half) - (a * R * R + b * m) / 2.0
    p = (1.0 + m) / 2.0
    kept = np.flatnonzero(bound <= -p * np.log(p) - (1.0 - p) * np.log(1.0 - p))
    return (float(a[kept[-1]]), float(b[kept[-1]])) if len(kept) else nothing


def _likely(m: float, V: float, R: float) -> tuple[Floats, Floats]:
    """Return points and weights of the mixture of distributions with mean m and variance V."""
    S = 1.0 - m * m
    within, apart = np.sqrt(max(V - V * V / S, 0.0)), 2.0 * V / S
    z, w = np.polynomial.hermite_e.hermegauss(_POINTS)
    w, p = w / w.sum(), (1.0 + m) / 2.0
    normals = np.append(m + (1.0 - p) * apart + within * z, m - p * apart + within * z)
    # Jacobi polynomials, of the exponents (1 - p) nu - 1 and p nu - 1 of a beta distribution.
    nu, k = S / V - 1.0, np.arange(1.0, _POINTS)
    d = 2.0 * k + nu - 2.0
    middle = np.append(m, m * nu * (nu - 2.0) / (d * (d + 2.0)))
    beside = np.sqrt(V) * np.ones(_POINTS - 1)
    k, d = k[1:], d[1:]
    beta = (k + (1.0 - p) * nu - 1.0) * (k + p * nu - 1.0)
    beside[1:] = np.sqrt(4.0 * k * beta * (k + nu - 2.0) / (d * d * (d + 1.0) * (d - 1.0)))
    betas, vectors = np.linalg.eigh(np.diag(middle) + np.diag(beside, -1))
    ends = np.array([-R, R])
    rare = (1.0 - S * S) / 2.0
    of_ends = rare * (1.0 + ends * m / R**2) / 2.0
    weights = S * S * p * w, S * S * (1.0 - p) * w, rare * vectors[0] ** 2, of_ends
    return np.concatenate([normals, betas, ends]), np.concatenate(weights)
