"""Which inputs matter, and how: mean squared gradients, and partial dependence, on some rows."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.engine.scheduler import run, shared, task
from streamkern.errors.formatting import printable
from streamkern.models.fitted_classes import FittedClassifier
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.predict.class_rule import ClassRule
from streamkern.predict.gradients import GradientOuterProduct
from streamkern.predict.predictor import Predictor
from streamkern.report import chart_marks as chart
from streamkern.report.numbers import counted, shortened
from streamkern.report.rendering import Figure
from streamkern.sources import Block
from streamkern.sources.preprocessing.column_names import named_inputs

# Inputs that have a bar, and those that have a curve in a report.
_MOST_BARS, MOST_CURVES = 15, 4
# Rows that gradients are taken of, and rows and points of a curve.
_GRADIENT_ROWS, _CURVE_ROWS, _POINTS = 1024, 300, 41
# Up to so many values of an input are points of its curve themselves.
_FEW_VALUES = 12
# Numbers that maps without gradients are asked for, at the most.
_CHANGED_NUMBERS = 1 << 24


class InputEffects(NamedTuple):
    """How much predictions change with each input, (p,): in deviations of both."""

    sizes: Floats
    n_rows: int
    by_gradients: bool


def input_effects(model: FittedRidge, X: Array) -> InputEffects:
    """Return the effects of inputs on rows (n, p).

    They are roots of mean squared gradients, sqrt(E (df/dx_j)^2) sd(x_j) / sd(y).  Of a map without
    gradients, roots of total effects, sqrt(E (f(x) - f(x'))^2 / 2) / sd(y), where x' has input j of
    another row.  Of several targets, squares are averaged.
    Jansen (1999), "Analysis of variance designs for model output".
    """
    unit = model.target_unit
    effects, by_gradients = run(task(_effects, shared(model.predictor), X, unit, name="effects"))
    return InputEffects(effects, min(len(X), _GRADIENT_ROWS), by_gradients)


def _effects(predictor: Predictor, X: Array, unit: Floats) -> tuple[Floats, bool]:
    whole: Any = predictor.feature_map
    X, effects, q = X[:_GRADIENT_ROWS].astype(float), np.zeros(X.shape[1]), len(unit)
    standardizer, by_gradients = whole.standardizer, whole.inner.has_gradients
    kept = standardizer.columns
    if by_gradients:
        product = GradientOuterProduct(predictor, unit)
        product.update([Block(X, np.zeros((len(X), q)), 0)])
        slopes = np.sqrt(np.maximum(product.mean.diagonal(), 0.0) / q)
        effects[kept] = slopes * standardizer.with_linear(None)(X).std(axis=0)
        return effects, True
    X = X[: max(_CHANGED_NUMBERS // (predictor.n_components * len(kept)), 32)]
    plain = predictor.predict(X).reshape(len(X), -1)
    for j in kept.tolist():
        other = X.copy()
        other[:, j] = np.roll(X[:, j], len(X) // 2)
        change = (predictor.predict(other).reshape(plain.shape) - plain) / unit
        effects[j] = np.sqrt(np.mean(change**2) / 2.0)
    return effects, False


def effects_figure(report: Any, effects: InputEffects) -> Figure:
    order = np.argsort(-effects.sizes, kind="stable")[:_MOST_BARS].tolist()
    names = input_labels(report, order)
    caption = (
        f"How many standard deviations of the target the prediction changes by, for one of the "
        f"input: the root mean square over {counted(effects.n_rows, 'row')}."
        if effects.by_gradients
        else "How far predictions move where an input is that of another row: the root of half the "
        "mean square, in standard deviations of the target."
    )
    if len(effects.sizes) > len(order):
        caption += f" The first {len(order)} of {len(effects.sizes):,} inputs."

    def draw(axes: Any) -> None:
        chart.bars(axes, names, effects.sizes[order].tolist())
        chart.name_axes(axes, "Change of the prediction, sd for sd", "", "x")

    return Figure("What predictions change with", caption, draw, 80.0 + 19.0 * len(order))


def weights_figure(weights: Sequence[tuple[str, float]]) -> Figure:
    """Draw what the kernel weighs inputs by, over the largest."""
    names, values = zip(*weights[:_MOST_BARS], strict=True)

    def draw(axes: Any) -> None:
        chart.bars(axes, list(map(shortened, names)), values)
        chart.name_axes(axes, "Weight in the kernel, over the largest", "", "x")

    return Figure("What the kernel weighs", "", draw)


def input_labels(report: Any, columns: Sequence[int]) -> list[str]:
    return [shortened(printable(name)) for name in named_inputs(report, columns)]


class Dependence(NamedTuple):
    """Mean predictions (m, t) where an input has each of m values, and where most rows lie."""

    values: Floats
    means: Floats
    lows: Floats
    highs: Floats
    n_rows: int


def partial_dependence(model: FittedRidge | FittedClassifier, X: Array, column: int) -> Dependence:
    """Return what is predicted for rows (n, p) on average, over values of one input.

    Of targets as they are; of classes their probabilities, for two that of the second.
    Friedman (2001), "Greedy function approximation: a gradient boosting machine".
    """
    rule: ClassRule | None = getattr(model, "rule", None)
    values = np.unique(X[:, column].astype(float))
    if len(values) > _FEW_VALUES:
        first, last = np.quantile(X[:, column].astype(float), [0.01, 0.99]).tolist()
        values = np.linspace(first, last, _POINTS)
    rows = X[:_CURVE_ROWS].astype(float)
    given = shared(model.ridge.predictor), rule, rows, column, values
    means, lows, highs = run(task(_dependence, *given, name="dependence"))
    return Dependence(values, means, lows, highs, len(rows))


def _dependence(
    predictor: Predictor, rule: ClassRule | None, rows: Floats, column: int, values: Floats
) -> tuple[Floats, Floats, Floats]:
    grid = np.repeat(rows[None], len(values), axis=0)
    grid[:, :, column] = values[:, None]
    found = predictor.predict(grid.reshape(-1, rows.shape[1])).reshape(-1, predictor.n_targets)
    if rule is not None:
        found = rule.probabilities(found)[:, 1 if len(rule.classes) == 2 else 0 :]
    curves = found.reshape(len(values), len(rows), -1)
    lows, highs = np.quantile(curves, [0.1, 0.9], axis=1)
    return curves.mean(axis=1), lows, highs


def dependence_figure(
    name: str, found: Dependence, targets: Sequence[str], y_label: str = ""
) -> Figure:
    """Draw the curves of up to four targets; of classes with the label of their probability."""
    several, is_curve, means = len(targets) > 1, len(found.values) > _FEW_VALUES, found.means
    if several and not y_label:  # targets have units of their own
        spread = np.ptp(means, axis=0)
        means = (means - means.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        y_label = "Predicted, less its mean, over its range"
    y_label = y_label or f"Predicted {targets[0]}"
    caption = f"The mean of {counted(found.n_rows, 'row')}, all of which get the value"
    caption += "." if several else "; eight of ten rows lie in the band."

    def draw(axes: Any) -> None:
        if not several:
            chart.band(axes, found.values, found.lows[:, 0], found.highs[:, 0])
        drawn = partial(chart.line if is_curve else chart.series, axes, found.values)
        for j, each in enumerate(means.T[: len(chart.KINDS)]):
            drawn(each, j)
            if several:
                chart.label(axes, targets[j], found.values[j], each[j], j=j)
        chart.name_axes(axes, name, y_label)

    return Figure(name, caption, draw)
