"""The choice of kernel and length scales of a field, by one pass that samples windows of it."""

import math
import time
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.engine.scheduler import compute, delayed, scatter
from streamkern.features import Trend
from streamkern.features.metric import GivenMetric, metric_of
from streamkern.parameters.parameters import FEWEST_ROWS
from streamkern.passes.column_summary import ColumnSummary
from streamkern.passes.fit_context import FitContext
from streamkern.statistics import WindowSamples
from streamkern.tune.window_evidence import Window, by_evidence, turned

# Rows of a window, with how many it tells something; places that windows are around; and by how
# much windows around a place differ.
_ROWS, _FEWEST, _PLACES, _SMALLER = 300, 50, 4, 3.0
# Shares of the sample on either side that the range of an input leaves out.
_ENDS = 0.01
_MOST_TARGETS = 32


def with_chosen_kernel(
    rows: FitContext, summary: ColumnSummary
) -> tuple[FitContext, ColumnSummary]:
    """Read the rows once if the kernel of a field is open, and return passes with the best.

    Windows are a third as wide from one to the next, down to what waves tell apart.  Without a
    trend, length scales are along directions that rows are turned to, where that is surely better.
    """
    begun, options = time.perf_counter(), rows.options
    if not options.chooses_kernel or rows.like is not None:
        return rows, summary
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
    if p < rows.source.n_features - len(options.covariates):
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
