"""Which columns matter, and how: permutation importance, and partial dependence, on some rows."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Floats
from streamkern.engine.scheduler import compute, delayed, scatter
from streamkern.errors.formatting import printable
from streamkern.models.fitted_classes import FittedClassifier
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.predict.class_rule import ClassRule
from streamkern.predict.predictor import Predictor
from streamkern.report import chart_marks as chart
from streamkern.report.numbers import counted, shortened
from streamkern.report.rendering import Figure
from streamkern.statistics import RowSample

# Columns that have a bar, and those that have a curve in a report.
_MOST_BARS, MOST_CURVES = 15, 4
# Rows and points of a curve.
_CURVE_ROWS, _POINTS = 300, 41
# Up to so many values of an input are points of its curve themselves; and levels that are shown.
_FEW_VALUES = 12


def importance_figure(model: Any, falls: Floats, rows: str) -> Figure:
    """Draw by how much the score falls on some `rows` where each column is shuffled, (c,)."""
    order = np.argsort(-falls, kind="stable")[:_MOST_BARS].tolist()
    names = [shortened(printable(name)) for name, _ in model.columns.table]
    score = "accuracy" if hasattr(model, "rule") else "R²"
    caption = (
        f"How much the {score} falls on {rows} where the values of one column are shuffled among "
        f"the rows. Of two columns that tell the same, each may seem to matter little."
    )
    if len(names) > len(order):
        caption += f" The first {len(order)} of {len(names):,} columns."

    def draw(axes: Any) -> None:
        chart.bars(axes, [names[j] for j in order], falls[order].tolist())
        chart.name_axes(axes, f"Fall of {score}", "", "x")

    return Figure("Permutation importance", caption, draw, 80.0 + 19.0 * len(order))


def weights_figure(weights: Sequence[tuple[str, float]]) -> Figure:
    """Draw what the kernel weighs inputs by, over the largest."""
    names, values = zip(*weights[:_MOST_BARS], strict=True)

    def draw(axes: Any) -> None:
        chart.bars(axes, list(map(shortened, names)), values)
        chart.name_axes(axes, "Weight in the kernel, over the largest", "", "x")

    return Figure("What the kernel weighs", "", draw)


class Dependence(NamedTuple):
    """Mean predictions (m, t) where a column has each of m values, and where most rows lie."""

    name: str
    values: Floats | list[str]  # numbers, or levels of a category
    means: Floats
    lows: Floats
    highs: Floats
    n_rows: int


def partial_dependence(
    model: FittedRidge | FittedClassifier, sample: RowSample, inputs: Sequence[int]
) -> Dependence:
    """Return what is predicted for the rows of a sample on average, over values of a column.

    The column became some `inputs`: those of a category have the values that are most frequent
    together, of others the one with most values is varied.  Of targets the predictions are as they
    are; of classes their probabilities, for two that of the second.
    Friedman (2001), "Greedy function approximation: a gradient boosting machine".
    """
    rule: ClassRule | None = getattr(model, "rule", None)
    own, names = sample.X[:, inputs].astype(float), model.columns.named(inputs)
    values: Any
    if len(inputs) > 1 and np.isin(own, (0.0, 1.0)).all():
        settings, counts = np.unique(own, axis=0, return_counts=True)
        settings = settings[np.argsort(-counts, kind="stable")[:_FEW_VALUES]]
        name = next(each for each, of in model.columns.table if inputs[0] in of)
        levels = [each.removeprefix(f"{name}=") for each in names]
        values = [
            ", ".join(levels[j] for j in np.flatnonzero(each)) or "another" for each in settings
        ]
    else:
        widest = max(range(len(inputs)), key=lambda j: len(np.unique(own[:, j])))
        inputs, name, own = [inputs[widest]], names[widest], own[:, widest]
        values = np.unique(own)
        if len(values) > _FEW_VALUES:
            first, last = np.quantile(own, [0.01, 0.99]).tolist()
            values = np.linspace(first, last, _POINTS)
        settings = values[:, None]
    few = sample.first(_CURVE_ROWS)
    rows = few.X.astype(float)
    given = scatter(model.ridge.predictor), rule, rows, few.counts, inputs, settings
    means, lows, highs = compute(delayed(_dependence, *given, name="dependence"))
    if isinstance(values, list):  # the largest first
        order = np.argsort(-means[:, 0], kind="stable").tolist()
        values = [values[j] for j in order]
        means, lows, highs = means[order], lows[order], highs[order]
    return Dependence(name, values, means, lows, highs, len(rows))


def _dependence(  # noqa: PLR0917  rows, and how
    predictor: Predictor,
    rule: ClassRule | None,
    rows: Floats,
    weights: Floats | None,
    inputs: Sequence[int],
    settings: Floats,
) -> tuple[Floats, Floats, Floats]:
    grid = np.repeat(rows[None], len(settings), axis=0)
    grid[:, :, inputs] = settings[:, None, :]
    found = predictor.predict(grid.reshape(-1, rows.shape[1])).reshape(-1, predictor.n_targets)
    if rule is not None:
        found = rule.probabilities(found)[:, 1 if len(rule.classes) == 2 else 0 :]
    curves = found.reshape(len(settings), len(rows), -1)
    method: Any = "linear" if weights is None else "inverted_cdf"
    lows, highs = np.quantile(curves, [0.1, 0.9], axis=1, weights=weights, method=method)
    return np.average(curves, axis=1, weights=weights), lows, highs


def dependence_figure(found: Dependence, targets: Sequence[str], y_label: str = "") -> Figure:
    """Draw the curves of up to four targets; of classes with the label of their probability."""
    several, means = len(targets) > 1, found.means
    if several and not y_label:  # targets have units of their own
        spread = np.ptp(means, axis=0)
        means = (means - means.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        y_label = "Predicted, less its mean, over its range"
    y_label = y_label or f"Predicted {targets[0]}"
    caption = f"The mean of {counted(found.n_rows, 'row')}, all of which get the value"
    band = "bar" if isinstance(found.values, list) else "band"
    caption += "." if several else f"; eight of ten rows lie in the {band}."
    name, shown = shortened(printable(found.name)), means.T[: len(chart.KINDS)]

    def draw(axes: Any) -> None:
        values: Any = found.values
        if isinstance(values, list):
            chart.levels(axes, values, shown, *(() if several else (found.lows, found.highs)))
            if several:
                axes.legend(targets[: len(shown)], frameon=False)
            chart.name_axes(axes, y_label, "", "x")
            return
        if not several:
            chart.band(axes, values, found.lows[:, 0], found.highs[:, 0])
        is_curve = len(values) > _FEW_VALUES
        drawn = partial(chart.line if is_curve else chart.series, axes, values)
        for j, each in enumerate(shown):
            drawn(each, j)
            if several:
                chart.label(axes, targets[j], values[j], each[j], j=j)
        chart.name_axes(axes, name, y_label)

    return Figure(name, caption, draw)
