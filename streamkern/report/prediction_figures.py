"""Charts of predictions of held-out rows, of targets and of classes, and their calibration."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri

from streamkern.report.drawing import KINDS, Axis, Figure, Plot
from streamkern.report.numbers import counted, number, percent
from streamkern.report.report_rows import class_error_rows
from streamkern.report.trial_tables import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern._typing import Array, Floats
    from streamkern.report.validation_pass import ClassValidation, Validation

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_SHADES = 6
# Bins with fewer rows say little of a mean or a share.
_ROWS_A_MEAN = 30
# 95% of what chance does lies within so many standard errors.
_CHANCE = 1.96
# Classes that have a row and a column in tables.
_MOST_CLASSES = 12
_SHARES = Axis(-0.02, 1.02, ticks=[(x, percent(x, 0)) for x in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)])


def pairs_figures(found: Validation, target: int, name: str) -> list[Figure]:
    """Draw predicted against actual values of a target, and residuals, as counts of rows."""
    pairs, errors = found.pairs[target], found.residuals[target]
    # Bins that hold rows on either axis.
    first, last = _occupied(pairs.sum(axis=0) + pairs.sum(axis=1))
    low, high = _occupied(errors.sum(axis=0))
    edges = found.bins.values[target][first : last + 1]
    heights = found.bins.residuals[target][low : high + 1]
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
    counts = errors.sum(axis=1)
    known = counts >= _ROWS_A_MEAN
    if known.sum() > 1:
        means = (errors @ _middles(heights))[known] / counts[known]
        for kind in ("halo", "line second"):
            plot.line(_middles(edges)[known], means, kind)
        caption += (
            f" The line is the mean where {_ROWS_A_MEAN} rows or more are in a column: away from "
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


def class_section(found: ClassValidation | None) -> dict[str, Any]:
    """Return what the page shows of predictions of classes."""
    if found is None:
        return {"tiles": [], "class_figures": None}
    errors, n_classes = found.errors, len(found.names)
    most = errors.confusion.sum(axis=1).max() / errors.weight
    auc = "–" if errors.auc is None else f"{errors.auc:.3f}"
    named = ("accuracy", "balanced_accuracy", "log_loss", "brier_score", "auc", "auc_error")
    values = {name: getattr(errors, name) for name in named}
    values["expected_calibration_error"] = errors.calibration_error
    more = f", the largest {_MOST_CLASSES} of {n_classes:,}" if n_classes > _MOST_CLASSES else ""
    return {
        "tiles": [
            ("Accuracy, held out", percent(errors.accuracy), f"{percent(most)} by guessing"),
            ("Area under the curve", auc, "1 is best, 0.5 chance"),
            ("Calibration error", percent(errors.calibration_error, 2), "of probabilities"),
        ],
        "class_figures": [probability_figure(found), roc_figure(found)],
        "class_errors": class_error_rows(values, number),
        "confusion": confusion_table(found),
        "classes_shown": more,
    }


def confusion_table(found: ClassValidation) -> Table:
    confusion, shown = found.errors.confusion, _largest(found)
    of_class, predicted = confusion.sum(axis=1), confusion.sum(axis=0)
    rows = [
        (
            found.names[k],
            *(number(_whole(confusion[k, other])) for other in shown),
            *(percent(confusion[k, k] / n[k]) if n[k] else "–" for n in (of_class, predicted)),
        )
        for k in shown
    ]
    return Table(("class", *(found.names[k] for k in shown), "recall", "precision"), rows)


def probability_figure(found: ClassValidation) -> Figure:
    """Draw shares of rows over the probabilities that they were given."""
    two = len(found.names) == 2
    name, share = found.names[1] if two else "a class", "Share of rows that are of it"
    plot = Plot(_SHARES, _SHARES, x_label=f"Probability of {name}", y_label=share, height=280.0)
    plot.line([0.0, 1.0], [0.0, 1.0], "guide")
    weight, sums, of_class, n_rows = found.errors.by_probability.sum(axis=0)
    known = (n_rows >= _ROWS_A_MEAN) & (weight > 0)
    plot.series(sums[known] / weight[known], of_class[known] / weight[known])
    caption = (
        f"On the dashed line probabilities are true: of rows that get 80%, 80% are of the class. "
        f"Marks are of bins with {_ROWS_A_MEAN} rows or more"
        f"{'' if two else ', all classes together'}."
    )
    return plot.figure("Calibration", caption)


def roc_figure(found: ClassValidation) -> Figure:
    held, areas = found.errors.confusion.sum(axis=1), found.errors.table.auc
    classes = [1] if len(found.names) == 2 else [k for k in _largest(found) if held[k] > 0]
    y_label = "True positive rate" + f" of {found.names[classes[0]]}" * (len(classes) == 1)
    plot = Plot(_SHARES, _SHARES, x_label="False positive rate", y_label=y_label, height=280.0)
    plot.line([0.0, 1.0], [0.0, 1.0], "guide")
    said = []
    for j, k in enumerate(classes[: len(KINDS)]):
        place = 0 if len(found.names) == 2 else k
        xs, ys = map(_above, found.errors.table.weights[place])
        plot.line(xs, ys, f"line {KINDS[j]}")
        said.append(f"{areas[place]:.3f}")
        if len(classes) > 1:
            middle = int(np.searchsorted(xs, 0.1 * (j + 1)))
            plot.label(found.names[k], xs[middle], ys[middle], dy=14.0)
            said[-1] += f" ({found.names[k]})"
    caption = (
        f"Every point is another score from which on a row is taken for one of the class. The area "
        f"under the curve is {', '.join(said)}; on the dashed line scores tell nothing."
    )
    return plot.figure("ROC curve", caption)


def _above(weights: Floats) -> Floats:
    """Return the share of the weight that is in each bin or above it, from 0 to 1."""
    above: Floats = np.concatenate([[0.0], np.cumsum(weights[::-1])])
    return above / above[-1] if above[-1] else above


def _largest(found: ClassValidation) -> list[int]:
    """Return the places of the classes with the largest weight, in their own order."""
    held: Array = found.errors.confusion.sum(axis=1)
    return sorted(np.argsort(-held, kind="stable")[:_MOST_CLASSES].tolist())


def _whole(weight: float) -> float | int:
    """Return a weight as a whole number where it is one, up to rounding."""
    whole = round(weight)
    return whole if abs(weight - whole) <= 1e-9 * max(weight, 1.0) else float(weight)
