"""HTML report of a model: one file that needs nothing else and runs nothing."""

import base64
import hashlib
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from streamkern.errors.formatting import printable
from streamkern.estimators.classification import Classification
from streamkern.estimators.loading import fitted_model, rows_of
from streamkern.kernels import as_kernel
from streamkern.models.fitted_classes import FittedClassifier
from streamkern.models.fitted_model import restored_kernel
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.parameters.fit_report import FitReport
from streamkern.parameters.parameters import AUTO, Parameters
from streamkern.report import choice_figures, numbers, page_facts, report_rows, validation_curves
from streamkern.report.class_figures import class_section
from streamkern.report.prediction_figures import field_maps
from streamkern.report.rendering import style_sheet
from streamkern.report.target_section import target_section
from streamkern.report.trial_tables import tuning_table
from streamkern.report.validation_pass import validated
from streamkern.runtime.memory import in_words
from streamkern.solve.penalty_grid import CRITERIA
from streamkern.sources import LabelledSource, Source, as_source
from streamkern.sources.tables import is_table
from streamkern.storage.outputs import check_output, replacing

_TEMPLATES = Environment(
    loader=PackageLoader("streamkern.report"),
    autoescape=True,
    undefined=StrictUndefined,
    # Texts show nothing that is unprintable.
    finalize=lambda value: printable(value) if type(value) is str else value,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters |= {"number": numbers.number, "rate": partial(numbers.number, digits=3)}
_TEMPLATES.filters |= {"percent": numbers.percent, "seconds": numbers.seconds}
_TEMPLATES.filters |= {"counted": numbers.counted, "in_words": in_words}


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
    fitted = fitted_model(model, "a report is")
    begun = time.perf_counter()
    check_output(path, force=force)
    source, found = None, None
    is_classifier = isinstance(fitted, FittedClassifier)
    if X is not None:
        rows = rows_of(model, X, y, sample_weight)
        source = fitted.labelled(*rows, weighted=True) if is_classifier else as_source(*rows)
        check_output(path, force=force, inputs=source.paths)
        found = validated(fitted, source)
    report = fitted.report  # that of a classifier says how it is calibrated
    facts = class_section(found, report["data"]) if is_classifier else target_section(fitted, found)
    facts |= page_facts.effects_section(fitted, found)
    facts["maps"] = [] if is_classifier else field_maps(fitted)
    call = _python_call(fitted, source) if command is None else command
    _write_page(
        path,
        force=force,
        **_page(fitted.ridge, report),
        **facts,
        found=found,
        rows_were_read=source is not None,
        title=title or f"Kernel {'classification' if is_classifier else 'ridge regression'}",
        call=escape("\n".join(map(printable, call.split("\n")))),
        phases=page_facts.phase_bars(report, time.perf_counter() - begun),
    )


def _write_page(path: str | Path, *, force: bool, **values: Any) -> None:
    """Write the page, with the style sheet and the policy that allows it alone."""
    style = style_sheet()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    values |= {
        "style": Markup(style),  # noqa: S704  our own file
        "style_hash": f"sha256-{digest}",
        "versions": page_facts.versions(),
        "written": datetime.now(UTC),
    }
    html = _TEMPLATES.get_template("report.html").render(**values)
    with replacing(path, force=force) as temporary:
        temporary.write_text(html, encoding="utf-8")


def _page(model: FittedRidge, report: FitReport) -> dict[str, Any]:
    """Return what the page shows without rows; of a classifier, `model` gives the scores."""
    inputs, more_inputs = page_facts.input_bars(model)
    penalty = validation_curves.penalty_curve(model)
    components = validation_curves.components_curve(model)
    sparsity = validation_curves.sparsity_curve(model)
    choices = []
    if penalty:
        choices.append(choice_figures.penalty_figure(penalty, page_facts.shown_targets(model)))
    if components:
        choices.append(choice_figures.sizes_figure(components))
    if sparsity:
        choices.append(choice_figures.sizes_figure(sparsity, is_sparse=True))
    return {
        "lead": page_facts.lead(report),
        "report": report,
        "fitted": page_facts.fitted_rows(model, report),
        "is_classifier": "classes" in report,
        "penalty": penalty,
        "criterion": CRITERIA[penalty.criterion] if penalty else None,
        "choices": choices,
        "has_sizes": bool(components or sparsity),
        "search": choice_figures.search_figures(report),
        "tried": tuning_table(report) if report.get("tuning") else None,
        "metric": page_facts.metric_facts(report, model.columns),
        "parameters": model.parameters,
        "inputs": inputs,
        "more_inputs": more_inputs,
        "faults": [*report_rows.row_faults(report), *report_rows.column_faults(report)],
        "recipe": model.columns.recipe,
    }


def _python_call(model: FittedRidge | FittedClassifier, source: Source | None) -> str:
    """Return Python statements that fit the model again; arrays go by the names of `fit`."""
    given, default = model.ridge.parameters.values(), Parameters().values() | vars(Classification())
    estimator, kernel = "RandomFeatureRidge", given.pop("kernel")
    if isinstance(model, FittedClassifier):
        estimator = "RandomFeatureClassifier"
        given |= {"class_weight": model.class_weight, "calibration": model.calibration}
    kernels = [] if kernel == AUTO else [as_kernel(kernel)]
    options = [repr(each) for each in kernels]
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
        kernels += (resolved := list(map(restored_kernel, tried)))
        arguments += [f"kernels={resolved!r}", f"maps={model.report['tuning_maps']!r}"]
        budget, method = model.report["tuning_budget"], "tune"
        arguments += [] if budget is None else [f"budget={budget!r}"]
    imports = {"streamkern": {estimator}}
    for used in {type(each): 0 for k in kernels for each in (k, *getattr(k, "kernels", ()))}:
        # A user's kernel is imported from its own module.
        module = "streamkern" if used.__module__.startswith("streamkern.") else used.__module__
        imports.setdefault(module, set()).add(used.__name__)
    lines = [f"from {each} import {', '.join(sorted(imports[each]))}" for each in sorted(imports)]
    made, call = f"model = {estimator}({', '.join(options)})", f"{method}({', '.join(arguments)})"
    return "\n".join(["import streamkern", *lines, "", made, f"model.{call}"])


def _rows_of_call(data: dict[str, Any], source: Source) -> str:
    is_labelled = isinstance(source, LabelledSource)
    if data["kind"] != "hdf5":
        rows = source.rows if isinstance(source, LabelledSource) else source
        return "X, y, sample_weight" if rows.is_weighted else "X, y"
    how = f", weights={data['weights']!r}" if data.get("weights") else ""
    how += ", labels=True" if is_labelled else ""
    paths = [file["path"] for file in data["files"]]
    if is_table(paths[0]):
        targets = list(data["recipe"]["targets"])
        weights = f", sample_weight={data['recipe']['weights']!r}" if how else ""
        return f"{paths!r}, y={targets!r}{weights}"
    return f"streamkern.open_hdf5({paths!r}, {data['x']!r}, {data['y']!r}{how})"
