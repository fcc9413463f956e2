"""Pictures of what was chosen: the penalty, the number of features, and what a search tried.

Errors are roots of mean squares over the standard deviation of the target, so that 1 is what
predicting the mean costs; of several targets, the mean of the squares.
"""

from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.extensions.report import pictures
from streamkern.extensions.report.numbers import number
from streamkern.extensions.report.pictures import Figure
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.models.held_out_predictors import folds_of
from streamkern.parameters.fit_report import FitReport, error_of, first_scale, map_in_words
from streamkern.solve.penalty_curve import PenaltyCurve, errors_of_roots
from streamkern.solve.penalty_grid import CRITERIA
from streamkern.solvers.fold_solution import nested_sizes
from streamkern.solvers.penalty_search import solve_sizes


@dataclass(frozen=True)
class Curve:
    """A criterion over m values to choose from: an error to be least, or the evidence.

    `errors` (m,) are standard errors across folds, `folds` (K, m) the values of every fold, and
    `targets` (m, q) those of every target where each has its own choice in `chosen`.  `threshold`
    is what a value had to be within, by the rule of one standard error.
    """

    criterion: str
    x: Floats
    values: Floats
    chosen: list[int]
    errors: Floats | None = None
    folds: Floats | None = None
    targets: Floats | None = None
    threshold: float | None = None


def penalty_curve(model: FittedRidge) -> Curve | None:
    """Return the curve that the penalty was chosen from, or None where it is not known."""
    curve = _curve_of(model)
    if curve is None:
        return None
    alphas = np.atleast_1d(np.asarray(model.alpha, dtype=float))
    chosen = np.searchsorted(curve.alphas, alphas * (1.0 - 1e-12)).tolist()
    several = len(chosen) > 1
    if curve.criterion == "evidence":
        each = -curve.scores
        own = each if several else None
        return Curve("evidence", curve.alphas, each.mean(axis=1), chosen, targets=own)
    scores, errors = np.array([curve.combined(np.array([a])) for a in range(len(curve.alphas))]).T
    values, spread, folds, threshold = np.sqrt(scores), None, None, None
    if curve.fold_scores is not None:
        spread = errors_of_roots(values, errors)
        folds = np.sqrt((curve.fold_scores / curve.scale).mean(axis=2))
        if model.parameters.one_standard_error and not several:
            threshold = float(np.sqrt((scores + errors)[np.argmin(scores)]))
    own = np.sqrt(curve.scores / curve.scale) if several else None
    is_squared = model.report.get("loss", "squared") == "squared"
    return Curve(
        curve.criterion if is_squared else "newton",
        curve.alphas,
        values,
        chosen,
        spread,
        folds,
        own,
        threshold,
    )


def _curve_of(model: FittedRidge) -> PenaltyCurve | None:
    """Return the curve of a fit, or what the card of a model that was loaded tells of it."""
    found: dict[str, Any] | None = model.report.get("alpha_curve")
    if model.penalty_curve is not None or found is None:
        return model.penalty_curve
    alphas, values = np.array(found["alphas"]), np.array(found["values"], dtype=float)
    values = np.where(np.isfinite(values), values, np.inf).reshape(len(alphas), -1)
    scale = np.ones(values.shape[1])
    if found["criterion"] == "evidence":
        return PenaltyCurve("evidence", alphas, -values, scale)
    if model.equations is None:  # which say how much the targets vary
        return None
    scale = np.square(model.target_spread[1])
    if found["criterion"] == "loo":
        return PenaltyCurve.of_rows(alphas, values**2, scale)
    return PenaltyCurve(found["criterion"], alphas, values**2, scale)


def components_curve(model: FittedRidge) -> Curve | None:
    """Return the cross-validated error over the number of features, or None where it is not known.

    Where only the penalty was chosen, but the moments of folds are kept, the smaller numbers are
    tried now, which reads no rows: each is a leading part of the same moments.
    """
    found, curve = model.report.get("components_curve"), model.penalty_curve
    if found is not None:
        return _sizes(found, model.outcome.sparse_of or model.outcome.n_components)
    if curve is None or curve.fold_scores is None or model.outcome.sparse_of:
        return None
    D, folds = len(model.predictor.coef), folds_of(model)
    sizes = [size for size in nested_sizes(D, model.feature_map.nesting) if size < D]
    if folds is None or not sizes or model.moments.options.is_identity:  # type: ignore[union-attr]
        return None
    how: Any = {"intercept": model.parameters.fit_intercept, "sizes": sizes}
    how["landmarks"] = model.moments.landmarks  # type: ignore[union-attr]
    tried = solve_sizes(folds, model.parameters.penalty, **how)
    scores = [size.curve.combined(size.chosen) for size in tried]
    alphas = np.atleast_1d(np.asarray(model.alpha, dtype=float))
    scores.append(curve.combined(np.searchsorted(curve.alphas, alphas)))
    relative, errors = zip(*scores, strict=True)
    facts = {"n_components": [*sizes, D], "relative_mse": relative, "standard_errors": errors}
    return _sizes(facts, D)


def sparsity_curve(model: FittedRidge) -> Curve | None:
    found = model.report.get("sparse_curve")
    return None if found is None else _sizes(found, model.outcome.n_components)


def _sizes(found: dict[str, Any], chosen: int) -> Curve:
    values, sizes = np.sqrt(np.array(found["relative_mse"])), list(found["n_components"])
    errors = errors_of_roots(values, np.array(found["standard_errors"]))
    return Curve("cv", np.array(sizes, dtype=float), values, [sizes.index(chosen)], errors)


# A little above the error of predicting the mean; and how many times the least error is shown.
_MEAN, _TIMES = 1.1, 2.0
_ERROR = "Error on rows left out, in sd of y"
# The label of the axis of what is no such error.
_NEWTON = "Error of Newton's step on rows left out"
_LABELS = {"gcv": "√robust GCV, in sd of y", "evidence": "Log evidence", "newton": _NEWTON}


def penalty_figure(curve: Curve, names: list[str]) -> Figure:
    """Draw the criterion over the penalties, a line a target where each has its own."""
    several, is_evidence = curve.targets is not None, curve.criterion == "evidence"
    drawn = curve.values[None] if curve.targets is None else curve.targets.T[: pictures.MOST_LINES]
    folds = [] if curve.folds is None or several else list(curve.folds)
    label = _LABELS.get(curve.criterion, _ERROR)
    words = CRITERIA.get(curve.criterion, "the error of working targets, of rows left out by fold")
    caption = words[0].upper() + words[1:]

    def draw(axes: Any) -> None:
        pictures.name_axes(axes, "Penalty α", label)
        legend = {}
        for fold in folds:
            axes.plot(curve.x, fold, color=pictures.GREY, linewidth=0.6, linestyle="-", alpha=0.5)
        if curve.errors is not None and not several:
            spread = curve.values - curve.errors, curve.values + curve.errors
            axes.fill_between(curve.x, *spread, color="C0", alpha=0.17, linewidth=0)
        if curve.threshold is not None:
            legend["best + 1 standard error"] = axes.axhline(curve.threshold, **pictures.GUIDE)
        for j, values in enumerate(drawn):
            at = curve.chosen[min(j, len(curve.chosen) - 1)]
            text = f"α = {number(float(curve.x[at]))}"
            (line,) = axes.plot(curve.x, values, color=f"C{j}", marker="o", markevery=[at])
            legend[f"{names[j]}: {text}" if several else text] = line
        if not is_evidence:
            # Far from the best, errors would leave no room for what is near it.
            low, high = np.nanmin(drawn), np.nanmax([*drawn, *folds])
            top = min(max(_MEAN, 1.1 * low), _TIMES * low, high)
            low = min([low, *map(np.nanmin, folds)])
            axes.set_ylim(low - 0.05 * (top - low), top + 0.05 * (top - low) + 1e-12)
        pictures.log_axis(axes)
        pictures.add_legend(axes, legend)

    if folds:
        caption += f"; thin lines are its {len(folds)} folds, the band one standard error"
    caption += ". A mark is what was chosen."
    if not (is_evidence or curve.criterion == "newton"):
        caption += " An error of 1 is that of predicting the mean."
    if curve.criterion == "cv" and curve.folds is None:
        caption += " The errors of single folds are known to the fit alone, not to its model file."
    return Figure("The penalty", caption, draw)


def sizes_figure(curve: Curve, *, is_sparse: bool = False) -> Figure:
    """Draw the error over the number of features, random ones or those that are kept."""
    errors, chosen = np.asarray(curve.errors), curve.x[curve.chosen[0]]

    def draw(axes: Any) -> None:
        what = "Number of features that are kept" if is_sparse else "Number of random features D"
        pictures.name_axes(axes, what, _ERROR)
        spread = curve.values - errors, curve.values + errors
        axes.fill_between(curve.x, *spread, color="C0", alpha=0.17, linewidth=0)
        axes.plot(curve.x, curve.values, "o-", color="C0")
        axes.axvline(chosen, **pictures.GUIDE)
        axes.set_xscale("log")
        axes.minorticks_off()
        ticks = curve.x[::-1][:: -(-len(curve.x) // 7)]
        axes.set_xticks(ticks, [f"{value:,.0f}" for value in ticks])

    whose = "the penalty of the model" if is_sparse else "a penalty of its own"
    caption = (
        f"Every point has {whose}; the band is one standard error across folds. The line is the "
        f"number that the model has, {chosen:,.0f}."
    )
    return Figure("Few features of many" if is_sparse else "The number of features", caption, draw)


def search_figures(report: FitReport) -> list[Figure]:
    """Draw error against cost, and for every kernel and map the error over the length scale."""
    if not report.get("tuning"):
        return []
    tried = sorted(filter(first_scale, report["tuning"]), key=_name_of)
    best = next(each for each in report["frontier"] if each["is_chosen"])
    figures = [_frontier_figure(report["frontier"], best)]
    for name, group in groupby(tried, key=_name_of):
        chosen = first_scale(report) if name == _name_of(best) else None
        figures.append(_scales_figure(", ".join(name), list(group), chosen))
    return figures


def _scales_figure(title: str, tried: list[dict[str, Any]], chosen: float | None) -> Figure:
    """Draw errors over length scales, a series a number of features."""
    points = sorted((each["n_components"], first_scale(each), error_of(each)) for each in tried)

    def draw(axes: Any) -> None:
        pictures.name_axes(axes, "Length scale", _ERROR)
        lines = {}
        for size, of_size in groupby(points, key=itemgetter(0)):
            _, xs, ys = zip(*of_size, strict=True)
            lines[f"D = {size:,}"] = xs, ys
        pictures.draw_lines(axes, lines, "o")
        if chosen is not None:
            axes.axvline(chosen, **pictures.GUIDE)
        pictures.log_axis(axes)

    caption = f"The error left out on a sample of {tried[0]['n_rows']:,} rows. "
    caption += (
        "This was not chosen." if chosen is None else f"The line is what was chosen: {chosen:.4g}."
    )
    return Figure(f"Length scale: {title}", caption, draw)


def _name_of(tried: dict[str, Any]) -> tuple[str, str]:
    return tried["kernel"], map_in_words(tried)


def _frontier_figure(frontier: list[dict[str, Any]], chosen: dict[str, Any]) -> Figure:
    def points(of: list[dict[str, Any]]) -> tuple[list[float], list[float]]:
        return [each["seconds"] for each in of], [error_of(each) for each in of]

    def draw(axes: Any) -> None:
        pictures.name_axes(axes, "Seconds of a fit to all rows, as predicted", _ERROR)
        axes.plot(*points([each for each in frontier if each["is_best"]]), **pictures.GUIDE)
        legend = {}
        for (_, marker), name in zip(
            pictures.LINES * 9, sorted(set(map(map_in_words, frontier))), strict=False
        ):
            mine = [each for each in frontier if map_in_words(each) == name]
            (legend[name],) = axes.plot(*points(mine), marker, label=name)
        axes.axvline(chosen["seconds"], **pictures.GUIDE)
        pictures.log_axis(axes)
        pictures.add_legend(axes, legend)

    what = f"{chosen['kernel']}, {map_in_words(chosen)}, D = {chosen['n_components']:,}"
    caption = (
        f"Every mark is a kernel, a map and a number of features D, at its best length scale. No "
        f"mark is both left of the dashed line and below it. The vertical line is what was chosen: "
        f"{what}."
    )
    return Figure("Error against cost", caption, draw)
