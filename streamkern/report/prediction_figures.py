"""Charts of predictions: against actual values, and the calibration of their intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from streamkern.report.axes import Axis
from streamkern.report.drawing import KINDS, Figure, Plot
from streamkern.report.numbers import counted, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern._typing import Array, Floats
    from streamkern.report.validation_pass import Validation

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_SHADES = 6
# Bins with fewer rows say little of a mean.
_ROWS_A_MEAN = 30
# 95% of what chance does lies within so many standard errors.
_CHANCE = 1.96


def pairs_figures(found: Validation, target: int, name: str) -> list[Figure]:
    """Draw predicted against actual values of a target, and residuals, as counts of rows."""
    values, residuals = found.bins.values[target], found.bins.residuals[target]
    pairs, errors = found.pairs[target], found.residuals[target]
    first, last = _occupied(pairs)
    edges = values[first : last + 1]
    rows = counted(found.n_rows, "row")
    shown = pairs[first + 1 : last + 1, first + 1 : last + 1]
    axis = Axis.over([edges[0], edges[-1]], room=0.0)
    plot = Plot(axis, axis, x_label=f"Predicted {name}", y_label=f"Actual {name}", height=280.0)
    levels, shades = _shaded(shown)
    plot.cells(levels, edges.tolist(), edges.tolist())
    for kind in ("halo", "guide"):
        plot.line([edges[0], edges[-1]], [edges[0], edges[-1]], kind)
    caption = f"{rows} in bins; on the dashed line predictions are right."
    caption += _beyond(found.n_rows - int(shown.sum()))
    agreement = plot.figure("Predicted and actual", caption, shades)

    low, high = _occupied_span(errors.sum(axis=0))
    heights = residuals[low : high + 1]
    shown = errors[first + 1 : last + 1, low + 1 : high + 1]
    reach = max(abs(heights[0]), abs(heights[-1]))
    plot = Plot(
        axis,
        Axis.over([-reach, reach], room=0.0),
        x_label=f"Predicted {name}",
        y_label=f"Actual less predicted {name}",
        height=280.0,
    )
    levels, shades = _shaded(shown)
    plot.cells(levels, edges.tolist(), heights.tolist())
    for kind in ("halo", "guide"):
        plot.rule(kind, y=0.0)
    middle = (heights[1:] + heights[:-1]) / 2.0
    counts = shown.sum(axis=1)
    known = counts >= _ROWS_A_MEAN
    caption = f"{rows} in bins; dashed is zero."
    if known.sum() > 1:
        means = (shown @ middle)[known] / counts[known]
        for kind in ("halo", "line second"):
            plot.line(((edges[1:] + edges[:-1]) / 2.0)[known], means, kind)
        caption += (
            f" The line is the mean where {_ROWS_A_MEAN} rows or more are in a column: away from "
            f"zero, predictions of that size are too low or too high."
        )
    caption += _beyond(found.n_rows - int(shown.sum()))
    return [agreement, plot.figure("Residuals", caption, shades)]


def _beyond(n_rows: int) -> str:
    return f" Beyond the picture: {counted(n_rows, 'row')}." if n_rows else ""


def _occupied(pairs: Array) -> tuple[int, int]:
    """Return the span of bins inside the edges that hold rows on either axis."""
    return _occupied_span(pairs.sum(axis=0) + pairs.sum(axis=1))


def _occupied_span(counts: Array) -> tuple[int, int]:
    """Return the first bin inside the edges that holds rows, and the one after the last."""
    used = np.flatnonzero(counts[1:-1])
    return (int(used[0]), int(used[-1]) + 1) if len(used) else (0, len(counts) - 2)


def _shaded(counts: Array) -> tuple[Array, tuple[str, ...]]:
    """Return levels of shading, 0 for no rows, and what each stands for."""
    most = int(counts.max(initial=0))
    if not most:
        return counts, ()
    bounds = np.unique(np.ceil(most ** (np.arange(_SHADES) / _SHADES)).astype(int))
    levels = np.searchsorted(bounds, counts, side="right")
    lasts = [*(bounds[1:] - 1), most]
    shades = [
        f"{low:,}" if low >= high else f"{low:,}–{high:,}"
        for low, high in zip(bounds.tolist(), lasts, strict=True)
    ]
    # So that few levels are as dark as many.
    darkest = np.where(levels > 0, levels + _SHADES - len(bounds), 0)
    return darkest, tuple(shades)


def coverage(standardized: Floats) -> Floats:
    """Return the shares of rows within the central intervals of `LEVELS`, (levels, q)."""
    reach = ndtri((1.0 + np.array(LEVELS)) / 2.0)
    shares: Floats = (np.abs(standardized)[None] <= reach[:, None, None]).mean(axis=1)
    return shares


def chance(n_rows: int) -> Floats:
    """Return how far those shares are off by chance, 95 times in 100, (levels,)."""
    nominal = np.array(LEVELS)
    return _CHANCE * np.sqrt(nominal * (1.0 - nominal) / n_rows)


def calibration_figures(standardized: Floats, names: Sequence[str]) -> list[Figure]:
    """Draw how many rows lie within intervals, and the standardised residuals."""
    n_rows, nominal = len(standardized), np.array(LEVELS)
    shares = coverage(standardized)[:, : len(KINDS)]
    apart, by_chance = 100.0 * (shares - nominal[:, None]), 100.0 * chance(n_rows)
    reach = max(5.0, 1.15 * float(np.abs(apart).max()), float(by_chance.max()))
    plot = Plot(
        Axis(5.0, 102.0, ticks=[(x, f"{x:.0f}%") for x in (10, 30, 50, 70, 90, 99)]),
        Axis(-reach, reach),
        x_label="Share of rows that the interval claims",
        y_label="Share found less share claimed, in points",
    )
    plot.band((100.0 * nominal).tolist(), -by_chance, by_chance)
    plot.rule("guide", y=0.0)
    for j, column in enumerate(apart.T):
        plot.line(100.0 * nominal, column, f"line {KINDS[j]}")
        plot.marks(100.0 * nominal, column, f"mark {KINDS[j]}", j)
        if len(apart.T) > 1:
            plot.label(names[j], 100.0 * nominal[4], column[4])
    caption = (
        f"Above zero, intervals are wider than they need be; below, too narrow. The band is what "
        f"chance does 95 times in 100 with {counted(n_rows, 'row')}."
    )
    figures = [plot.figure("Intervals", caption)]

    edges = np.linspace(-4.0, 4.0, 33)
    densities = [
        np.histogram(column, edges)[0] / (n_rows * (edges[1] - edges[0]))
        for column in standardized.T[: len(KINDS)]
    ]
    grid = np.linspace(-4.0, 4.0, 97)
    normal = np.exp(-0.5 * grid**2) / math.sqrt(2.0 * math.pi)
    plot = Plot(
        Axis(-4.0, 4.0),
        Axis(0.0, 1.08 * max(float(normal.max()), *(float(d.max()) for d in densities))),
        x_label="Residual over its standard deviation",
        y_label="Density of rows",
    )
    if len(densities) == 1:
        plot.bars(edges.tolist(), densities[0])
    else:
        for j, density in enumerate(densities):
            plot.line((edges[1:] + edges[:-1]) / 2.0, density, f"line {KINDS[j]}")
            plot.marks((edges[1:] + edges[:-1]) / 2.0, density, f"mark {KINDS[j]}", j)
    plot.line(grid, normal, "guide")
    plot.label("normal", grid[62], normal[62], beside=-2.0)
    outside = float((np.abs(standardized) > 4.0).mean())
    caption = (
        f"Were the errors normal, the {'bars' if len(densities) == 1 else 'lines'} would follow "
        f"the dashed curve. "
        f"{percent(outside, 2)} of rows lie beyond four standard deviations; "
        f"{percent(2.0 * float(ndtr(-4.0)), 3)} would."
    )
    return [*figures, plot.figure("Standardised residuals", caption)]
