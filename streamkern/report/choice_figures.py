"""Charts of what was chosen: the penalty, the number of features, and what a search tried."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from streamkern.choice.trials import map_in_words
from streamkern.parameters.fit_report import FitReport
from streamkern.report import chart_marks as chart
from streamkern.report.figure_labels import LABELS
from streamkern.report.numbers import number
from streamkern.report.rendering import Figure, palette
from streamkern.report.trial_tables import error_of, first_scale
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
    drawn = [curve.values] if curve.targets is None else list(curve.targets.T[: len(chart.KINDS)])
    folds = [] if curve.folds is None or several else list(curve.folds)
    shown = np.concatenate([*drawn, *folds])
    if not is_evidence:
        # Far from the best, errors would leave no room for what is near it.
        least = float(np.nanmin(np.concatenate(drawn)))
        shown = shown[shown <= min(max(_MEAN, 1.1 * least), _TIMES * least)]

    def draw(axes: Any) -> None:
        chart.reach(axes, shown)
        chart.log_axis(axes, curve.x[0] / 1.2, curve.x[-1] * 1.2)
        chart.name_axes(axes, "Penalty α", _CRITERIA[curve.criterion][0], "y")
        for fold in folds:
            axes.plot(curve.x, fold, color=palette()["fold"], linewidth=0.8, alpha=0.75)
        if curve.errors is not None and not several:
            chart.band(axes, curve.x, curve.values - curve.errors, curve.values + curve.errors)
        if curve.threshold is not None:
            axes.axhline(curve.threshold, color=palette()["ink"], **chart.GUIDE)
            chart.label(axes, "best + 1 standard error", curve.x[-1], curve.threshold)
        for j, values in enumerate(drawn):
            at = curve.chosen[min(j, len(curve.chosen) - 1)]
            chart.line(axes, curve.x, values, j)
            chart.marks(axes, [curve.x[at]], [values[at]], j)
            text = f"α = {number(float(curve.x[at]))}"
            text = f"{names[j]}: {text}" if several else text
            chart.choose(axes, curve.x[at], text, down=12.0 + 14.0 * j)

    return Figure("The penalty", _penalty_caption(curve, len(folds)), draw)


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
    chosen = curve.x[curve.chosen[0]]

    def draw(axes: Any) -> None:
        chart.reach(axes, [*low, *high])
        axes.set_xscale("log")
        axes.minorticks_off()
        every = -(-len(curve.x) // 7)  # labels that have room, the last always one of them
        axes.set_xticks(ticks := curve.x[::-1][::every], [f"{value:,.0f}" for value in ticks])
        name = "Number of features that are kept" if is_sparse else "Number of random features D"
        chart.name_axes(axes, name, _ERROR, "y")
        chart.band(axes, curve.x, low, high)
        chart.series(axes, curve.x, curve.values)
        chart.choose(axes, chosen, f"the model: {chosen:,.0f}")

    whose = "the penalty of the model" if is_sparse else "a penalty of its own"
    caption = (
        f"Every point has {whose}; the band is one standard error across folds. The vertical line "
        f"marks the number that the model has, {chosen:,.0f}."
    )
    return Figure("Few features of many" if is_sparse else "The number of features", caption, draw)


def search_figures(report: FitReport) -> list[Figure]:
    """Draw error against cost, and for every kernel and map the error over the length scale."""
    if not report.get("tuning"):
        return []
    tried = sorted(filter(first_scale, report["tuning"]), key=_name_of)
    several = len({map_in_words(attempt) for attempt in tried}) > 1
    best = next(each for each in report["frontier"] if each["is_chosen"])
    figures = [_frontier_figure(report["frontier"])]
    for (kernel, feature_map), group in groupby(tried, key=_name_of):
        title = f"{kernel.capitalize()} kernel" + (f", {feature_map} map" if several else "")
        chosen = first_scale(report) if (kernel, feature_map) == _name_of(best) else None
        figures.append(_scales_figure(title, list(group), tried, chosen))
    return figures


def _scales_figure(
    title: str, mine: list[dict[str, Any]], tried: list[dict[str, Any]], chosen: float | None
) -> Figure:
    """Draw errors over length scales, a series a number of features, as far as any were tried."""
    scales = [first_scale(each) for each in tried]
    points = sorted((each["n_components"], first_scale(each), error_of(each)) for each in mine)

    def draw(axes: Any) -> None:
        chart.log_axis(axes, min(scales) / 1.1, max(scales) * 1.3)
        chart.reach(axes, map(error_of, tried))
        chart.name_axes(axes, "Length scale", _ERROR, "y")
        for j, (size, of_size) in enumerate(groupby(points, key=itemgetter(0))):
            _, xs, ys = zip(*of_size, strict=True)
            chart.series(axes, xs, ys, j)
            chart.label(axes, f"D = {size:,}", xs[-1], ys[-1], j=j)
        if chosen is not None:
            chart.choose(axes, chosen, number(chosen))

    caption = (
        f"The error left out on a sample of {mine[0]['n_rows']:,} rows, at numbers of features D "
        f"of up to that of the model. "
    )
    if chosen is None:
        caption += "This was not chosen."
    else:
        caption += f"The vertical line is the length scale chosen, {number(chosen)}."
    return Figure(title, caption, draw)


def _name_of(attempt: dict[str, Any]) -> tuple[str, str]:
    return attempt["kernel"], map_in_words(attempt)


def _frontier_figure(frontier: Sequence[dict[str, Any]]) -> Figure:
    def points(of: Sequence[dict[str, Any]]) -> tuple[list[float], list[float]]:
        return [each["seconds"] for each in of], [error_of(each) for each in of]

    seconds, errors = points(frontier)
    names = sorted({map_in_words(each) for each in frontier})
    (chosen,) = (each for each in frontier if each["is_chosen"])
    what = f"{chosen['kernel']}, {map_in_words(chosen)}, D = {chosen['n_components']:,}"

    def draw(axes: Any) -> None:
        chart.log_axis(axes, min(seconds) / 1.15, max(seconds) * 1.15)
        chart.reach(axes, errors)
        chart.name_axes(axes, "Seconds of a fit to all rows, as predicted", _ERROR, "y")
        chart.line(axes, *points([each for each in frontier if each["is_best"]]))
        for j, name in enumerate(names):
            chart.marks(axes, *points([each for each in frontier if map_in_words(each) == name]), j)
        chart.choose(axes, chosen["seconds"], what)

    shapes = ("circles", "squares", "triangles", "diamonds")
    marked = "; ".join(f"{shapes[j % 4]}: {name}" for j, name in enumerate(names))
    caption = (
        f"Every mark is a kernel, a map and a number of features D, at its best length scale "
        f"({marked}). No mark is both left of the line and below it. The vertical line is what was "
        f"chosen, at the largest D that it was tried at."
    )
    return Figure("Error against cost", caption, draw)
