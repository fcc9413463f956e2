"""Charts of predictions of held-out rows: residuals, intervals, and how normal errors are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from streamkern.report.drawing import KINDS, Axis, Figure, Plot
from streamkern.report.numbers import counted, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern._typing import Array, Floats
    from streamkern.report.validation_pass import Validation

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_SHADES = 6
# Bins with fewer rows say little of a mean or a share.
ROWS_A_MEAN = 30
# 95% of what chance does lies within so many standard errors.
_CHANCE = 1.96


def pairs_figures(found: Validation, target: int, name: str) -> list[Figure]:
    """Draw predicted against actual values of a target, and residuals, as counts of rows."""
    counts, bins = found.measure, found.measure.bins
    pairs, errors = counts.pairs[target], counts.residuals[target]
    # Bins that hold rows on either axis.
    first, last = _occupied(pairs.sum(axis=0) + pairs.sum(axis=1))
    low, high = _occupied(errors.sum(axis=0))
    edges = bins.values[target][first : last + 1]
    heights = bins.residuals[target][low : high + 1]
    pairs = pairs[first + 1 : last + 1, first + 1 : last + 1]
    errors = errors[first + 1 : last + 1, low + 1 : high + 1]
    axis, predicted = Axis.over([edges[0], edges[-1]], room=0.0), f"Predicted {name}"
    plot = Plot(axis, axis, x_label=predicted, y_label=f"Actual {name}", height=280.0)
    shades = _shade(plot, pairs, edges, edges)
    for kind in ("halo", "guide"):
        plot.line([edges[0], edges[-1]], [edges[0], edges[-1]], kind)
    rows = counted(found.n_rows, "row")
    caption = f"{rows} in bins; on the dashed line predictions are right."
    caption += _beyond(found.n_rows - int(pairs.sum()))
    agreement = plot.figure("Predicted and actual", caption, shades)

    reach = max(abs(heights[0]), abs(heights[-1]))
    span, y_label = Axis.over([-reach, reach], room=0.0), f"Actual less predicted {name}"
    plot = Plot(axis, span, x_label=predicted, y_label=y_label, height=280.0)
    shades = _shade(plot, errors, edges, heights)
    for kind in ("halo", "guide"):
        plot.rule(kind, y=0.0)
    caption = f"{rows} in bins; dashed is zero."
    heights_of = errors.sum(axis=1)
    known = heights_of >= ROWS_A_MEAN
    if known.sum() > 1:
        means = (errors @ _middles(heights))[known] / heights_of[known]
        for kind in ("halo", "line second"):
            plot.line(_middles(edges)[known], means, kind)
        caption += (
            f" The line is the mean where {ROWS_A_MEAN} rows or more are in a column: away from "
            f"zero, predictions of that size are too low or too high."
        )
    caption += _beyond(found.n_rows - int(errors.sum()))
    return [agreement, plot.figure("Residuals", caption, shades)]


def _beyond(n_rows: int) -> str:
    return f" Beyond the picture: {counted(n_rows, 'row')}." if n_rows else ""


def _middles(edges: Floats) -> Floats:
    middles: Floats = (edges[1:] + edges[:-1]) / 2.0
    return middles


def _occupied(counts: Array) -> tuple[int, int]:
    """Return the first bin inside the edges that holds rows, and the one after the last."""
    used = np.flatnonzero(counts[1:-1])
    return (int(used[0]), int(used[-1]) + 1) if len(used) else (0, len(counts) - 2)


def _shade(plot: Plot, counts: Array, x_edges: Floats, y_edges: Floats) -> tuple[str, ...]:
    """Fill cells by how many rows they hold, and return the number that each shade stands for."""
    most = int(counts.max(initial=0))
    if not most:
        return ()
    bounds = np.unique(np.ceil(most ** (np.arange(_SHADES) / _SHADES)).astype(int))
    levels = np.searchsorted(bounds, counts, side="right")
    # So that few levels are as dark as many.
    darkest = np.where(levels > 0, levels + _SHADES - len(bounds), 0)
    plot.cells(darkest, x_edges.tolist(), y_edges.tolist())
    lasts = [*(bounds[1:] - 1), most]
    spans = zip(bounds.tolist(), lasts, strict=True)
    return tuple(f"{low:,}" if low >= high else f"{low:,}–{high:,}" for low, high in spans)


def coverage(standardized: Floats) -> Floats:
    """Return the shares of rows within the central intervals of `LEVELS`, (levels, q)."""
    reach = ndtri((1.0 + np.array(LEVELS)) / 2.0)
    shares: Floats = (np.abs(standardized)[None] <= reach[:, None, None]).mean(axis=1)
    return shares


def chance(n_rows: int) -> Floats:
    """Return how far those shares are off by chance, 95 times in 100, (levels,)."""
    nominal = np.array(LEVELS)
    return _CHANCE * np.sqrt(nominal * (1.0 - nominal) / n_rows)


def interval_figure(standardized: Floats, names: Sequence[str]) -> Figure:
    n_rows, nominal = len(standardized), 100.0 * np.array(LEVELS)
    apart = 100.0 * (coverage(standardized)[:, : len(KINDS)] - np.array(LEVELS)[:, None])
    by_chance = 100.0 * chance(n_rows)
    reach = max(5.0, 1.15 * float(np.abs(apart).max()), float(by_chance.max()))
    plot = Plot(
        Axis(5.0, 102.0, ticks=[(x, f"{x:.0f}%") for x in (10, 30, 50, 70, 90, 99)]),
        Axis(-reach, reach),
        x_label="Share of rows that the interval claims",
        y_label="Share found less share claimed, in points",
    )
    plot.band(nominal.tolist(), -by_chance, by_chance)
    plot.rule("guide", y=0.0)
    for j, column in enumerate(apart.T):
        plot.series(nominal, column, j)
        if len(apart.T) > 1:
            plot.label(names[j], nominal[4], column[4])
    caption = (
        f"Above zero, intervals are wider than they need be; below, too narrow. The band is what "
        f"chance does 95 times in 100 with {counted(n_rows, 'row')}."
    )
    return plot.figure("Intervals", caption)


def normality_figure(standardized: Floats) -> Figure:
    edges, grid = np.linspace(-4.0, 4.0, 33), np.linspace(-4.0, 4.0, 97)
    unit = len(standardized) * (edges[1] - edges[0])
    densities = [np.histogram(z, edges)[0] / unit for z in standardized.T[: len(KINDS)]]
    normal = np.exp(-0.5 * grid**2) / math.sqrt(2.0 * math.pi)
    highest = max(float(each.max()) for each in (normal, *densities))
    name = "Residual over its standard deviation"
    plot = Plot(Axis(-4.0, 4.0), Axis(0.0, 1.08 * highest), x_label=name, y_label="Density of rows")
    if len(densities) == 1:
        plot.bars(edges.tolist(), densities[0])
    else:
        for j, density in enumerate(densities):
            plot.series(_middles(edges), density, j)
    plot.line(grid, normal, "guide")
    plot.label("normal", grid[62], normal[62], beside=-2.0)
    outside = float((np.abs(standardized) > 4.0).mean())
    caption = (
        f"Were the errors normal, the {'bars' if len(densities) == 1 else 'lines'} would follow "
        f"the dashed curve. "
        f"{percent(outside, 2)} of rows lie beyond four standard deviations; "
        f"{percent(2.0 * float(ndtr(-4.0)), 3)} would."
    )
    return plot.figure("Standardised residuals", caption)
