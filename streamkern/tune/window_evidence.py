"""The kernel, its length scales and the noise of most evidence, by rows in windows of a field.

Rows in small windows tell of short length scales and of how smooth a field is, rows of all the
field of long ones.  Windows are taken as independent of each other: a composite likelihood.

Varin, Reid and Firth (2011), "An overview of composite likelihood methods".
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack, solve_triangular

from streamkern._typing import Floats
from streamkern.kernels import Gaussian, Matern

# From rough to smooth.
KERNELS = Matern(nu=0.5), Matern(nu=1.5), Matern(nu=2.5), Gaussian()
# Length scales, in ranges of an input, that are tried at first, and bounds of these and of the
# variance of the noise over that of the field.
_STARTS, _START_NOISE = (0.3, 0.1, 0.03), 0.1
_LENGTHS, _NOISES = (1e-5, 30.0), (1e-6, 1e4)
# How far length scales of the inputs are from each other before any row, in logarithms.
_APART = 1.5
_MOST_STEPS = 30
# The logarithm of the evidence where there is none.
_NONE = -1e30


class Window(NamedTuple):
    """Rows of a part of a field: places (n, p), targets (n, q), and weights (n,), 1 in the mean.

    Terms (n,) of a trend have coefficients that are the same in all windows.
    """

    places: Floats
    targets: Floats
    weights: Floats
    trend: Sequence[Floats] = ()


class Evidence(NamedTuple):
    kernel: Any
    length_scales: Floats  # (p,)
    noise: float  # its variance over that of the field
    per_row: float  # the logarithm of the evidence, over the number of rows


def by_evidence(windows: Sequence[Window], ranges: Floats) -> list[Evidence]:
    """Return every kernel at its length scales and noise of most evidence, from rough to smooth.

    There is a length scale for every one of the ranges: (p,), or (1,) for one of all inputs.
    A field has the same kernel and noise in every window, and a mean of its own; targets have the
    same but for their variance.
    """
    from scipy.optimize import minimize  # noqa: PLC0415  slow, and for fields alone

    p, n_rows = len(ranges), sum(len(each.places) for each in windows)
    bounds = [*np.log(np.outer(ranges, _LENGTHS)), tuple(np.log(_NOISES))]
    starts = [np.append(np.log(ranges * each), math.log(_START_NOISE)) for each in _STARTS]
    found = list[Evidence]()
    for kernel in KERNELS:

        def surprise(parameters: Floats, kernel: Any = kernel) -> float:
            lengths = parameters[:p] - np.log(ranges)
            prior = 0.5 * float(np.square((lengths - lengths.mean()) / _APART).sum())
            return prior - _log_evidence(kernel, parameters, windows)

        start = min(starts, key=surprise)
        options: Any = {"maxiter": _MOST_STEPS, "ftol": 1e-7}
        best = minimize(surprise, start, method="L-BFGS-B", bounds=bounds, options=options)
        # To so many digits they are the same on any processor.
        lengths = np.array([float(f"{each:.3g}") for each in np.exp(best.x[:p])])
        found.append(Evidence(kernel, lengths, math.exp(best.x[p]), -float(best.fun) / n_rows))
        starts = [best.x]
    return found


def _log_evidence(kernel: Any, parameters: Floats, windows: Sequence[Window]) -> float:
    """Return the logarithm of the evidence of logarithms of length scales and noise."""
    lengths, noise = np.exp(parameters[:-1]), math.exp(parameters[-1])
    determinant, n_rows, every = 0.0, 0, list[Floats]()
    for places, targets, weights, trend in windows:
        scaled = places / lengths
        gram = kernel.values(scaled, scaled)
        gram[np.diag_indices(len(gram))] += noise / weights
        factor, failed = lapack.dpotrf(gram, lower=1)
        if failed:
            return _NONE
        both = np.column_stack([np.ones(len(places)), *trend, targets])
        white = solve_triangular(factor, both, lower=True, check_finite=False)
        one, rest = white[:, 0], white[:, 1:]
        every.append(rest - np.outer(one, (one @ rest) / (one @ one)))
        determinant += 2.0 * float(np.log(np.diagonal(factor)).sum())
        n_rows += len(places)
    if k := len(windows[0].trend):
        both = np.concatenate(every)
        every = [both[:, k:] - both[:, :k] @ np.linalg.lstsq(both[:, :k], both[:, k:])[0]]
    squares: Any = sum(np.square(left).sum(axis=0) for left in every)
    variances = np.maximum(squares / n_rows, np.finfo(float).tiny)
    return -0.5 * float(determinant + n_rows * np.log(variances).mean())
