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
from streamkern.runtime.threads import blas_threads

# From rough to smooth.
KERNELS = Matern(nu=0.5), Matern(nu=1.5), Matern(nu=2.5), Gaussian()
# Length scales, in ranges of an input, that are tried at first, and bounds of these and of the
# variance of the noise over that of the field.
_STARTS, _START_NOISE = (0.3, 0.1, 0.03), 0.1
_LENGTHS, _NOISES = (1e-5, 30.0), (1e-6, 1e4)
# How far length scales of the inputs are from each other before any row, in logarithms.
_APART = 1.5
# How much a pair of inputs may turn, in the logarithm of the map of a kernel.
_MOST_TURN = 5.0
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
    linear: Floats | None = None  # (p, p), of determinant 1, where it is not along the inputs


@blas_threads(1)  # the choice is part of the result
def by_evidence(windows: Sequence[Window], ranges: Floats) -> list[Evidence]:
    """Return every kernel at its length scales and noise of most evidence, from rough to smooth.

    There is a length scale for every one of the ranges: (p,), or (1,) for one of all inputs.
    A field has the same kernel and noise in every window, and a mean of its own; targets have the
    same but for their variance.
    """
    starts = [np.append(np.log(ranges * each), math.log(_START_NOISE)) for each in _STARTS]
    found = list[Evidence]()
    for kernel in KERNELS:
        best, per_row = _best(kernel, starts, windows, ranges)
        # To so many digits they are the same on any processor.
        lengths = np.array([float(f"{each:.3g}") for each in np.exp(best[:-1])])
        found.append(Evidence(kernel, lengths, math.exp(best[-1]), per_row))
        starts = [best]
    return found


@blas_threads(1)
def turned(along: Evidence, windows: Sequence[Window], ranges: Floats) -> Evidence:
    """Return a kernel with length scales along any directions, if it surely beats that of inputs.

    A direction costs six times what Schwarz's criterion says, since windows are not independent.
    """
    p, n_rows = windows[0].places.shape[1], sum(len(each.places) for each in windows)
    ranges, lengths = (np.broadcast_to(each, p) for each in (ranges, along.length_scales))
    n_pairs = p * (p - 1) // 2
    n_more = n_pairs + p - len(along.length_scales)
    start = [*np.log(lengths), *np.zeros(n_pairs), math.log(along.noise)]
    best, per_row = _best(along.kernel, [np.array(start)], windows, ranges)
    if per_row - along.per_row < 3.0 * n_more * math.log(n_rows) / n_rows:
        return along
    linear = _linear(np.array([float(f"{each:.3g}") for each in best[:-1]]), ranges)
    length_scale = np.abs(np.linalg.det(linear)) ** (-1.0 / p)
    told = np.array([float(f"{length_scale:.3g}")])
    return Evidence(along.kernel, told, math.exp(best[-1]), per_row, length_scale * linear)


def _best(
    kernel: Any, starts: Sequence[Floats], windows: Sequence[Window], ranges: Floats
) -> tuple[Floats, float]:
    """Return the parameters of most evidence from the best start, and that evidence of a row.

    They are logarithms of p length scales, for every pair of inputs how much they turn, or none of
    these, and the logarithm of the noise.
    """
    from scipy.optimize import minimize  # noqa: PLC0415  slow, and for fields alone

    p, n_rows = len(ranges), sum(len(each.places) for each in windows)
    n_pairs = len(starts[0]) - p - 1
    turns = [(-_MOST_TURN, _MOST_TURN)] * n_pairs
    bounds = [*np.log(np.outer(ranges, _LENGTHS)), *turns, tuple(np.log(_NOISES))]

    def surprise(parameters: Floats) -> float:
        lengths = parameters[:p] - np.log(ranges)
        apart = np.square(lengths - lengths.mean()).sum() + 2.0 * np.square(parameters[p:-1]).sum()
        scale: Any = np.exp(parameters[:p])
        if n_pairs:
            scale = _linear(parameters[:-1], ranges)
        return 0.5 * float(apart) / _APART**2 - _log_evidence(
            kernel, scale, math.exp(parameters[-1]), windows
        )

    start = min(starts, key=surprise)
    options: Any = {"maxiter": _MOST_STEPS, "ftol": 1e-7}
    best = minimize(surprise, start, method="L-BFGS-B", bounds=bounds, options=options)
    return best.x, -float(best.fun) / n_rows


def _linear(parameters: Floats, ranges: Floats) -> Floats:
    """Return A (p, p) with which a kernel is of |A (x - x')|, of the parameters but the noise.

    In units of the ranges, its logarithm is a symmetric matrix: that of the length scales where
    nothing turns.
    """
    p = len(ranges)
    logarithm = np.diag(np.log(ranges) - parameters[:p])
    logarithm[np.triu_indices(p, 1)] = parameters[p:]
    values, vectors = np.linalg.eigh(logarithm, UPLO="U")
    return (vectors * np.exp(values)) @ vectors.T / ranges


def _log_evidence(kernel: Any, scale: Floats, noise: float, windows: Sequence[Window]) -> float:
    """Return the logarithm of the evidence, by length scales (p,) or a linear map (p, p)."""
    determinant, n_rows, every = 0.0, 0, list[Floats]()
    for places, targets, weights, trend in windows:
        scaled = places / scale if scale.ndim == 1 else places @ scale.T
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
