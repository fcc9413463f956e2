"""Charts of validation curves: the penalty, the number of features, the search."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.report.axes import Axis
from streamkern.report.drawing import KINDS, Figure, Plot
from streamkern.report.numbers import number
from streamkern.report.trial_tables import first_scale
from streamkern.tune.frontier import map_in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern._typing import Floats
    from streamkern.report.choice_curves import Curve

# A little above the error of predicting the mean; and how many times the least error is shown.
_MEAN, _TIMES = 1.1, 2.0
_CAPTIONS = {
    "cv": "The line is the mean of all rows left out",
    "gcv": "The line is robust generalised cross-validation",
    "evidence": "The line is the log marginal likelihood",
    "loo": "The line is the error of all rows, each left out in turn",
}
_CRITERIA = {
    "cv": "Error on rows left out, in sd of y",
    "gcv": "√robust GCV, in sd of y",
    "evidence": "Log evidence",
    "loo": "Error on rows left out, in sd of y",
}


def penalty_figure(curve: Curve, names: Sequence[str]) -> Figure:
    """Draw the criterion over penalties: the mean, every fold, what was chosen."""
    drawn = [curve.values] if curve.targets is None else list(curve.targets.T[: len(KINDS)])
    folds = [] if curve.folds is None or curve.targets is not None else list(curve.folds)
    reach = np.concatenate([*drawn, *folds])
    if curve.criterion != "evidence":
        # Far from the best, errors would leave no room for what is near it.
        least = float(np.nanmin(np.concatenate(drawn)))
        reach = reach[reach <= min(max(_MEAN, 1.1 * least), _TIMES * least)]
    plot = Plot(
        Axis.over(curve.x, room=0.02, is_log=True),
        Axis.over(reach),
        x_label="Penalty α",
        y_label=_CRITERIA[curve.criterion],
    )
    for fold in folds:
        plot.line(curve.x, fold, "fold")
    if curve.errors is not None and curve.targets is None:
        plot.band(curve.x.tolist(), curve.values - curve.errors, curve.values + curve.errors)
    if curve.threshold is not None:
        plot.rule("guide", y=curve.threshold)
        plot.label("best + 1 standard error", curve.x[-1], curve.threshold)
    for j, values in enumerate(drawn):
        kind, at = KINDS[j], curve.chosen[min(j, len(curve.chosen) - 1)]
        plot.line(curve.x, values, f"line {kind}")
        plot.rule("chosen", x=float(curve.x[at]))
        plot.marks([curve.x[at]], [values[at]], f"mark {kind}", j)
        label = f"α = {number(float(curve.x[at]))}"
        if curve.targets is not None:
            label = f"{names[j]}: {label}"
        # Away from where the best values are.
        is_low = curve.criterion == "evidence"
        y, dy = (plot.y.low, -7.0 - 15.0 * j) if is_low else (plot.y.high, 12.0 + 15.0 * j)
        plot.label(label, curve.x[at], y, dy=dy)
    caption = _CAPTIONS[curve.criterion]
    if curve.targets is not None:
        caption = f"{caption.replace('The line is', 'Lines are')}, one for every target"
    if folds:
        caption += (
            f", thin lines are the {len(folds)} folds, the band one standard error across folds"
        )
    caption += "; vertical lines mark what was chosen."
    if curve.criterion != "evidence":
        caption += " An error of 1 is that of predicting the mean."
    if curve.criterion == "cv" and curve.folds is None:
        caption += " The errors of single folds are known to the fit alone, not to its model file."
    return plot.figure("The penalty", caption)


def sizes_figure(curve: Curve, *, is_sparse: bool = False) -> Figure:
    """Draw the error left out over the number of features, or of those that are kept."""
    errors = np.zeros_like(curve.values) if curve.errors is None else curve.errors
    low, high = curve.values - errors, curve.values + errors
    ticks = _spread_ticks(curve.x)
    plot = Plot(
        Axis.over(curve.x, is_log=True, ticks=ticks),
        Axis.over([*low, *high]),
        x_label="Number of features that are kept" if is_sparse else "Number of random features D",
        y_label=_CRITERIA["cv"],
    )
    (at,) = curve.chosen
    plot.rule("chosen", x=float(curve.x[at]))
    plot.line(curve.x, curve.values, "line first")
    plot.spans(curve.x, low, high)
    plot.marks(curve.x, curve.values, "mark first")
    plot.label(f"the model: {curve.x[at]:,.0f}", curve.x[at], plot.y.high, dy=12.0)
    whose = "the penalty of the model" if is_sparse else "a penalty of its own"
    caption = (
        f"Every point has {whose}; short lines are one standard error across folds. The long line "
        f"marks the number that the model has, {curve.x[at]:,.0f}."
    )
    title = "Few features of many" if is_sparse else "The number of features"
    return plot.figure(title, caption)


def _spread_ticks(values: Floats, most: int = 7) -> list[tuple[float, str]]:
    """Return labels for values, some left out where they are many, the last one never."""
    every = -(-len(values) // most)
    kept = values[::-1][::every][::-1]
    return [(float(value), f"{value:,.0f}") for value in kept]


def search_figures(report: dict[str, Any]) -> list[Figure]:
    """Draw what a search tried, and error against cost.

    There is a picture for every kernel and map, of the error left out over the length scale, and
    one of all of them.
    """
    if not report.get("tuning"):
        return []
    figures, chosen = [], first_scale(report)
    tried = sorted(report["tuning"], key=_name_of)
    several = len({map_in_words(attempt) for attempt in tried}) > 1
    best = next(each for each in report["frontier"] if each["is_chosen"])
    errors = [math.sqrt(attempt["relative_mse"]) for attempt in tried]
    scales = [first_scale(attempt) for attempt in tried]
    span, axis = Axis.over(scales, is_log=True), Axis.over(errors)
    for (kernel, feature_map), group in groupby(tried, key=_name_of):
        mine = list(group)
        plot = Plot(span, axis, x_label="Length scale", y_label=_CRITERIA["cv"])
        for j, size in enumerate(sorted({attempt["n_components"] for attempt in mine})):
            rung = sorted(
                (first_scale(a), math.sqrt(a["relative_mse"]))
                for a in mine
                if a["n_components"] == size
            )
            xs, ys = zip(*rung, strict=True)
            plot.line(xs, ys, f"line {KINDS[j % 4]}")
            plot.marks(xs, ys, f"mark {KINDS[j % 4]}", j)
            plot.label(f"D = {size:,}", xs[-1], ys[-1], beside=4.0)
        caption = (
            f"The error left out on a sample of {mine[0]['n_rows']:,} rows, at numbers of features "
            f"D of up to that of the model. "
        )
        if (kernel, feature_map) == _name_of(best):
            plot.rule("chosen", x=chosen)
            plot.label(number(chosen), chosen, plot.y.high, dy=12.0)
            caption += f"The vertical line is the length scale chosen, {number(chosen)}."
        else:
            caption += "This was not chosen."
        title = f"{kernel.capitalize()} kernel" + (f", {feature_map} map" if several else "")
        figures.append(plot.figure(title, caption))
    return [frontier_figure(report["frontier"]), *figures]


def _name_of(attempt: dict[str, Any]) -> tuple[str, str]:
    return attempt["kernel"], map_in_words(attempt)


def frontier_figure(frontier: Sequence[dict[str, Any]]) -> Figure:
    """Draw the error of every kernel, map and number of features over what a fit would take."""
    seconds = [each["seconds"] for each in frontier]
    errors = [math.sqrt(each["relative_mse"]) for each in frontier]
    plot = Plot(
        Axis.over(seconds, is_log=True),
        Axis.over(errors),
        x_label="Seconds of a fit to all rows, as predicted",
        y_label=_CRITERIA["cv"],
    )
    best = [i for i, each in enumerate(frontier) if each["is_best"]]
    plot.line([seconds[i] for i in best], [errors[i] for i in best], "line first")
    names = sorted({map_in_words(each) for each in frontier})
    for j, name in enumerate(names):
        mine = [i for i, each in enumerate(frontier) if map_in_words(each) == name]
        xs, ys = [seconds[i] for i in mine], [errors[i] for i in mine]
        plot.marks(xs, ys, f"mark {KINDS[j % 4]}", j)
    (at,) = (i for i, each in enumerate(frontier) if each["is_chosen"])
    chosen = frontier[at]
    plot.rule("chosen", x=seconds[at])
    what = f"{chosen['kernel']}, {map_in_words(chosen)}, D = {chosen['n_components']:,}"
    plot.label(what, seconds[at], plot.y.high, dy=12.0)
    shapes = ("circles", "squares", "triangles", "diamonds")
    marked = "; ".join(f"{shapes[j % 4]}: {name}" for j, name in enumerate(names))
    caption = (
        f"Every mark is a kernel, a map and a number of features D, at its best length scale "
        f"({marked}). No mark is both left of the line and below it. The vertical line is what was "
        f"chosen, at the largest D that it was tried at."
    )
    return plot.figure("Error against cost", caption)
