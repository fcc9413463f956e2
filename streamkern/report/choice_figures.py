"""Charts of what was chosen: the penalty, the number of features, and what a search tried."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.report.drawing import KINDS, Axis, Figure, Plot
from streamkern.report.figure_labels import LABELS
from streamkern.report.numbers import number
from streamkern.report.trial_tables import error_of, first_scale
from streamkern.tune.search_result import map_in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern.parameters.fit_report import FitReport
    from streamkern.report.validation_curves import Curve

# A little above the error of predicting the mean; and how many times the least error is shown.
_MEAN, _TIMES = 1.1, 2.0
_ERROR = LABELS["relative_mse"].text
# The label of an axis, and the beginning of a caption.
_CRITERIA = {
    "cv": (_ERROR, "The line is the mean of all rows left out"),
    "gcv": ("√robust GCV, in sd of y", "The line is robust generalised cross-validation"),
    "evidence": ("Log evidence", "The line is the log marginal likelihood"),
    "loo": (_ERROR, "The line is the error of all rows, each left out in turn"),
}


def penalty_figure(curve: Curve, names: Sequence[str]) -> Figure:
    several, is_evidence = curve.targets is not None, curve.criterion == "evidence"
    drawn = [curve.values] if curve.targets is None else list(curve.targets.T[: len(KINDS)])
    folds = [] if curve.folds is None or several else list(curve.folds)
    reach = np.concatenate([*drawn, *folds])
    if not is_evidence:
        # Far from the best, errors would leave no room for what is near it.
        least = float(np.nanmin(np.concatenate(drawn)))
        reach = reach[reach <= min(max(_MEAN, 1.1 * least), _TIMES * least)]
    x, y_label = Axis.over(curve.x, room=0.02, is_log=True), _CRITERIA[curve.criterion][0]
    plot = Plot(x, Axis.over(reach), x_label="Penalty α", y_label=y_label)
    for fold in folds:
        plot.line(curve.x, fold, "fold")
    if curve.errors is not None and not several:
        plot.band(curve.x.tolist(), curve.values - curve.errors, curve.values + curve.errors)
    if curve.threshold is not None:
        plot.rule("guide", y=curve.threshold)
        plot.label("best + 1 standard error", curve.x[-1], curve.threshold)
    # Away from where the best values are.
    y, first, down = (plot.y.low, -7.0, -15.0) if is_evidence else (plot.y.high, 12.0, 15.0)
    for j, values in enumerate(drawn):
        at = curve.chosen[min(j, len(curve.chosen) - 1)]
        plot.line(curve.x, values, f"line {KINDS[j]}")
        plot.rule("chosen", x=curve.x[at])
        plot.marks([curve.x[at]], [values[at]], j)
        label = f"α = {number(float(curve.x[at]))}"
        label = f"{names[j]}: {label}" if several else label
        plot.label(label, curve.x[at], y, dy=first + down * j)
    return plot.figure("The penalty", _penalty_caption(curve, len(folds)))


def _penalty_caption(curve: Curve, n_folds: int) -> str:
    caption = _CRITERIA[curve.criterion][1]
    if curve.targets is not None:
        caption = f"{caption.replace('The line is', 'Lines are')}, one for every target"
    if n_folds:
        caption += f", thin lines are the {n_folds} folds, the band one standard error across folds"
    caption += "; vertical lines mark what was chosen."
    if curve.criterion != "evidence":
        caption += " An error of 1 is that of predicting the mean."
    if curve.criterion == "cv" and curve.folds is None:
        caption += " The errors of single folds are known to the fit alone, not to its model file."
    return caption


def sizes_figure(curve: Curve, *, is_sparse: bool = False) -> Figure:
    assert curve.errors is not None  # noqa: S101  for the type checker
    low, high = curve.values - curve.errors, curve.values + curve.errors
    every = -(-len(curve.x) // 7)  # labels that have room, the last always one of them
    ticks = [(float(value), f"{value:,.0f}") for value in curve.x[::-1][::every][::-1]]
    x, y = Axis.over(curve.x, is_log=True, ticks=ticks), Axis.over([*low, *high])
    name = "Number of features that are kept" if is_sparse else "Number of random features D"
    plot = Plot(x, y, x_label=name, y_label=_ERROR)
    chosen = curve.x[curve.chosen[0]]
    plot.band(curve.x.tolist(), low, high)
    plot.series(curve.x, curve.values)
    plot.choose(chosen, f"the model: {chosen:,.0f}")
    whose = "the penalty of the model" if is_sparse else "a penalty of its own"
    caption = (
        f"Every point has {whose}; the band is one standard error across folds. The vertical line "
        f"marks the number that the model has, {chosen:,.0f}."
    )
    title = "Few features of many" if is_sparse else "The number of features"
    return plot.figure(title, caption)


def search_figures(report: FitReport) -> list[Figure]:
    """Draw error against cost, and for every kernel and map the error over the length scale."""
    if not report.get("tuning"):
        return []
    tried = sorted(report["tuning"], key=_name_of)
    several = len({map_in_words(attempt) for attempt in tried}) > 1
    best = next(each for each in report["frontier"] if each["is_chosen"])
    span, axis = Axis.over(map(first_scale, tried), is_log=True), Axis.over(map(error_of, tried))
    figures = [_frontier_figure(report["frontier"])]
    for (kernel, feature_map), group in groupby(tried, key=_name_of):
        plot = Plot(span, axis, x_label="Length scale", y_label=_ERROR)
        mine = list(group)
        points = sorted((each["n_components"], first_scale(each), error_of(each)) for each in mine)
        for j, (size, of_size) in enumerate(groupby(points, key=itemgetter(0))):
            _, xs, ys = zip(*of_size, strict=True)
            plot.series(xs, ys, j)
            plot.label(f"D = {size:,}", xs[-1], ys[-1], beside=4.0)
        caption = (
            f"The error left out on a sample of {mine[0]['n_rows']:,} rows, at numbers of features "
            f"D of up to that of the model. "
        )
        if (kernel, feature_map) == _name_of(best):
            chosen = number(first_scale(report))
            plot.choose(first_scale(report), chosen)
            caption += f"The vertical line is the length scale chosen, {chosen}."
        else:
            caption += "This was not chosen."
        title = f"{kernel.capitalize()} kernel" + (f", {feature_map} map" if several else "")
        figures.append(plot.figure(title, caption))
    return figures


def _name_of(attempt: dict[str, Any]) -> tuple[str, str]:
    return attempt["kernel"], map_in_words(attempt)


def _frontier_figure(frontier: Sequence[dict[str, Any]]) -> Figure:
    def points(of: Sequence[dict[str, Any]]) -> tuple[list[float], list[float]]:
        return [each["seconds"] for each in of], [error_of(each) for each in of]

    seconds, errors = points(frontier)
    x_label = "Seconds of a fit to all rows, as predicted"
    plot = Plot(Axis.over(seconds, is_log=True), Axis.over(errors), x_label=x_label, y_label=_ERROR)
    plot.line(*points([each for each in frontier if each["is_best"]]), "line first")
    names = sorted({map_in_words(each) for each in frontier})
    for j, name in enumerate(names):
        plot.marks(*points([each for each in frontier if map_in_words(each) == name]), j)
    (chosen,) = (each for each in frontier if each["is_chosen"])
    what = f"{chosen['kernel']}, {map_in_words(chosen)}, D = {chosen['n_components']:,}"
    plot.choose(chosen["seconds"], what)
    shapes = ("circles", "squares", "triangles", "diamonds")
    marked = "; ".join(f"{shapes[j % 4]}: {name}" for j, name in enumerate(names))
    caption = (
        f"Every mark is a kernel, a map and a number of features D, at its best length scale "
        f"({marked}). No mark is both left of the line and below it. The vertical line is what was "
        f"chosen, at the largest D that it was tried at."
    )
    return plot.figure("Error against cost", caption)
