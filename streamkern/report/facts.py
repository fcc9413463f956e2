"""What a report says in tables: how a model was made, what that took, and what went wrong."""

from __future__ import annotations

import math
import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamkern._version import __version__
from streamkern.errors.formatting import listed
from streamkern.kernels import as_kernel, length_scale_of
from streamkern.models.fitted_ridge import LIBRARIES
from streamkern.report.numbers import number, percent, seconds
from streamkern.runtime.machine import blas_libraries, processor
from streamkern.runtime.memory import in_words
from streamkern.solve.penalty_curve import CRITERIA
from streamkern.sources.preprocessing.column_names import named_inputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern.models.ridge_model import RidgeModel
    from streamkern.report.validation_pass import Validation

_MOST_FILES = 20
_MOST_INPUTS = 40
_MOST_NAMED = 12
_PHASES = {
    "columns": "first reading: columns and a sample",
    "metric": "learning the metric",
    "search": "search for kernel and length scale",
    "pass": "second reading: moments",
    "forget": "forgetting rows",
    "solve": "choosing and solving",
    "calibration": "third reading: calibration",
    "sparsify": "choosing features",
}


class Part(NamedTuple):
    """A named amount, and what part of the largest or of the whole it is."""

    name: str
    amount: str
    share: float


class Input(NamedTuple):
    """How a kernel weighs an input."""

    name: str
    length_scale: str
    own_units: str
    share: float


def fitted_rows(model: RidgeModel, report: dict[str, Any]) -> list[tuple[str, str]]:
    """Return how the model was made, in pairs of a name and a value; parameters as `rendered`."""
    rows = [
        ("rows", f"{report['rows']:,}"),
        *([("weights of rows", _weights(report))] if report.get("weights") else []),
        ("inputs", _inputs(report)),
        *(_classes(report) if "classes" in report else [("targets", f"{report['n_targets']:,}")]),
        ("kernel", report["kernel"]),
    ]
    if report["length_scale"] is not None:
        rows.append(("length scale", f"{number(report['length_scale'])} ({_scale_by(model)})"))
    return [
        *rows,
        ("features", _features(model)),
        ("inputs standardised", "yes" if model.standardize else "no"),
        ("intercept", "yes" if model.fit_intercept else "no"),
        ("penalty α", f"{number(report['alpha'])} ({penalty_by(model)})"),
        ("effective degrees of freedom", number(report["effective_dof"])),
        ("RMSE on the rows fitted", number(report["train_rmse"])),
        ("standard deviation of the noise", _noise(report["noise"])),
        ("precision", f"{report['precision']}, summed in double"),
        ("solver", report["solver"]),
        ("condition of the system", number(report["condition"])),
        ("precision floor of α", number(report["precision_floor"])),
    ]


def _classes(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the classes, how many rows they have or how they are weighted, and the calibration."""
    names = [str(value) for value in report["classes"]["values"]]
    rows = [("classes", ", ".join(names) if len(names) < _MOST_NAMED else f"{len(names):,}")]
    counts, factors = report.get("class_counts"), report.get("class_factors")
    if counts and len(names) < _MOST_NAMED:
        rows.append(("rows of each", ", ".join([f"{count:,.10g}" for count in counts])))
    if factors is not None and len(names) < _MOST_NAMED:
        rows.append(("weights of classes", ", ".join([number(factor) for factor in factors])))
    return [*rows, ("calibration", report.get("calibration") or "none")]


def _noise(noise: Any) -> str:
    known = np.isfinite(np.atleast_1d(np.asarray(noise, dtype=float))).all()
    return number(noise) if known else "not known: as many degrees of freedom as rows"


def _weights(report: dict[str, Any]) -> str:
    return f"{report['weights']}, which add up to {number(report['weight'])}"


def _inputs(report: dict[str, Any]) -> str:
    dropped = report["dropped_columns"]
    left_out = f", of which {len(dropped):,} constant and left out" if dropped else ""
    few = report.get("nearly_constant_columns")
    enlarged = f", {len(few):,} nearly constant, their deviation enlarged" if few else ""
    return f"{report['n_features']:,}{left_out}{enlarged}"


def _scale_by(model: RidgeModel) -> str:
    unit = "in standard deviations of the inputs" if model.standardize else "in the inputs' units"
    if model.report_.get("tuning"):
        return f"{unit}; chosen among {len(model.report_['tuning']):,} trials"
    if length_scale_of(as_kernel(model.kernel)) == "median":
        return f"{unit}; the median distance between rows"
    return unit


def _features(model: RidgeModel) -> str:
    report = model.report_
    if report["kernel"] == "linear":
        return f"{report['n_components']:,}, the inputs themselves"
    kind = "pairs of cosine and sine" if model.paired else "cosines with random phases"
    text = f"{report['n_components']:,}, {kind}, {report['feature_map']}, seed {model.random_state}"
    if report["sparse_of"]:
        text = (
            f"{report['n_components']:,} of {report['sparse_of']:,} by {report['sparse_method']} "
            f"selection, {report['feature_map']}, seed {model.random_state}"
        )
    return text


def penalty_by(model: RidgeModel) -> str:
    """Return how the penalty was chosen, in words."""
    curve, report = model.report_.get("alpha_curve"), model.report_
    if not curve:
        return "given"
    text = f"by {CRITERIA[curve['criterion']]}"
    if curve["criterion"] == "cv":
        text += f" on {report['n_folds']} folds of {report['fold_by']}"
    text += f", of {len(curve['alphas'])} tried"
    text += ", one for every target" if isinstance(report["alpha"], list) else ""
    rule = ", the largest within one standard error of the best"
    return text + (rule if model.one_standard_error else "")


def data_files(model: RidgeModel) -> tuple[list[tuple[str, str]], int]:
    """Return the first files with what they hold, and how many more there are."""
    files = model.report_["data"].get("files", [])
    shown = [(file["path"], f"{file['n_rows']:,}") for file in files[:_MOST_FILES]]
    return shown, len(files) - len(shown)


def phases(model: RidgeModel, reporting: float) -> list[Part]:
    """Return what took how long, and making the report, with shares of the whole fit."""
    spent: dict[str, float] = dict(model.report_["seconds"])
    total = spent.pop("total")
    ordered = sorted(spent, key=lambda name: [*_PHASES, name].index(name))
    parts = {_PHASES.get(name, name): spent[name] for name in ordered}
    parts["the rest"] = max(total - sum(spent.values()), 0.0)
    parts["for this report, besides"] = reporting
    return [
        Part(name, seconds(value), value / total if total > 0 else 0.0)
        for name, value in parts.items()
    ]


def memory(model: RidgeModel) -> list[Part]:
    """Return the memory that was projected and that was measured, with shares of the larger."""
    report = model.report_
    named = {
        "projected, before the first read": report["projected_worker_bytes"],
        "measured, at the most": report["peak_worker_bytes"],
    }
    largest = max(*named.values(), 1)
    return [Part(name, in_words(value), value / largest) for name, value in named.items()]


def faults(model: RidgeModel) -> list[tuple[str, str, str]]:
    """Return what went wrong and was survived: what, how much, and what was done about it."""
    report = model.report_
    dropped = report["dropped_columns"]
    called = named_inputs(report, dropped)
    return [
        ("shards retried", f"{report['retried_shards']:,}", "begun again when a worker was lost"),
        ("shards resumed", f"{report['resumed_shards']:,}", "found in the checkpoint"),
        ("rows skipped", f"{report['skipped_rows']:,}", "left out: values that are not finite"),
        ("rows forgotten", f"{report.get('forgotten_rows', 0):,}", "taken out of the moments"),
        (
            "columns dropped",
            f"{len(dropped):,}",
            f"left out: constant ({listed(called, _MOST_NAMED)})"
            if dropped
            else "left out: constant",
        ),
    ]


def inputs(model: RidgeModel) -> tuple[list[Input], int]:
    """Return the inputs that the kernel weighs most, and how many more there are.

    That is for kernels with a length scale for each input; of others there are none.
    """
    scales = model.report_["length_scale"]
    # Of a combination of kernels, they are those of its parts.
    if not isinstance(scales, list) or "length_scale" not in model.report_["kernel_parameters"]:
        return [], 0
    standardizer = model.feature_map_.standardizer  # type: ignore[attr-defined]
    names = named_inputs(model.report_, standardizer.columns.tolist())
    weights = 1.0 / np.array(scales)
    order = np.argsort(-weights, kind="stable")[:_MOST_INPUTS].tolist()
    rows = [
        Input(
            names[j],
            number(scales[j]),
            number(float(scales[j] * standardizer.deviation[j])),
            float(weights[j] / weights.max()),
        )
        for j in order
    ]
    return rows, len(scales) - len(rows)


def errors_by_target(found: Validation, names: Sequence[str]) -> list[tuple[str, str, str, str]]:
    """Return for each of the first targets its name, its RMSE, the same in sd of y, and R²."""
    both = enumerate(zip(found.rmse.tolist(), found.r2.tolist(), strict=True))
    return [
        (names[j], number(rmse), number(math.sqrt(max(1.0 - r2, 0.0))), percent(r2))
        for j, (rmse, r2) in both
    ][:_MOST_FILES]


def versions() -> list[tuple[str, str]]:
    """Return what computed: libraries with their versions, and the processor."""
    names = sorted({"streamkern", *LIBRARIES} - {"streamkern"})
    blas = {
        f"{pool['internal_api']} {pool['version'] or ''} ({pool['architecture'] or 'any'})"
        for pool in blas_libraries()
        if pool["internal_api"] != "openmp"
    }
    return [
        ("streamkern", __version__),
        ("Python", platform.python_version()),
        *((name, version(name)) for name in names),
        ("BLAS", ", ".join(sorted(blas))),
        ("processor", processor()),
        ("system", platform.platform()),
    ]
