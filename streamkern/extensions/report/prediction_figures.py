"""Pictures of predictions: residuals and intervals of held-out rows, and maps of fields."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from streamkern._typing import Array, Floats
from streamkern.errors.formatting import printable
from streamkern.extensions.report import pictures
from streamkern.extensions.report.input_effects import shown_targets
from streamkern.extensions.report.numbers import counted, percent, shortened
from streamkern.extensions.report.pair_counts import PairCounts
from streamkern.extensions.report.pictures import Figure
from streamkern.models.fitted_ridge import FittedRidge

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
# Bins with fewer rows say little of a mean or a share.
ROWS_A_MEAN = 30
# The height of a picture that is about as tall as wide, in inches.
SQUARE = 4.0
# 95% of what chance does lies within so many standard errors.
CHANCE = 1.96
# Cells along an input of a map, and features of which deviations are drawn at the most: they take
# D^3 operations.
_CELLS, _MOST_COMPONENTS = 60, 4096


def pairs_figures(counts: PairCounts, n_rows: int, target: int, name: str) -> list[Figure]:
    """Draw predicted against actual values of a target, and residuals, as counts of rows."""
    pairs, errors = counts.pairs[target], counts.residuals[target]
    # Bins that hold rows on either axis.
    across = _occupied(pairs.sum(axis=0) + pairs.sum(axis=1))
    up = _occupied(errors.sum(axis=0))
    edges = counts.values[target][across.start : across.stop + 1]
    heights = counts.errors[target][up.start : up.stop + 1]
    pairs, errors = pairs[across, across], errors[across, up]
    rows, label = f"{counted(n_rows, 'row')} in bins", "rows in a cell"

    def draw_pairs(axes: Any) -> None:
        pictures.cells(axes, pairs, edges, edges, label)
        axes.axline((edges[0], edges[0]), slope=1.0, **pictures.GUIDE)
        axes.set(xlim=edges[[0, -1]], ylim=edges[[0, -1]])
        pictures.name_axes(axes, f"Predicted {name}", f"Actual {name}")

    of_column = errors.sum(axis=1)
    known = of_column >= ROWS_A_MEAN
    means = (errors @ (heights[1:] + heights[:-1]))[known] / 2.0 / of_column[known]

    def draw_residuals(axes: Any) -> None:
        pictures.cells(axes, errors, edges, heights, label)
        axes.axhline(0.0, **pictures.GUIDE)
        axes.plot(((edges[1:] + edges[:-1]) / 2.0)[known], means, color="C1", linestyle="-")
        pictures.name_axes(axes, f"Predicted {name}", f"Actual less predicted {name}")

    def draw_values(axes: Any) -> None:
        share = 100.0 / max(n_rows, 1)
        axes.stairs(share * pairs.sum(axis=0), edges, fill=True, color="C0", alpha=0.4)
        axes.stairs(share * pairs.sum(axis=1), edges, color="C1")
        pictures.name_axes(axes, name[:1].upper() + name[1:], "% of rows in a bin")

    return [
        Figure(
            "Predicted and actual",
            f"{rows}; on the dashed line predictions are right.{_beyond(n_rows, pairs)}",
            draw_pairs,
            SQUARE,
        ),
        Figure(
            "Residuals",
            f"{rows}; dashed is zero. The line is the mean where {ROWS_A_MEAN} rows or more are in "
            f"a column: away from zero, predictions of that size are too low or too high."
            f"{_beyond(n_rows, errors)}",
            draw_residuals,
            SQUARE,
        ),
        Figure(
            "Distribution", "Bars are actual values, the line is what was predicted.", draw_values
        ),
    ]


def _beyond(n_rows: int, shown: Array) -> str:
    beyond = n_rows - int(shown.sum())
    return f" Beyond the picture: {counted(beyond, 'row')}." if beyond else ""


def _occupied(counts: Array) -> slice:
    """Return the bins between finite edges from the first that holds rows to the last."""
    used = np.flatnonzero(counts[1:-1]).tolist()
    return slice(used[0] + 1, used[-1] + 2) if used else slice(1, len(counts) - 1)


def coverage(standardized: Floats) -> Floats:
    """Return the shares of rows within the central intervals of `LEVELS`, (levels, q)."""
    reach = ndtri((1.0 + np.array(LEVELS)) / 2.0)
    return (np.abs(standardized)[None] <= reach[:, None, None]).mean(axis=1)


def interval_figure(standardized: Floats, names: Sequence[str]) -> Figure:
    """Draw by how much more or fewer rows lie in intervals than these claim."""
    claimed, n_rows = np.array(LEVELS), len(standardized)
    apart = 100.0 * (coverage(standardized)[:, : pictures.MOST_LINES] - claimed[:, None])
    by_chance = 100.0 * (CHANCE * np.sqrt(claimed * (1.0 - claimed) / n_rows))
    far = max(5.0, 1.15 * float(np.abs(apart).max()), float(by_chance.max()))

    def draw(axes: Any) -> None:
        pictures.name_axes(
            axes, "% of rows that the interval claims", "Share found less claimed, points"
        )
        axes.fill_between(100.0 * claimed, -by_chance, by_chance, color="C0", alpha=0.17)
        axes.axhline(0.0, **pictures.GUIDE)
        columns = zip(names, apart.T, strict=False)
        pictures.draw_lines(axes, {name: (100.0 * claimed, each) for name, each in columns}, "o")
        axes.set_ylim(-far, far)

    caption = (
        f"Above zero, intervals are wider than they need be; below, too narrow. The band is what "
        f"chance does 95 times in 100 with {counted(n_rows, 'row')}."
    )
    return Figure("Intervals", caption, draw)


def normality_figure(standardized: Floats, names: Sequence[str]) -> Figure:
    """Draw how residuals over their standard deviations are distributed, beside the normal."""
    edges = np.linspace(-4.0, 4.0, 33)
    grid, unit = (edges[1:] + edges[:-1]) / 2.0, len(standardized) * (edges[1] - edges[0])
    columns = zip(names, standardized.T[: pictures.MOST_LINES], strict=False)
    densities = {name: (grid, np.histogram(z, edges)[0] / unit) for name, z in columns}

    def draw(axes: Any) -> None:
        pictures.name_axes(axes, "Residual over its standard deviation", "Density of rows")
        pictures.draw_lines(axes, densities, "o")
        axes.plot(grid, np.exp(-0.5 * grid**2) / math.sqrt(2.0 * math.pi), **pictures.GUIDE)

    outside = float((np.abs(standardized) > 4.0).mean())
    caption = (
        f"Were the errors normal, they would follow the dashed curve. {percent(outside, 2)} of "
        f"rows lie beyond four standard deviations; {percent(2.0 * float(ndtr(-4.0)), 3)} would."
    )
    return Figure("Standardised residuals", caption, draw)


def field_maps(model: FittedRidge) -> list[Figure]:
    """Return maps over the range of the rows; none unless there are two inputs and one target."""
    ranges = model.columns.input_range or []
    if len(ranges) != 2 or model.predictor.n_targets != 1 or any(a == b for a, b in ranges):
        return []
    has_std = model.report.get("dispersion", 1.0) is not None and model.equations is not None
    has_std &= len(model.predictor.coef) <= _MOST_COMPONENTS
    # The middles of pictures.cells.
    middles = [np.linspace(a, b, 2 * _CELLS + 1)[1::2] for a, b in ranges]
    rows = np.stack(np.meshgrid(*middles, indexing="ij"), axis=-1).reshape(-1, 2)
    found: Any = model.predict(rows, return_std=True) if has_std else (model.predict(rows),)
    names = [shortened(printable(name)) for name in model.columns.named([0, 1])]

    def map_of(title: str, values: Floats) -> Figure:
        def draw(axes: Any) -> None:
            edges = [np.linspace(a, b, _CELLS + 1) for a, b in ranges]
            pictures.cells(axes, values.reshape(_CELLS, _CELLS), edges[0], edges[1], "")
            pictures.name_axes(axes, names[0], names[1])

        return Figure(title, "Over the range of the rows.", draw, SQUARE)

    maps = [map_of(f"Predicted {shown_targets(model)[0]}", found[0])]
    if has_std and np.isfinite(found[1]).all():
        maps.append(map_of("Standard deviation of a new row", found[1]))
    return maps
