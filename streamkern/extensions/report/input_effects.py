"""Which columns matter, and how: permutation importance, and partial dependence, on some rows."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Floats
from streamkern.engine.scheduler import compute, delayed, scatter
from streamkern.errors.formatting import printable
from streamkern.extensions.report.numbers import counted, shortened
from streamkern.extensions.report.pictures import MOST_LINES, Figure, bars, draw_lines, name_axes
from streamkern.features import trended
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.predict.predictor import Predictor
from streamkern.statistics import RowSample

# Columns that have a bar, and those that have a curve in a report.
_MOST_BARS, MOST_CURVES = 15, 4
# Rows and points of a curve.
_CURVE_ROWS, _POINTS = 300, 41
# Up to so many values of an input are points of its curve themselves; and levels that are shown.
_FEW_VALUES = 12


def shown_targets(model: Any) -> list[str]:
    """Return the names of the targets, cut short where they are long."""
    q, alone = model.columns.n_targets, str(model.report["data"].get("y") or "y")
    unnamed = [alone] if q == 1 else [f"target {j}" for j in range(q)]
    return [shortened(printable(name)) for name in model.columns.target_names or unnamed]


def shown_quantiles(levels: Sequence[float]) -> list[int]:
    """Return places of a few quantiles that are drawn, from the first to the last."""
    n_shown = min(len(levels), MOST_LINES)
    return np.linspace(0, len(levels) - 1, n_shown).round().astype(int).tolist()


def importance_figure(model: Any, falls: Floats, rows: str) -> Figure:
    """Draw by how much the score falls on some `rows` where each column is shuffled, (c,)."""
    order = np.argsort(-falls, kind="stable")[:_MOST_BARS].tolist()
    names = [printable(name) for name, _ in model.columns.table]
    others = "R²" if not hasattr(model, "losses") else "explained part of the loss"
    score = "accuracy" if hasattr(model, "rule") else others
    caption = (
        f"How much the {score} falls on {rows} where the values of one column are shuffled among "
        f"the rows. Of two columns that tell the same, each may seem to matter little."
    )
    if len(names) > len(order):
        caption += f" The first {len(order)} of {len(names):,} columns."

    def draw(axes: Any) -> None:
        bars(axes, [names[j] for j in order], falls[order].tolist(), f"Fall of {score}")

    return Figure("Permutation importance", caption, draw, 0.9 + 0.22 * len(order))


def weights_figure(model: FittedRidge) -> Figure | None:
    """Draw the weights of inputs in the metric or one over their length scales, if they differ."""
    metric, scales = model.report.get("metric"), model.report["length_scale"]
    if metric and not (metric.get("rounds") and not metric["rounds"][metric["kept"]]["number"]):
        weights, columns = np.array(metric["importance"]), metric["columns"]
    # Of a combination of kernels, length scales are those of its parts.
    elif isinstance(scales, list) and "length_scale" in model.report["kernel_parameters"]:
        beside, weights = trended(model.feature_map), 1.0 / np.array(scales)
        kept = slice(None) if beside is None else beside.along
        columns = model.feature_map.standardizer.columns[kept].tolist()  # type: ignore[attr-defined]
    else:
        return None
    order = np.argsort(-weights, kind="stable")[:_MOST_BARS].tolist()
    names = [printable(each) for each in model.columns.named(columns)]

    def draw(axes: Any) -> None:
        shares = (weights[order] / weights.max()).tolist()
        bars(axes, [names[j] for j in order], shares, "Weight in the kernel, over the largest")

    caption = "The more an input weighs, the faster predictions change along it"
    caption += ", in standard deviations." if model.parameters.standardize else "."
    return Figure("What the kernel weighs", caption, draw, 0.9 + 0.22 * len(order))


class Dependence(NamedTuple):
    """Mean predictions (m, t) where a column has each of m values, and where most rows lie."""

    name: str
    values: Floats | list[str]  # numbers, or levels of a category
    means: Floats
    lows: Floats
    highs: Floats
    n_rows: int


def partial_dependence(model: Any, sample: RowSample, inputs: Sequence[int]) -> Dependence:
    """Return what is predicted for the rows of a sample on average, over values of a column.

    The column became some `inputs`: those of a category have the values that are most frequent
    together, of others the one with most values is varied.  Of targets the predictions are as they
    are; of classes their probabilities, for two that of the second.
    Friedman (2001), "Greedy function approximation: a gradient boosting machine".
    """
    rule: Any = getattr(model, "rule", None)
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
    rule: Any,
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


def dependence_figure(model: Any, sample: RowSample, inputs: Sequence[int]) -> Figure:
    """Draw the curves of up to four targets or classes over a column of a sample of rows."""
    found = partial_dependence(model, sample, inputs)
    targets, y_label, means = shown_targets(model), "", found.means
    if rule := getattr(model, "rule", None):
        classes = [shortened(printable(str(each))) for each in rule.classes.as_dict()["values"]]
        targets = classes[1:] if len(classes) == 2 else classes
        y_label = f"Probability of {targets[0] if len(classes) == 2 else 'classes'}"
    if levels := getattr(model, "quantiles", []):
        y_label, shown = f"Predicted quantiles of {targets[0]}", shown_quantiles(levels)
        targets, means = [f"{levels[j]:g}" for j in shown], means[:, shown]
    several = len(targets) > 1
    if several and not y_label:  # targets have units of their own
        spread = np.ptp(means, axis=0)
        means = (means - means.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        y_label = "Predicted, less its mean, over its range"
    y_label = y_label or f"Predicted {targets[0]}"
    caption = f"The mean of {counted(found.n_rows, 'row')}, all of which get the value"
    caption += "." if several else "; eight of ten rows lie in the band."
    name, values = shortened(printable(found.name)), found.values
    curves = dict(zip(targets[:MOST_LINES], means.T, strict=False))

    def draw(axes: Any) -> None:
        if isinstance(values, list):
            places = np.arange(len(values))[::-1]
            if not several:
                span = found.lows[:, 0], found.highs[:, 0]
                axes.hlines(places, *span, color="C0", alpha=0.25, linewidth=9)
            draw_lines(axes, {each: (line, places) for each, line in curves.items()}, "o")
            axes.set_yticks(places, list(map(shortened, values)), parse_math=False)
            name_axes(axes, y_label, "")
            return
        if not several:
            axes.fill_between(values, found.lows[:, 0], found.highs[:, 0], color="C0", alpha=0.17)
        marker = "o" if len(values) <= _FEW_VALUES else ""
        draw_lines(axes, {each: (values, line) for each, line in curves.items()}, marker)
        name_axes(axes, name, y_label)

    return Figure(name, caption, draw)
