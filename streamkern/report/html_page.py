"""The report of a model: one HTML file that needs nothing else and runs nothing."""

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
from markupsafe import Markup

from streamkern._version import __version__
from streamkern.errors import ParameterError
from streamkern.errors.formatting import printable
from streamkern.models.classifier_model import ClassifierModel
from streamkern.models.ridge_model import RidgeModel
from streamkern.report import choice_figures, facts, numbers, prediction_figures
from streamkern.report.choice_curves import components_curve, penalty_curve, sparsity_curve
from streamkern.report.class_figures import (
    ClassValidation,
    class_figures,
    class_tiles,
    confusion_columns,
    error_rows,
    shown_of,
    validated_classes,
)
from streamkern.report.metric_figures import metric_facts
from streamkern.report.refit_call import python_call
from streamkern.report.summary import cost_tiles, lead, tiles
from streamkern.report.validation_pass import validated
from streamkern.sources import as_source
from streamkern.sources.preprocessing.column_names import target_names
from streamkern.storage import check_output, replacing

if TYPE_CHECKING:
    from streamkern._typing import Floats
    from streamkern.report.validation_pass import Validation
    from streamkern.sources import Source

_LONGEST_NAME = 24
_NO_ROWS = (
    "The rows were not read for this report, because a model made of moments does without them. "
    "“streamkern fit --report”, or “streamkern.write_report” with the rows, shows them."
)
_NONE_LEFT = (
    "Every row determines its own prediction, so that the model without it tells nothing of it. A "
    "larger penalty or fewer features would change that."
)


def write_report(
    model: RidgeModel | ClassifierModel,
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
    ridge = getattr(model, "ridge_", model)
    if not isinstance(ridge, RidgeModel) or not hasattr(ridge, "predictor_"):
        raise ParameterError(
            f"a report is made of a fitted RandomFeatureRidge or RandomFeatureClassifier, not of "
            f"{model!r}; fit it first."
        )
    begun = time.perf_counter()
    check_output(path, force=force)
    source: Source | None = None
    found: Validation | ClassValidation | None = None
    if X is not None and isinstance(model, ClassifierModel):
        source = model._labelled(X, y, sample_weight, weighted=True)
        check_output(path, force=force, inputs=source.paths)
        found = validated_classes(model, source)
    elif X is not None:
        source = as_source(*model._tables(X, y, sample_weight))
        check_output(path, force=force, inputs=source.paths)
        found = validated(ridge, source)
    if title is None:
        is_classifier = isinstance(model, ClassifierModel)
        title = "Kernel classification" if is_classifier else "Kernel ridge regression"
    call = python_call(model, source) if command is None else command
    report = model.report_  # that of a classifier says how it is calibrated
    folder = str(Path.cwd()) if command and report["data"].get("folders") else ""
    texts = {"title": title, "call": call, "folder": folder}
    texts["why_not"] = _NO_ROWS if source is None else _NONE_LEFT
    html = rendered(ridge, report, found, **texts, begun=begun)
    with replacing(path, force=force) as temporary:
        temporary.write_text(html, encoding="utf-8")


def rendered(
    model: RidgeModel,
    report: dict[str, Any],
    found: Validation | ClassValidation | None,
    *,
    title: str,
    call: str,
    folder: str,
    why_not: str,
    begun: float,
) -> str:
    """Return the page.

    Parameters
    ----------
    model : RidgeModel
        Of a classifier the one that gives its scores.
    report : dict
        Of the model, or of the classifier.
    found : Validation or ClassValidation, optional
        What reading the rows again told.
    title : str
    call : str
        What makes the model again.
    folder : str
        Where, if that matters.
    why_not : str
        Why no rows are predicted by models that have not seen them, where `found` is None.
    begun : float
        When the report was, on the clock of `time.perf_counter`.
    """
    files, more_files = facts.data_files(model)
    inputs, more_inputs = facts.inputs(model)
    penalty, sizes, sparse = penalty_curve(model), components_curve(model), sparsity_curve(model)
    environment = _environment()
    style = _style(environment)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    if isinstance(found, ClassValidation):
        first, predictions = class_tiles(found), _of_classes(found)
    else:
        standardized = _known(model, found)
        first = tiles(model, found, standardized)
        predictions = _of_targets(model, found, standardized)
    return environment.get_template("report.html").render(
        title=title,
        lead=lead(model),
        style=Markup(style),  # noqa: S704  our own file
        style_hash=f"sha256-{digest}",
        report=report,
        tiles=[*first, *cost_tiles(model)],
        fitted=facts.fitted_rows(model, report),
        files=files,
        more_files=more_files,
        found=found,
        why_not=why_not,
        is_classifier="classes" in report,
        **predictions,
        penalty=penalty,
        penalty_by=facts.penalty_by(model),
        choices=[
            *([choice_figures.penalty_figure(penalty, _target_names(report))] if penalty else []),
            *([choice_figures.sizes_figure(sizes)] if sizes else []),
            *([choice_figures.sizes_figure(sparse, is_sparse=True)] if sparse else []),
        ],
        no_sizes="" if sizes or sparse else _why_no_sizes(model),
        search=choice_figures.search_figures(report),
        tried=choice_figures.tried_rows(report),
        metric=metric_facts(model),
        standardize=model.standardize,
        inputs=inputs,
        more_inputs=more_inputs,
        phases=facts.phases(model, time.perf_counter() - begun),
        memory=facts.memory(model),
        faults=facts.faults(model),
        call=Code("\n".join(map(printable, call.split("\n")))),
        folder=folder,
        versions=facts.versions(),
        own_version=__version__,
        written=datetime.now(UTC),
    )


def _known(model: RidgeModel, found: Validation | None) -> Floats | None:
    """Return residuals (m, q) over their standard deviations, or None where these are not known."""
    if found is None or not np.isfinite(model.normal_equations().noise_variance).all():
        return None
    # Rows whose own model has as many degrees of freedom as rows have no deviation.
    finite = found.standardized[np.isfinite(found.standardized).all(axis=1)]
    return finite if len(finite) else None


def _of_targets(
    model: RidgeModel, found: Validation | None, standardized: Floats | None
) -> dict[str, Any]:
    """Return what the page says of predictions of targets."""
    names = _target_names(model.report_)
    several = len(names) > 1
    return {
        "pairs_shown": [
            {
                "name": name if several else "",
                "figures": prediction_figures.pairs_figures(found, j, name),
            }
            for j, name in enumerate(names[:4])
            if found is not None
        ],
        "by_target": [] if found is None else facts.errors_by_target(found, names),
        "intervals": []
        if standardized is None
        else prediction_figures.calibration_figures(standardized, names),
        "coverage_header": ("interval", *(names[:4] if several else ["rows within, ± chance"])),
        "coverage": [] if standardized is None else _coverage_rows(standardized),
    }


def _of_classes(found: ClassValidation) -> dict[str, Any]:
    """Return what the page says of predictions of classes."""
    header, rows = confusion_columns(found)
    return {
        "class_figures": class_figures(found),
        "class_errors": error_rows(found),
        "confusion_header": header,
        "confusion": rows,
        "classes_shown": shown_of(found),
    }


class Code(str):
    """A text whose ends of lines are its own, and stay."""

    __slots__ = ()


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("streamkern.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": numbers.number,
        "percent": numbers.percent,
        "seconds": numbers.seconds,
        "counted": numbers.counted,
        "rate": partial(numbers.number, digits=3),
    }
    return environment


def _shown(value: Any) -> Any:
    """Return a text with nothing unprintable in it, and anything else as it is."""
    return printable(value) if type(value) is str else value


def _style(environment: Environment) -> str:
    """Return the style sheet, without what only those who edit it need."""
    assert environment.loader is not None  # noqa: S101  for the type checker
    return environment.loader.get_source(environment, "style.css")[0]


def _target_names(report: dict[str, Any]) -> list[str]:
    """Return the names of the targets, cut short where they are long."""
    q, alone = report["n_targets"], str(report["data"].get("y") or "y")
    unnamed = [alone] if q == 1 else [f"target {j}" for j in range(q)]
    names = map(printable, target_names(report) or unnamed)
    return [n if len(n) <= _LONGEST_NAME else f"{n[: _LONGEST_NAME - 1]}…" for n in names]


def _coverage_rows(standardized: Floats) -> list[tuple[str, ...]]:
    shares, by_chance = (
        prediction_figures.coverage(standardized),
        prediction_figures.chance(len(standardized)),
    )
    return [
        (
            numbers.percent(level, 0),
            *(f"{numbers.percent(share)} ± {100.0 * error:.1f}" for share in row[:4]),
        )
        for level, row, error in zip(
            prediction_figures.LEVELS, shares.tolist(), by_chance, strict=True
        )
    ]


def _why_no_sizes(model: RidgeModel) -> str:
    report = model.report_
    if report["kernel"] == "linear":
        return "The features are the inputs, of which there is no smaller number to try."
    if (report["alpha_curve"] or {}).get("criterion") != "cv":
        return (
            "The error over the number of features needs folds to leave out: --alpha cv has them."
        )
    return (
        "The error over the number of features is not known: it needs the moments of the fit, as "
        "“streamkern fit --report” and “keep_moments” have them."
    )
