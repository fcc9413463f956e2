"""One weight an input or category, by descent of the error of exact ridge, cross-validated.

Gradients of a fitted function say which inputs it changes along, and not how fast; few rows and
all their kernel values say both.

Sundararajan and Keerthi (2001), "Predictive approaches for choosing hyperparameters in Gaussian
processes"; Ginsbourger and Schaerer (2021), "Fast calculation of Gaussian process multiple-fold
cross-validation residuals and their covariances".
"""

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lapack

from streamkern._typing import Array, Floats
from streamkern.choice.time_limit import look_at_clock
from streamkern.kernels import Laplacian, Matern, RadialKernel

# Targets of a descent at the most, and rows for every input at the least.
DESCENT_TARGETS, ROWS_AN_INPUT = 16, 10
# Folds, the logarithm of weights that is one deviation before any row, and the steps at the most.
_FOLDS, _DEVIATION, _STEPS = 10, 0.5, 40
# Where the penalty begins, its bounds and those of factors on weights, and what ends the descent.
_PENALTY, _PENALTIES, _WEIGHTS, _TOLERANCE = 1e-2, (1e-6, 10.0), (1e-4, 1e4), 1e-4
# Length scales, beyond which kernels are 0.
_FARTHEST = 1e9
# What a descent takes, as multiply-adds over n^3, n^2 and p n^2, as it was measured; and the square
# matrices, and copies of the rows, that it holds.
_FLOPS, _SQUARES, _ROWS = (25.0, 5000.0, 700.0), 8, 2


def has_descent(kernel: Any) -> bool:
    """Return whether the kernel is of a distance, and its slope has no Bessel functions."""
    if isinstance(kernel, Matern):
        return kernel.nu in (0.5, 1.5, 2.5)
    return isinstance(kernel, (Laplacian, RadialKernel))


def descent_flops(n_rows: int, n_features: int) -> float:
    cubes, squares, products = _FLOPS
    return n_rows**2 * (cubes * n_rows + squares + products * n_features)


def descent_bytes(n_rows: int, n_features: int) -> int:
    return 8 * n_rows * (_SQUARES * n_rows + _ROWS * n_features)


def descent_rows(
    n_rows: int, n_features: int, flops: float, n_bytes: float, between: tuple[int, int]
) -> int:
    """Return the rows of a descent of so many flops and bytes at the most, 0 if these are few."""
    fewest, most = between
    n = min(n_rows, most)
    while descent_flops(n, n_features) > flops or descent_bytes(n, n_features) > n_bytes:
        if n <= fewest:
            return 0
        n = max(n - n // 8, fewest)
    return n


def weights_by_descent(
    kernel: Any, X: Array, y: Floats, counts: Floats | None, groups: Array
) -> Floats:
    """Return weights (p,) of standardised inputs (n, p), whose mean square is 1.

    Those of one group have one weight; groups (p,) are numbers from 0.  Their common size is left
    out: where functions are smoother than the kernel, the error hardly depends on it.  Of targets
    (m, q) and counts (m,), which may be those of more rows, the first n are taken; rows are in an
    order that says nothing of them.
    """
    from scipy.optimize import minimize  # noqa: PLC0415  slow

    n = len(X)
    counts = np.ones(n) if counts is None else counts[:n] / counts[:n].mean()
    y = y[:n] - np.average(y[:n], axis=0, weights=counts)
    start = np.log([*np.full(groups.max() + 1, 1.0 / kernel.length_scale), _PENALTY])
    within = start[:-1, None] + np.log(_WEIGHTS)
    how: Any = {"bounds": [*within, np.log(_PENALTIES)], "method": "L-BFGS-B", "jac": True}
    how["options"] = {"maxiter": _STEPS, "maxfun": 2 * _STEPS, "ftol": _TOLERANCE}
    best = minimize(objective, start, (kernel, X, y, counts, groups), **how)
    weights = np.exp(best.x[:-1])[groups]
    return weights / np.sqrt(np.mean(weights**2))


def objective(  # noqa: PLR0917  as SciPy gives them
    numbers: Floats, kernel: Any, X: Array, y: Floats, counts: Floats, groups: Array
) -> tuple[float, Floats]:
    """Return the logarithm of the error, with what uneven weights cost, and its slopes.

    `numbers` (g + 1,) are the logarithms of the weights of groups and of the penalty.
    """
    look_at_clock()
    weights, penalty = np.exp(numbers[:-1])[groups], np.exp(numbers[-1])
    Z = np.clip(X * weights, -_FARTHEST, _FARTHEST)
    apart = kernel.distance(Z, Z)
    K = kernel.profile(apart)
    K[np.diag_indices_from(K)] += penalty / counts
    error, outer = _held_out(K, y, counts)
    of_penalty = penalty * (np.diagonal(outer) / counts).sum()
    # The derivatives by the logarithms of weights, of sum_ij outer_ij k_ij.
    if kernel.along_axes:
        outer *= K
        slopes = np.array([-np.vdot(outer, np.abs(z[:, None] - z)) for z in Z.T])
    else:
        outer *= kernel.slope(apart)
        slopes = 2.0 * (outer.sum(axis=1) @ Z**2 - np.einsum("ij,ij->j", Z, outer @ Z))
    slopes = np.append(np.bincount(groups, slopes), of_penalty) / error
    # Weights that differ need a reason; their common size does not.
    off = numbers[:-1] - numbers[:-1].mean()
    slopes[:-1] += 2.0 * off / (_DEVIATION**2 * len(X))
    return np.log(error) + off @ off / (_DEVIATION**2 * len(X)), slopes


def _held_out(shifted: Floats, y: Floats, counts: Floats) -> tuple[float, Floats]:
    """Return the mean square error of rows held out, and its derivatives (n, n) by the kernel."""
    n, size = len(y), counts.sum() * y.shape[1]
    factor, failed = lapack.dpotrf(shifted, lower=1, clean=1)
    if failed:  # rounding is above so small a penalty, of rows that count so much
        return np.inf, np.zeros_like(shifted)
    inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    inverse += np.tril(inverse, -1).T
    coef = inverse @ y
    errors, pulls, left, right = np.empty_like(y), np.empty_like(y), [], []
    ends = np.linspace(0, n, _FOLDS + 1, dtype=int)
    for start, stop in pairwise(ends):
        rows = slice(start, stop)
        block = cho_factor(inverse[rows, rows], lower=True)
        errors[rows] = cho_solve(block, coef[rows])
        pulls[rows] = 2.0 / size * cho_solve(block, counts[rows, None] * errors[rows])
        left.append(inverse[:, rows] @ pulls[rows])
        right.append(inverse[:, rows] @ errors[rows])
    outer = np.hstack([-inverse @ pulls, *left]) @ np.hstack([coef, *right]).T / 2.0
    error = max((counts[:, None] * errors**2).sum() / size, np.finfo(float).tiny)
    return float(error), outer + outer.T
