"""Fitted models side by side: what their cards say, errors on the same rows, and curves."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamkern.report import chart_marks as chart
from streamkern.report.figure_labels import LABELS
from streamkern.report.html_page import write_page
from streamkern.report.numbers import number, seconds, shortened
from streamkern.report.rendering import Figure
from streamkern.report.trial_tables import Table
from streamkern.report.validation_curves import penalty_curve
from streamkern.runtime.memory import in_words

# What of a report is compared, and what it is called.
_FACTS = {
    "kernel": "kernel",
    "length_scale": "length scale",
    "feature_map": "map",
    "n_components": "features D",
    "precision": "precision",
    "alpha": "penalty α",
    "cv_rmse": "cross-validated RMSE",
    "train_rmse": "training RMSE",
    "effective_dof": "degrees of freedom",
    "rows": "rows",
    "n_features": "inputs",
    "n_targets": "targets",
    "seconds": "seconds",
    "peak_worker_bytes": "memory of a worker",
}
_DIFFERS = " ≠"


def compared_cards(models: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return what is compared, under the keys of reports: a value a model."""
    reports = [model.report for model in models.values()]
    found = {key: [report.get(key) for report in reports] for key in _FACTS}
    return found | {"seconds": [report["seconds"]["total"] for report in reports]}


def comparison_table(models: Mapping[str, Any]) -> Table:
    rows = []
    for key, values in compared_cards(models).items():
        named = {"seconds": seconds, "peak_worker_bytes": in_words}.get(key, _shown)
        mark = _DIFFERS if any(value != values[0] for value in values) else ""
        rows.append((f"{_FACTS[key]}{mark}", *map(named, values)))
    return Table(("", *map(shortened, models)), rows)


def errors_table(models: Mapping[str, Any], found: Sequence[Mapping[str, Any]]) -> Table:
    """Return the errors of models on the same rows, as `evaluate` finds them."""
    names = ("rmse", "mae", "r2", "accuracy", "log_loss", "auc", "brier_score")
    rows = [
        (name, *(number(each.get(f"{name}_mean", each.get(name))) for each in found))
        for name in names
        if any(name in each for each in found)
    ]
    return Table(("", *map(shortened, models)), rows)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else number(value)


def write_comparison(
    models: Mapping[str, Any],
    found: Sequence[Mapping[str, Any]],
    where: str,
    path: str | Path,
    *,
    force: bool,
) -> None:
    """Write models side by side as an HTML page, with `found` errors on rows if there are any."""
    values = {
        "title": f"{len(models)} models",
        "table": comparison_table(models),
        "on_rows": errors_table(models, found) if found else None,
        "where": where,
        "curves": _curves(models),
    }
    write_page("models.html", path, force=force, **values)


def _curves(models: Mapping[str, Any]) -> list[Figure]:
    """Draw the errors of all models over their penalties, where these were chosen by errors."""
    curves = {name: penalty_curve(model.ridge) for name, model in models.items()}
    known = {key: curve for key, curve in curves.items() if curve and curve.criterion != "evidence"}
    if not known:
        return []
    least = min(curve.values.min() for curve in known.values())

    def draw(axes: Any) -> None:
        penalties = [alpha for curve in known.values() for alpha in curve.x[[0, -1]].tolist()]
        highest = max(curve.values[curve.chosen].max() for curve in known.values())
        chart.log_axis(axes, min(penalties), max(penalties))
        chart.reach(axes, (least, max(1.6 * least, 1.1 * highest)))
        for j, (name, curve) in enumerate(known.items()):
            chart.line(axes, curve.x, curve.values, j, label=shortened(name))
            at = curve.chosen[0]
            chart.marks(axes, [curve.x[at]], [curve.values[at]], j)
        axes.legend(frameon=False, loc="upper center")
        chart.name_axes(axes, "Penalty α", LABELS["relative_mse"].text, "y")

    caption = "Marks are the penalties chosen. An error of 1 is that of predicting the mean."
    return [Figure("Error over the penalty", caption, draw, 280.0)]
