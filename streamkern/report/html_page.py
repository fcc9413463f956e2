"""HTML report of a model: one file that needs nothing else and runs nothing."""

from __future__ import annotations

import base64
import hashlib
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from streamkern.errors import ParameterError
from streamkern.errors.formatting import printable
from streamkern.kernels import as_kernel, kernel_from, simple_kernels
from streamkern.models.classification import Classification
from streamkern.models.fitted_classes import FittedClassifier
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.models.loading import fitted_of, rows_of
from streamkern.parameters.parameters import Parameters
from streamkern.report import choice_figures, numbers, page_facts, report_rows
from streamkern.report import prediction_figures as figures
from streamkern.report.trial_tables import tuning_table
from streamkern.report.validation_pass import validated, validated_classes
from streamkern.runtime.memory import in_words
from streamkern.solve.penalty_grid import CRITERIA
from streamkern.sources import LabelledSource, as_source
from streamkern.sources.preprocessing.column_names import target_names
from streamkern.storage import check_output, replacing

if TYPE_CHECKING:
    from streamkern.report.validation_pass import Validation
    from streamkern.sources import Source

_MOST_TARGETS = 4


def write_report(
    model: Any,
    path: str | Path,
    X: Any = None,
    y: Any = None,
    sample_weight: Any = None,
    *,
    title: str | None = None,
    command: str | None = None,
    force: bool = False,
) -> None:
    """Write what a model was fitted on, how, and how well it does, as one HTML file.

    With the rows, they are read once more: each is predicted by the model without its fold, if the
    model was fitted with `keep_moments`; else some of them are, each by the model without it.

    Parameters
    ----------
    model : RandomFeatureRidge or RandomFeatureClassifier
        Fitted.
    path : path
    X, y, sample_weight : optional
        The rows that the model was fitted on, as in `fit`.
    title : str, optional
        By default what the model is.
    command : str, optional
        What makes the model again; by default a call of Python.
    force : bool
        Replace an existing file.

    Raises
    ------
    OutputError
        If the file exists and `force` is not given, or cannot be written; before rows are read.
    DataError
        If these are not the rows that the model was fitted on.
    ModelFileError
        If rows are given, and the model was saved without its normal equations.
    """
    fitted: Any = fitted_of(model)
    if type(fitted) not in (FittedRidge, FittedClassifier):
        raise ParameterError(
            f"a report is made of a fitted RandomFeatureRidge or RandomFeatureClassifier, not of "
            f"{model!r}; fit it first."
        )
    begun = time.perf_counter()
    check_output(path, force=force)
    source: Source | None = None
    found: Any = None
    is_classifier = isinstance(fitted, FittedClassifier)
    validate: Any = validated_classes if is_classifier else validated
    if X is not None:
        rows = rows_of(model, X, y, sample_weight)
        source = fitted.labelled(*rows, weighted=True) if is_classifier else as_source(*rows)
        check_output(path, force=force, inputs=source.paths)
        found = validate(fitted, source)
    report = fitted.report  # that of a classifier says how it is calibrated
    section = figures.class_section(found) if is_classifier else _target_section(fitted, found)
    call = _python_call(fitted, source) if command is None else command
    html = (
        _environment()
        .get_template("report.html")
        .render(
            **_page(fitted.ridge, report),
            **section,
            found=found,
            rows_were_read=source is not None,
            title=title or f"Kernel {'classification' if is_classifier else 'ridge regression'}",
            call=escape("\n".join(map(printable, call.split("\n")))),
            folder=str(Path.cwd()) if command and report["data"].get("folders") else "",
            phases=page_facts.phase_bars(report, time.perf_counter() - begun),
        )
    )
    with replacing(path, force=force) as temporary:
        temporary.write_text(html, encoding="utf-8")


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("streamkern.report"),
        autoescape=True,
        undefined=StrictUndefined,
        # Texts show nothing that is unprintable.
        finalize=lambda value: printable(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    names = ("number", "percent", "seconds", "counted")
    environment.filters |= {name: getattr(numbers, name) for name in names}
    environment.filters |= {"rate": partial(numbers.number, digits=3), "in_words": in_words}
    return environment


def _page(model: FittedRidge, report: dict[str, Any]) -> dict[str, Any]:
    """Return what the page shows without rows; of a classifier, `model` gives the scores."""
    inputs, more_inputs = page_facts.input_bars(model)
    penalty = choice_figures.penalty_curve(model)
    curves = choice_figures.components_curve(model), choice_figures.sparsity_curve(model)
    choices = [choice_figures.penalty_figure(penalty, _target_names(report))] if penalty else []
    choices += [
        choice_figures.sizes_figure(curve, is_sparse=curve is curves[1])
        for curve in curves
        if curve
    ]
    style = Path(__file__).with_name("templates").joinpath("style.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return {
        "lead": page_facts.lead(report),
        "style": Markup(style),  # noqa: S704  our own file
        "style_hash": f"sha256-{digest}",
        "report": report,
        "fitted": page_facts.fitted_rows(model, report),
        "is_classifier": "classes" in report,
        "penalty": penalty,
        "criterion": CRITERIA[penalty.criterion] if penalty else None,
        "choices": choices,
        "has_sizes": any(curves),
        "search": choice_figures.search_figures(report),
        "tried": tuning_table(report) if report.get("tuning") else None,
        "metric": page_facts.metric_facts(model.report),
        "parameters": model.parameters,
        "inputs": inputs,
        "more_inputs": more_inputs,
        "faults": [*report_rows.row_faults(report), *report_rows.column_faults(report)],
        "versions": page_facts.versions(),
        "written": datetime.now(UTC),
    }


def _target_section(model: FittedRidge, found: Validation | None) -> dict[str, Any]:
    """Return what the page shows of predictions of targets."""
    names, standardized, pairs = _target_names(model.report), None, []
    shown = names[:_MOST_TARGETS] if len(names) > 1 else [""]
    if found is not None:
        pairs = [figures.pairs_figures(found, j, names[j]) for j in range(len(shown))]
        # Rows whose own model has as many degrees of freedom as rows have no deviation.
        known = found.standardized[np.isfinite(found.standardized).all(axis=1)]
        if np.isfinite(model.normal_equations.noise_variance).all() and len(known):
            standardized = known
    section = {
        "tiles": page_facts.error_tiles(model, found, standardized),
        "pairs_shown": list(zip(shown, pairs, strict=False)),
        "by_target": [] if found is None else page_facts.target_errors(found, names),
        "intervals": [],
    }
    if standardized is not None:
        section["intervals"] = [
            figures.interval_figure(standardized, names),
            figures.normality_figure(standardized),
        ]
        section["coverage"] = page_facts.coverage_rows(standardized)
        header = shown if len(names) > 1 else ["rows within, ± chance"]
        section["coverage_header"] = ("interval", *header)
    return section


def _target_names(report: dict[str, Any]) -> list[str]:
    """Return the names of the targets, cut short where they are long."""
    q, alone = report["n_targets"], str(report["data"].get("y") or "y")
    unnamed = [alone] if q == 1 else [f"target {j}" for j in range(q)]
    return [numbers.shortened(printable(name)) for name in target_names(report) or unnamed]


def _python_call(model: FittedRidge | FittedClassifier, source: Source | None) -> str:
    """Return Python statements that fit the model again; arrays go by the names of `fit`."""
    given, default = model.ridge.parameters.values(), Parameters().values() | vars(Classification())
    estimator, kernel = "RandomFeatureRidge", as_kernel(given.pop("kernel"))
    if isinstance(model, FittedClassifier):
        estimator = "RandomFeatureClassifier"
        given |= {"class_weight": model.class_weight, "calibration": model.calibration}
    options, kernels = [repr(kernel)], [kernel]
    for name, each in given.items():
        if name == "metric" and not (each is None or isinstance(each, str)):
            options.append("metric=metric")  # a matrix, by the name of the parameter
            continue
        value = each.tolist() if hasattr(each, "tolist") else each
        if value != default[name]:
            options.append(f"{name}={value!r}")
    arguments, method, tried = ["moments"], "solve", model.report.get("tuning_kernels")
    if source is not None:
        arguments, method = [_rows_of_call(model.report["data"], source)], "fit"
    if source is not None and tried is not None:
        # Every name as it was resolved, whatever 'auto' will mean.
        kernels += (resolved := [kernel_from(each["name"], each["parameters"]) for each in tried])
        arguments += [f"kernels={resolved!r}", f"maps={model.report['tuning_maps']!r}"]
        budget, method = model.report["tuning_budget"], "tune"
        arguments += [] if budget is None else [f"budget={budget!r}"]
    imports = {"streamkern": {estimator}}
    for used in (type(simple) for each in kernels for simple in simple_kernels(each)):
        # A user's kernel is imported from its own module.
        module = "streamkern" if used.__module__.startswith("streamkern.") else used.__module__
        imports.setdefault(module, set()).add(used.__name__)
    return "\n".join(
        (
            "import streamkern",
            *(f"from {each} import {', '.join(sorted(imports[each]))}" for each in sorted(imports)),
            "",
            f"model = {estimator}({', '.join(options)})",
            f"model.{method}({', '.join(arguments)})",
        )
    )


def _rows_of_call(data: dict[str, Any], source: Source) -> str:
    is_labelled = isinstance(source, LabelledSource)
    if data["kind"] != "hdf5":
        rows = source.rows if isinstance(source, LabelledSource) else source
        return "X, y, sample_weight" if rows.is_weighted else "X, y"
    how = f", weights={data['weights']!r}" if data.get("weights") else ""
    how += ", labels=True" if is_labelled else ""
    paths = [file["path"] for file in data["files"]]
    return f"streamkern.open_hdf5({paths!r}, {data['x']!r}, {data['y']!r}{how})"
