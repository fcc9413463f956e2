"""Charts of predictions: residuals and intervals of held-out rows, and maps of fields."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from streamkern._typing import Array, Floats
from streamkern.errors.formatting import printable
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.models.grid_prediction import predicted_grid
from streamkern.predict.evaluation import PairCounts
from streamkern.report import chart_marks as chart
from streamkern.report.numbers import counted, number, percent, shortened
from streamkern.report.page_facts import shown_targets
from streamkern.report.rendering import Figure, palette

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_SHADES = 6
# The height of a picture that is about as tall as wide.
SQUARE = 344.0
# Bins with fewer rows say little of a mean or a share.
ROWS_A_MEAN = 30
# 95% of what chance does lies within so many standard errors.
_CHANCE = 1.96
# Cells along an input of a map, and features of which deviations are drawn at the most: they take
# D^3 operations.
_CELLS, _MOST_COMPONENTS = 60, 4096


def pairs_figures(counts: PairCounts, n_rows: int, target: int, name: str) -> list[Figure]:
    """Draw predicted against actual values of a target, and residuals, as counts of rows."""
    pairs, errors = counts.pairs[target], counts.residuals[target]
    # Bins that hold rows on either axis.
    first, last = _occupied(pairs.sum(axis=0) + pairs.sum(axis=1))
    low, high = _occupied(errors.sum(axis=0))
    edges = counts.values[target][first : last + 1]
    heights = counts.errors[target][low : high + 1]
    pairs, errors = pairs[first:last, first:last], errors[first:last, low:high]
    predicted, rows = f"Predicted {name}", counted(n_rows, "row")
    ends, middles = [edges[0], edges[-1]], (edges[1:] + edges[:-1]) / 2.0

    def draw_pairs(axes: Any) -> None:
        chart.cells(axes, _levels(pairs), edges, edges)
        chart.guide(axes, ends, ends)
        axes.set(xlim=ends, ylim=ends)
        chart.name_axes(axes, predicted, f"Actual {name}")

    caption = f"{rows} in bins; on the dashed line predictions are right."
    caption += _beyond(n_rows - int(pairs.sum()))
    agreement = Figure("Predicted and actual", caption, draw_pairs, SQUARE, _shades(pairs))

    far = max(abs(heights[0]), abs(heights[-1]))
    caption = f"{rows} in bins; dashed is zero."
    heights_of = errors.sum(axis=1)
    known = heights_of >= ROWS_A_MEAN
    means = (errors @ (heights[1:] + heights[:-1]))[known] / 2.0 / heights_of[known]
    if known.sum() > 1:
        caption += (
            f" The line is the mean where {ROWS_A_MEAN} rows or more are in a column: away from "
            f"zero, predictions of that size are too low or too high."
        )
    caption += _beyond(n_rows - int(errors.sum()))

    def draw_residuals(axes: Any) -> None:
        chart.cells(axes, _levels(errors), edges, heights)
        chart.guide(axes, ends, [0.0, 0.0])
        if known.sum() > 1:
            chart.line(
                axes, middles[known], means, color=palette()["paper"], linewidth=4.0, alpha=0.7
            )
            chart.line(axes, middles[known], means, 1)
        axes.set(xlim=ends, ylim=(-far, far))
        chart.name_axes(axes, predicted, f"Actual less predicted {name}")

    residuals = Figure("Residuals", caption, draw_residuals, SQUARE, _shades(errors))
    share = 100.0 / max(n_rows, 1)

    def draw_values(axes: Any) -> None:
        actual, told = share * pairs.sum(axis=0), share * pairs.sum(axis=1)
        axes.stairs(actual, edges, fill=True, color=palette()["shade3"])
        axes.stairs(told, edges, color=palette()["second"], linewidth=1.6)
        axes.set_xlim(*ends)
        chart.name_axes(axes, name[:1].upper() + name[1:], "% of rows in a bin")

    caption = "Bars are actual values, the line is what was predicted."
    return [agreement, residuals, Figure("Distribution", caption, draw_values)]


def _beyond(n_rows: int) -> str:
    return f" Beyond the picture: {counted(n_rows, 'row')}." if n_rows else ""


def _occupied(counts: Array) -> tuple[int, int]:
    """Return the first bin between finite edges that holds rows, and the one after the last."""
    used = np.flatnonzero(counts[1:-1])
    return (int(used[0]) + 1, int(used[-1]) + 2) if len(used) else (1, len(counts) - 1)


def _bounds(counts: Array) -> Array:
    """Return the fewest rows of every shade, up to six, in steps of equal ratios."""
    most = max(int(counts.max(initial=0)), 1)
    return np.unique(np.ceil(most ** (np.arange(_SHADES) / _SHADES)).astype(int))


def _levels(counts: Array) -> Array:
    """Return the shade of every cell, by how many rows it holds, and 0 for none."""
    bounds = _bounds(counts)
    levels = np.searchsorted(bounds, counts, side="right")
    # So that few levels are as dark as many.
    return np.where(levels > 0, levels + _SHADES - len(bounds), 0)


def _shades(counts: Array) -> tuple[str, ...]:
    """Return the numbers of rows that each shade stands for."""
    if not counts.any():
        return ()
    bounds = _bounds(counts)
    spans = zip(bounds.tolist(), [*(bounds[1:] - 1), int(counts.max())], strict=True)
    return tuple(f"{low:,}" if low >= high else f"{low:,}–{high:,}" for low, high in spans)


def coverage(standardized: Floats) -> Floats:
    """Return the shares of rows within the central intervals of `LEVELS`, (levels, q)."""
    reach = ndtri((1.0 + np.array(LEVELS)) / 2.0)
    return (np.abs(standardized)[None] <= reach[:, None, None]).mean(axis=1)


def interval_figure(standardized: Floats, names: Sequence[str]) -> Figure:
    n_rows, claimed = len(standardized), np.array(LEVELS)
    nominal = 100.0 * claimed
    apart = 100.0 * (coverage(standardized)[:, : len(chart.KINDS)] - claimed[:, None])
    by_chance = 100.0 * (_CHANCE * np.sqrt(claimed * (1.0 - claimed) / n_rows))
    far = max(5.0, 1.15 * float(np.abs(apart).max()), float(by_chance.max()))

    def draw(axes: Any) -> None:
        axes.set(xlim=(5.0, 102.0), ylim=(-far, far))
        axes.set_xticks(ticks := (10, 30, 50, 70, 90, 99), [f"{x}%" for x in ticks])
        x_label = "Share of rows that the interval claims"
        chart.name_axes(axes, x_label, "Share found less share claimed, in points", "y")
        chart.band(axes, nominal, -by_chance, by_chance)
        axes.axhline(0.0, color=palette()["ink"], **chart.GUIDE)
        for j, column in enumerate(apart.T):
            chart.series(axes, nominal, column, j)
            if len(apart.T) > 1:
                chart.label(axes, names[j], nominal[4], column[4], j=j)

    caption = (
        f"Above zero, intervals are wider than they need be; below, too narrow. The band is what "
        f"chance does 95 times in 100 with {counted(n_rows, 'row')}."
    )
    return Figure("Intervals", caption, draw)


def normality_figure(standardized: Floats) -> Figure:
    edges, grid = np.linspace(-4.0, 4.0, 33), np.linspace(-4.0, 4.0, 97)
    unit = len(standardized) * (edges[1] - edges[0])
    densities = [np.histogram(z, edges)[0] / unit for z in standardized.T[: len(chart.KINDS)]]
    normal = np.exp(-0.5 * grid**2) / math.sqrt(2.0 * math.pi)
    highest = max(float(each.max()) for each in (normal, *densities))

    def draw(axes: Any) -> None:
        axes.set(xlim=(-4.0, 4.0), ylim=(0.0, 1.08 * highest))
        chart.name_axes(axes, "Residual over its standard deviation", "Density of rows")
        if len(densities) == 1:
            axes.stairs(densities[0], edges, fill=True, color=palette()["shade3"])
        else:
            for j, density in enumerate(densities):
                chart.series(axes, (edges[1:] + edges[:-1]) / 2.0, density, j)
        axes.plot(grid, normal, color=palette()["ink"], **chart.GUIDE)
        chart.label(axes, "normal", grid[68], normal[68], down=-4.0)

    outside = float((np.abs(standardized) > 4.0).mean())
    caption = (
        f"Were the errors normal, the {'bars' if len(densities) == 1 else 'lines'} would follow "
        f"the dashed curve. "
        f"{percent(outside, 2)} of rows lie beyond four standard deviations; "
        f"{percent(2.0 * float(ndtr(-4.0)), 3)} would."
    )
    return Figure("Standardised residuals", caption, draw)


def field_maps(model: FittedRidge) -> list[Figure]:
    """Return maps over the range of the rows; none unless there are two inputs and one target."""
    ranges = model.columns.input_range or []
    if len(ranges) != 2 or model.predictor.n_targets != 1 or any(a == b for a, b in ranges):
        return []
    has_std = model.equations is not None and len(model.predictor.coef) <= _MOST_COMPONENTS
    # The middles of cells.
    middles = [np.linspace(a, b, 2 * _CELLS + 1)[1::2] for a, b in ranges]
    found = predicted_grid(model, middles, return_std=has_std)
    edges = [np.linspace(a, b, _CELLS + 1) for a, b in ranges]
    names = [shortened(printable(name)) for name in model.columns.named([0, 1])]
    target = shown_targets(model)[0]
    maps = [_map(f"Predicted {target}", found.y_pred, edges, names)]
    if found.y_std is not None and np.isfinite(found.y_std).all():
        title = "Standard deviation of a new row"
        maps.append(_map(title, found.y_std, edges, names))
    return maps


def _map(title: str, values: Floats, edges: list[Floats], names: list[str]) -> Figure:
    """Draw values (x, y) in shades that as many cells have each."""
    bounds = np.quantile(values, np.arange(1, _SHADES) / _SHADES)
    levels = 1 + np.searchsorted(bounds, values.reshape(_CELLS, _CELLS), side="right")
    ends = [float(values.min()), *bounds.tolist(), float(values.max())]
    shades = tuple(f"{number(a)} to {number(b)}" for a, b in pairwise(ends))

    def draw(axes: Any) -> None:
        chart.cells(axes, levels, *edges)
        axes.set(xlim=edges[0][[0, -1]], ylim=edges[1][[0, -1]])
        chart.name_axes(axes, *names)

    caption = "Over the range of the rows; every shade has as many cells."
    return Figure(title, caption, draw, SQUARE, shades, "from")
