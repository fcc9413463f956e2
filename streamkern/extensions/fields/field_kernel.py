"""The choice of kernel, length scales and noise of a field, by one pass that samples windows of it.

Rows in small windows tell of short length scales and of how smooth a field is, rows of all the
field of long ones.  Windows are taken as independent of each other: a composite likelihood.

Varin, Reid and Firth (2011), "An overview of composite likelihood methods".
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack, solve_triangular

from streamkern._typing import Array, Block, Floats
from streamkern.engine.scheduler import compute, delayed, scatter
from streamkern.extensions.fields.trend import Trend
from streamkern.features.metric import GivenMetric, metric_of
from streamkern.kernels import Gaussian, Matern
from streamkern.parameters.parameters import FEWEST_ROWS
from streamkern.passes.column_summary import ColumnSummary
from streamkern.passes.fit_context import FitContext
from streamkern.runtime.threads import blas_threads
from streamkern.statistics import RowSample
from streamkern.statistics.base import Composite, Statistic
from streamkern.statistics.declared_sums import part

# Rows of a window, with how many it tells something; places that windows are around; and by how
# much windows around a place differ.
_ROWS, _FEWEST, _PLACES, _SMALLER = 300, 50, 4, 3.0
# Shares of the sample on either side that the range of an input leaves out.
_ENDS = 0.01
_MOST_TARGETS = 32
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


class WindowSamples(Statistic):
    """A sample of up to k rows in every one of w boxes, which may overlap.

    Boxes have centres (w, p) and half sides (w, p) in what `placed` makes of rows.
    """

    placed: Callable[[Array], Floats]
    centres: Floats
    halves: Floats
    n_rows: int
    random_state: int = 0
    windows: Composite = part(
        lambda own: Composite(*(RowSample(own.n_rows, own.random_state) for _ in own.centres))
    )

    @property
    def samples(self) -> tuple[RowSample, ...]:
        return self.windows.parts

    def update(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            places = self.placed(block.X)
            for sample, centre, half in zip(self.samples, self.centres, self.halves, strict=True):
                inside = (np.abs(places - centre) <= half).all(axis=1)
                if inside.any():
                    sample.update([block.where(inside)])


def with_chosen_kernel(
    rows: FitContext, summary: ColumnSummary
) -> tuple[FitContext, ColumnSummary]:
    """Read the rows once, and return the context with the kernel of most evidence.

    Windows are a third as wide from one to the next, down to what waves tell apart.  Without a
    trend, length scales are along directions that rows are turned to, where that is surely better.
    """
    begun, options = time.perf_counter(), rows.options
    standardizer, varied = summary.standardizer, ~summary.columns.constant(0.0)
    varied = np.flatnonzero(varied[rows.source.n_features :])[:_MOST_TARGETS]
    placed = standardizer(summary.sample.X)
    if len(placed) < FEWEST_ROWS or not len(varied):
        return rows, summary
    trend = Trend.of(options.trend, standardizer.outputs)
    ranges = np.ptp(np.quantile(placed, [_ENDS, 1.0 - _ENDS], axis=0), axis=0)
    ranges = np.where(ranges > 0, ranges, np.ptp(placed, axis=0))
    ranges = np.where(ranges > 0, ranges, 1.0)  # of an input that is constant in the sample
    p = len(trend.along)
    n_sizes = max(math.ceil(math.log(options.n_components) / p / math.log(_SMALLER)), 1)
    sizes = 0.5 * _SMALLER ** -np.arange(1.0, n_sizes + 1)
    centres = np.repeat(placed[:_PLACES], n_sizes, axis=0)
    halves = np.full((len(centres), len(ranges)), np.inf)
    ranges = ranges[trend.along]
    halves[:, trend.along] = np.outer(np.tile(sizes, _PLACES), ranges)
    empty = WindowSamples(standardizer, centres, halves, _ROWS, options.random_state)
    told = _told(rows.read(empty, "kernels").statistic, n_sizes, summary, varied, trend)
    # One for each would be numbers for other inputs.
    if p < options.n_coordinates(rows.source.n_features):
        ranges = np.exp(np.log(ranges).mean(keepdims=True))
    windows: Any = scatter(told)
    found = compute(delayed(by_evidence, windows, ranges, name="evidence"))
    best = max(found, key=lambda each: each.per_row)
    if p > 1 and options.trend is None:
        best = compute(delayed(turned, best, windows, ranges, name="evidence"))
    scales: Any = tuple(best.length_scales.tolist())
    kernel = best.kernel.with_length_scale(scales if len(scales) > 1 else scales[0])
    rows = rows.told(
        passes=1,
        kernel_evidence={each.kernel.name: each.per_row for each in found},
        seconds={**rows.facts.get("seconds", {}), "kernels": time.perf_counter() - begun},
    )
    if best.linear is not None:
        summary = summary.in_metric(_upright(best.linear, placed))
        metric = metric_of(best.linear, standardizer.columns, standardizer.n_features)
        options = replace(options, metric=GivenMetric(metric))
    options = replace(options, kernel=kernel, chooses_kernel=False)
    return replace(rows, options=options), summary


def _upright(linear: Floats, rows: Floats) -> Floats:
    """Return Q A of a rotation Q that gives rows (n, p) times A^T the smallest box.

    A grid of waves is laid for that.  One side of the box is along what one input becomes.
    """
    found = []
    for order in permutations(range(len(linear))):
        upright = np.linalg.qr(linear[:, order])[1][:, np.argsort(order)]
        found.append((np.ptp(rows @ upright.T, axis=0).prod(), upright))
    return min(found, key=lambda each: each[0])[1]


def _told(
    read: WindowSamples, n_sizes: int, summary: ColumnSummary, targets: Array, trend: Trend
) -> list[Window]:
    """Return the whole field, and windows with rows enough that are not all in another."""
    kept = [summary.sample.first(_ROWS)]
    for start in range(0, len(read.samples), n_sizes):
        around = kept[0]
        for each in read.samples[start : start + n_sizes]:
            if len(around.hashes) < _ROWS or len(each.hashes) < _FEWEST:
                break  # as those in it have
            kept.append(each)
            around = each
    weight = float(np.mean([each.weights.mean() for each in kept]))
    shift, unit = (each[targets] for each in summary.target_scale.values())
    scaled = [(each.y[:, targets] - shift) / unit for each in kept]
    windows = list[Window]()
    for each, y in zip(kept, scaled, strict=True):
        rows = summary.standardizer(each.X)
        places = rows[:, trend.along]
        windows.append(Window(places, y, each.weights / weight, tuple(trend.values(rows).T)))
    return windows


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
    from scipy.optimize import minimize

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
