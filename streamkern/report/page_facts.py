"""Tables and headline figures of the page: what only a fitted model, not its report, can tell."""

import math
import platform
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from streamkern._version import __version__
from streamkern.errors.formatting import printable
from streamkern.estimators.importance import held_out_importance
from streamkern.features import trended
from streamkern.models.fitted_model import LIBRARIES
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.parameters.fit_report import FitReport
from streamkern.report.figure_labels import LABELS, figure, figure_row
from streamkern.report.input_effects import (
    MOST_CURVES,
    dependence_figure,
    importance_figure,
    partial_dependence,
)
from streamkern.report.numbers import counted, number, percent, seconds, shortened
from streamkern.report.rendering import Figure
from streamkern.report.report_rows import Row, fit_rows
from streamkern.report.trial_tables import error_of
from streamkern.report.validation_pass import Validation
from streamkern.runtime.threads import blas_libraries, processor
from streamkern.sources.preprocessing.column_names import Columns
from streamkern.statistics import RowSample

# A name, a figure, what explains it, and its share of the largest or the whole.
Bar = tuple[str, str, str, float]

_MOST_INPUTS = 40
# Directions of a metric, inputs that are named of one, and the part of the largest of those that
# they have at least.
_MOST_DIRECTIONS, _NAMED, _MINOR = 12, 4, 0.2
_PHASES = {
    "columns": "first reading: columns and a sample",
    "scale": "choosing scale and kernel",
    "metric": "learning the metric",
    "search": "search for kernel and length scale",
    "pass": "second reading: moments",
    "forget": "forgetting rows",
    "solve": "choosing and solving",
    "calibration": "third reading: calibration",
    "sparsify": "choosing features",
}


def lead(report: FitReport) -> str:
    scale, targets = report["length_scale"], counted(report["n_targets"], "target")
    kernel = f"{report['kernel'].capitalize()} kernel"
    if isinstance(scale, list):
        kernel += f" with {len(scale):,} length scales"
    elif scale is not None:
        kernel += f" with length scale {number(scale)}"
    if "classes" in report:
        targets = f"{len(report['classes']['values']):,} classes"
    rows, inputs = counted(report["rows"], "row"), counted(report["n_features"], "input")
    features = counted(report["n_components"], "feature")
    return f"{rows} of {inputs} and {targets}; {kernel}, {features}."


def shown_targets(model: Any) -> list[str]:
    """Return the names of the targets, cut short where they are long."""
    q, alone = model.columns.n_targets, str(model.report["data"].get("y") or "y")
    unnamed = [alone] if q == 1 else [f"target {j}" for j in range(q)]
    return [shortened(printable(name)) for name in model.columns.target_names or unnamed]


def fitted_rows(model: FittedRidge, report: FitReport) -> list[Row]:
    parameters = model.parameters
    kind = "pairs of cosine and sine" if parameters.paired else "cosines with random phases"
    drawn = f"{kind}, {report['feature_map']}, seed {parameters.random_state}"
    known = np.isfinite(np.atleast_1d(np.asarray(report["noise"], dtype=float))).all()
    noise = number(report["noise"]) if known else "not known: as many degrees of freedom as rows"
    return [
        *fit_rows(report, number),
        ("features", "the inputs" if report["kernel"] == "linear" else drawn),
        ("scale of inputs", report.get("scale", "standard")),
        ("intercept", "yes" if parameters.fit_intercept else "no"),
        (LABELS["noise"].text, noise),
        figure_row("precision_floor", report, number),
        *([("integer products", report["products"])] if "products" in report else []),
    ]


def phase_bars(report: FitReport, reporting: float) -> list[tuple[str, str, float]]:
    """Return the seconds of the fit by what they went to, and those of the page itself."""
    spent: dict[str, float] = dict(report["seconds"])
    total = spent.pop("total")
    rest = total - sum(spent.values())
    parts = {what: spent.pop(name) for name, what in _PHASES.items() if name in spent} | spent
    parts["the rest"] = max(rest, 0.0)
    parts["for this report, besides"] = reporting
    whole = total if total > 0 else math.inf
    return [(name, seconds(value), value / whole) for name, value in parts.items()]


def input_bars(model: FittedRidge) -> tuple[list[Bar], int]:
    """Return the inputs of the shortest length scales, if each has one, and how many more."""
    scales = model.report["length_scale"]
    # Of a combination of kernels, they are those of its parts.
    if not isinstance(scales, list) or "length_scale" not in model.report["kernel_parameters"]:
        return [], 0
    standardizer = model.feature_map.standardizer  # type: ignore[attr-defined]
    beside = trended(model.feature_map)
    kept = slice(None) if beside is None else beside.trend.along
    names = model.columns.named(standardizer.columns[kept].tolist())
    weights, deviation = 1.0 / np.array(scales), standardizer.deviation[kept]
    shares, scaled = (weights / weights.max()).tolist(), (scales * deviation).tolist()
    heaviest = np.argsort(-weights, kind="stable")[:_MOST_INPUTS].tolist()
    bars = [(names[j], number(scales[j]), number(scaled[j]), shares[j]) for j in heaviest]
    return bars, len(scales) - len(bars)


def effects_section(model: Any, found: Validation | None) -> dict[str, Any]:
    """Return pictures of which columns matter, and how, on a sample of the rows."""
    if found is None:
        return {"effects": []}
    sample, falls = held_out_importance(model, found.predictor, found.sample)
    rows = f"{counted(len(sample.X), 'row')}{' held out' if found.by_fold else ' of the fit'}"
    most = np.argsort(-falls, kind="stable")[:MOST_CURVES].tolist()
    columns = [inputs for _, inputs in model.columns.table]
    curves = [dependence_of(model, sample, columns[j]) for j in most if falls[j] > 0]
    return {"effects": [importance_figure(model, falls, rows)], "dependence": curves}


def dependence_of(model: Any, sample: RowSample, inputs: Sequence[int]) -> Figure:
    """Return the picture of a model's partial dependence on a column of a sample of rows."""
    names, y_label = shown_targets(model), ""
    if rule := getattr(model, "rule", None):
        names = [shortened(printable(str(each))) for each in rule.classes.as_dict()["values"]]
        y_label = f"Probability of {names[1] if len(names) == 2 else 'classes'}"
        names = names[1:] if len(names) == 2 else names
    return dependence_figure(partial_dependence(model, sample, inputs), names, y_label)


def metric_facts(report: FitReport, columns: Columns) -> dict[str, Any] | None:
    """Return what is shown of the metric of a fit, None where it has none."""
    metric = report.get("metric")
    if not metric:
        return None
    rounds: list[Any] = metric.get("rounds") or []
    kept: Any = metric.get("kept")
    names, parts = columns.named(metric["columns"]), metric["importance"]
    heaviest = np.argsort(-np.array(parts), kind="stable").tolist()[:_MOST_INPUTS]
    values = metric["eigenvalues"][:_MOST_DIRECTIONS]
    composed = [_composition(direction, names) for direction in metric["directions"]]
    composed += [""] * (len(values) - len(composed))
    return {
        "one_weight_an_input": all(np.count_nonzero(each) == 1 for each in metric["directions"]),
        "inputs": [
            (names[j], percent(parts[j]), number(metric["per_unit"][j]), parts[j] / max(parts))
            for j in heaviest
        ],
        "more_inputs": len(parts) - len(heaviest),
        "directions": [
            (f"direction {k + 1}", percent(value), inputs, value / values[0])
            for k, (value, inputs) in enumerate(zip(values, composed, strict=False))
        ],
        "rounds": [
            (
                *(_round_name(each), each["kernel"], each["feature_map"]),
                *(number(each["length_scale"]), f"{each['n_rows']:,}", f"{each['n_components']:,}"),
                figure("relative_mse", error_of(each)),
            )
            for each in rounds
        ],
        "is_weighted": any(each.get("is_weighted") for each in rounds),
        "kept": kept,
        "best": _round_name(rounds[kept]) if rounds else None,
        "is_plain": bool(rounds) and rounds[kept]["number"] == 0,
        "n_rows": max((each["n_rows"] for each in rounds), default=None),
    }


def _round_name(each: dict[str, Any]) -> str:
    return f"{each['number']} (weights)" if each.get("is_weighted") else str(each["number"])


def _composition(direction: Sequence[float], names: Sequence[str]) -> str:
    parts = np.array(direction)
    order = np.argsort(-np.abs(parts), kind="stable")[:_NAMED]
    major = [j for j in order.tolist() if abs(parts[j]) >= _MINOR * np.abs(parts).max()]
    return ", ".join(f"{parts[j]:+.2f} {names[j]}" for j in major)


def versions() -> list[Row]:
    blas = {
        f"{pool['internal_api']} {pool['version'] or ''} ({pool['architecture'] or 'any'})"
        for pool in blas_libraries()
        if pool["internal_api"] != "openmp"
    }
    return [
        ("streamkern", __version__),
        ("Python", platform.python_version()),
        *((name, version(name)) for name in sorted({*LIBRARIES} - {"streamkern"})),
        ("BLAS", ", ".join(sorted(blas))),
        ("processor", processor()),
        ("system", platform.platform()),
    ]
