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
from markupsafe import Markup

from streamkern._version import __version__
from streamkern.errors import ParameterError
from streamkern.errors.formatting import printable
from streamkern.models.fitted_classes import FittedClassifier
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.models.loading import fitted_of, rows_of
from streamkern.report import (
    choice_figures,
    class_figures,
    numbers,
    page_facts,
    report_rows,
    trial_tables,
)
from streamkern.report.choice_curves import components_curve, penalty_curve, sparsity_curve
from streamkern.report.metric_facts import metric_facts
from streamkern.report.prediction_figures import calibration_figures, pairs_figures
from streamkern.report.refit_call import python_call
from streamkern.report.validation_pass import validated
from streamkern.sources import as_source
from streamkern.sources.preprocessing.column_names import target_names
from streamkern.storage import check_output, replacing

if TYPE_CHECKING:
    from streamkern._typing import Floats
    from streamkern.report.validation_pass import Validation
    from streamkern.sources import Source

_LONGEST_NAME, _MOST_TARGETS = 24, 4
_NO_ROWS = (
    "The rows were not read for this report, because a model made of moments does without them. "
    "“streamkern fit --report”, or “streamkern.write_report” with the rows, shows them."
)
_NONE_LEFT = (
    "Every row determines its own prediction, so that the model without it tells nothing of it. A "
    "larger penalty or fewer features would change that."
)


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
    ridge, is_classifier = fitted.ridge, isinstance(fitted, FittedClassifier)
    if X is not None:
        rows = rows_of(model, X, y, sample_weight)
        source = fitted.labelled(*rows, weighted=True) if is_classifier else as_source(*rows)
    if is_classifier:
        title = title or "Kernel classification"
    if source is not None:
        check_output(path, force=force, inputs=source.paths)
        validate: Any = validated
        if is_classifier:
            validate = class_figures.validated_classes
        found = validate(fitted, source)
    report = fitted.report  # that of a classifier says how it is calibrated
    if "classes" in report:
        section = {} if found is None else class_figures.class_section(found)
    else:
        section = _target_section(ridge, found)
    call = python_call(fitted, source) if command is None else command
    html = (
        _environment()
        .get_template("report.html")
        .render(
            **_page(ridge, report),
            **{"tiles": [], "class_figures": None} | section,
            found=found,
            why_not=_NO_ROWS if source is None else _NONE_LEFT,
            title=title or "Kernel ridge regression",
            call=Code("\n".join(map(printable, call.split("\n")))),
            folder=str(Path.cwd()) if command and report["data"].get("folders") else "",
            phases=page_facts.phase_bars(report, time.perf_counter() - begun),
        )
    )
    with replacing(path, force=force) as temporary:
        temporary.write_text(html, encoding="utf-8")


def _page(model: FittedRidge, report: dict[str, Any]) -> dict[str, Any]:
    """Return what the page shows without rows; of a classifier, `model` gives the scores."""
    files, more_files = page_facts.data_files(report)
    inputs, more_inputs = page_facts.input_bars(model)
    penalty, sizes, sparse = penalty_curve(model), components_curve(model), sparsity_curve(model)
    style = _style(_environment())
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return {
        "lead": page_facts.lead(report),
        "style": Markup(style),  # noqa: S704  our own file
        "style_hash": f"sha256-{digest}",
        "report": report,
        "cost_tiles": page_facts.cost_tiles(report),
        "fitted": page_facts.fitted_rows(model, report),
        "files": files,
        "more_files": more_files,
        "is_classifier": "classes" in report,
        "penalty": penalty,
        "penalty_choice": page_facts.penalty_choice(model),
        "choices": [
            *([choice_figures.penalty_figure(penalty, _target_names(report))] if penalty else []),
            *([choice_figures.sizes_figure(sizes)] if sizes else []),
            *([choice_figures.sizes_figure(sparse, is_sparse=True)] if sparse else []),
        ],
        "no_sizes": "" if sizes or sparse else _why_no_sizes(model.report),
        "search": choice_figures.search_figures(report),
        "tried": trial_tables.tuning_table(report) if report.get("tuning") else None,
        "metric": metric_facts(model.report),
        "standardize": model.parameters.standardize,
        "inputs": inputs,
        "more_inputs": more_inputs,
        "memory": page_facts.memory_bars(report),
        "faults": [*report_rows.row_faults(report), *report_rows.column_faults(report)],
        "versions": page_facts.versions(),
        "own_version": __version__,
        "written": datetime.now(UTC),
    }


def _target_section(model: FittedRidge, found: Validation | None) -> dict[str, Any]:
    """Return what the page shows of predictions of targets."""
    names, standardized = _target_names(model.report), _known(model, found)
    shown = names[:_MOST_TARGETS]
    several = len(names) > 1
    return {
        "tiles": page_facts.error_tiles(model, found, standardized),
        "pairs_shown": [
            {"name": name if several else "", "figures": pairs_figures(found, j, name)}
            for j, name in enumerate(shown)
            if found is not None
        ],
        "by_target": [] if found is None else page_facts.target_errors(found, names),
        "intervals": [] if standardized is None else calibration_figures(standardized, names),
        "coverage_header": ("interval", *(shown if several else ["rows within, ± chance"])),
        "coverage": [] if standardized is None else page_facts.coverage_rows(standardized),
    }


def _known(model: FittedRidge, found: Validation | None) -> Floats | None:
    """Return residuals (m, q) over their standard deviations, or None where these are not known."""
    if found is None or not np.isfinite(model.normal_equations.noise_variance).all():
        return None
    # Rows whose own model has as many degrees of freedom as rows have no deviation.
    finite = found.standardized[np.isfinite(found.standardized).all(axis=1)]
    return finite if len(finite) else None


class Code(str):
    """A text that keeps its line breaks."""

    __slots__ = ()


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
    environment.filters["rate"] = partial(numbers.number, digits=3)
    return environment


def _style(environment: Environment) -> str:
    """Return the style sheet."""
    assert environment.loader is not None  # noqa: S101  for the type checker
    return environment.loader.get_source(environment, "style.css")[0]


def _target_names(report: dict[str, Any]) -> list[str]:
    """Return the names of the targets, cut short where they are long."""
    q, alone = report["n_targets"], str(report["data"].get("y") or "y")
    unnamed = [alone] if q == 1 else [f"target {j}" for j in range(q)]
    names = map(printable, target_names(report) or unnamed)
    return [n if len(n) <= _LONGEST_NAME else f"{n[: _LONGEST_NAME - 1]}…" for n in names]


def _why_no_sizes(report: dict[str, Any]) -> str:
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
