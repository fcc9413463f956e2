"""HTML report of a model: one file that needs nothing else and runs nothing."""

import base64
import hashlib
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import streamkern
from streamkern._version import __version__
from streamkern.errors import ParameterError
from streamkern.errors.formatting import printable
from streamkern.estimators.loading import fitted_model, rows_of
from streamkern.extensions.report import (
    choice_figures,
    class_figures,
    input_effects,
    loss_figures,
    prediction_figures,
)
from streamkern.extensions.report.importance import held_out_importance
from streamkern.extensions.report.numbers import counted, number, percent, seconds
from streamkern.extensions.report.pair_counts import MOST_TARGETS
from streamkern.extensions.report.pictures import Figure
from streamkern.extensions.report.validation_pass import Validation, validated
from streamkern.models import report_rows
from streamkern.models.fitted_model import LIBRARIES
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.parameters.fit_report import FitReport
from streamkern.registry import tables
from streamkern.runtime.memory import in_words
from streamkern.runtime.threads import processor
from streamkern.storage.outputs import check_output, replacing

# Targets whose errors are shown.
_MOST_ROWS = 20
_TEMPLATES = Environment(
    loader=PackageLoader("streamkern.extensions.report"),
    autoescape=True,
    undefined=StrictUndefined,
    # Texts show nothing that is unprintable.
    finalize=lambda value: printable(value) if type(value) is str else value,
    trim_blocks=True,
    lstrip_blocks=True,
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
    model was fitted with `keep_moments`; else some of them are, each by the model without it.  Of
    other losses it is the former alone.

    Parameters
    ----------
    model : RandomFeatureRidge, RandomFeatureRegressor or RandomFeatureClassifier
        Fitted.
    path : path
    X, y, sample_weight : optional
        The rows that the model was fitted on, as in `fit`.
    title : str, optional
        By default what the model is.
    command : str, optional
        What makes the model again; by default the estimator with its parameters.
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
    ParameterError
        If rows are given, and the model is of another loss and keeps no models without folds, or
        the rows of the fit had an exposure or offset, which the command alone has.
    """
    fitted = fitted_model(model, "a report is")
    check_output(path, force=force)
    source, found = None, None
    if X is not None:
        source = fitted.source(*rows_of(model, X, y, sample_weight), as_fitted=True)
        check_output(path, force=force, inputs=source.paths)
        _check_held_out(fitted, source)
        found = validated(fitted, source)
    values = _page(fitted, found) | {
        "title": title or _title(fitted),
        "rows_were_read": source is not None,
        "command": command or _constructor(fitted),
        "written": datetime.now(UTC),
    }
    style = Path(__file__).with_name("templates").joinpath("style.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    values |= {"style": Markup(style), "style_hash": f"sha256-{digest}"}  # noqa: S704  our own file
    html = _TEMPLATES.get_template("report.html").render(values)
    with replacing(path, force=force) as temporary:
        temporary.write_text(html, encoding="utf-8")


def _title(model: Any) -> str:
    if hasattr(model, "losses"):
        return f"Kernel regression with the loss {model.loss}"
    return f"Kernel {'classification' if hasattr(model, 'rule') else 'ridge regression'}"


def _check_held_out(model: Any, source: Any) -> None:
    """Raise ParameterError if rows of another loss cannot be predicted without their fold."""
    kind = getattr(model, "exposed_by", "")
    if kind and kind not in source.describe():
        raise ParameterError(
            f"the rows of the fit had an {kind}, which cannot be given here; write the page by "
            f"`streamkern fit --{kind} NAME --report FILE.html`, or without rows."
        )
    if model.ridge.unseen is None and model.report.get("loss", "squared") != "squared":
        raise ParameterError(
            f"what the loss {model.report['loss']} is on rows held out is known to the fit alone; "
            f"fit with keep_moments=True and write the page of that model, or without rows."
        )


def _page(model: Any, found: Validation | None) -> dict[str, Any]:
    """Return what the page shows; of a classifier, its ridge gives the scores."""
    report, ridge = model.report, model.ridge  # that of a classifier says how it is calibrated
    is_classifier = hasattr(model, "rule")
    if hasattr(model, "losses"):
        tiles, section = loss_figures.loss_tiles(model), loss_figures.loss_section(model, found)
    elif is_classifier:
        tiles, section = _class_tiles(found), _class_section(found)
    else:
        tiles, section = _target_tiles(ridge, found), _target_section(ridge, found)
    took = seconds(report["seconds"]["total"])
    tiles.append(("Time of the fit", took, f"{number(report['rows_per_second'], 3)} rows/s"))
    peak, planned = report["peak_worker_bytes"], report["projected_worker_bytes"]
    tiles.append(("Memory of a process", in_words(peak), f"{in_words(planned)} were projected"))
    return {
        "lead": _lead(report),
        "note": report.get("note"),
        "is_classifier": is_classifier,
        "loss": report.get("loss", "squared"),
        "of_sample": found is not None and found.of_sample is not None,
        "by_fold": found is not None and found.by_fold,
        "n_held_out": "" if found is None else counted(found.n_rows, "row"),
        "tiles": tiles,
        "fitted": _fitted_rows(ridge, report),
        "recipe": ridge.columns.recipe.in_words() if ridge.columns.recipe else [],
        **section,
        "inputs": _input_figures(model, found),
        "maps": [] if is_classifier else prediction_figures.field_maps(ridge),
        "choices": _choices(ridge),
        "search": choice_figures.search_figures(report),
        "tried": tables(report).get("tuning"),
        "costs": report_rows.pass_rows(report),
        "versions": [*((each, version(each)) for each in LIBRARIES), ("processor", processor())],
        "version": __version__,
    }


def _constructor(model: Any) -> str:
    """Return the estimator of a model with the parameters that are not the usual ones."""
    given = model.estimator_parameters()
    usual = getattr(streamkern, model.estimator)().get_params(deep=False)
    named = [f"{each}={given[each]!r}" for each in given if repr(given[each]) != repr(usual[each])]
    return f"{model.estimator}({', '.join(named)})"


def _lead(report: FitReport) -> str:
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


def _fitted_rows(model: FittedRidge, report: FitReport) -> list[report_rows.Row]:
    loss = report.get("loss", "squared")
    known = np.isfinite(np.atleast_1d(np.asarray(report["noise"], dtype=float))).all()
    return [
        *([("loss", loss)] * (loss != "squared")),
        *report_rows.fit_rows(report, number),
        ("feature map", f"{report['feature_map']}, seed {model.parameters.random_state}"),
        ("data", report_rows.data_words(report["data"])),
        *(
            [("standard deviation of the noise", number(report["noise"]))]
            if known and loss == "squared"
            else []
        ),
        ("precision floor of alpha", number(report["precision_floor"])),
    ]


def _target_tiles(model: FittedRidge, found: Validation | None) -> list[tuple[str, str, str]]:
    """Return an error, on rows held out if that is known, and more where rows were held out."""
    what, values = "RMSE on rows held out", model.report["cv_rmse"]
    if found is not None and (values is None or not found.by_fold):
        values = found.rmse.tolist()
    if values is None:
        what, values = "RMSE on the rows fitted", model.report["train_rmse"]
    tiles = [(what, number(values), "in units of y")]
    if model.equations is not None:
        spread = model.target_spread[1].tolist()
        tiles[0] = (what, number(values), f"by always saying the mean: {number(spread)}")
    if found is not None:
        tiles.append(("Explained of y (R²)", percent(float(found.r2.mean())), "on rows held out"))
    return tiles


def _target_section(model: FittedRidge, found: Validation | None) -> dict[str, Any]:
    if found is None:
        return {"held_out": [], "intervals": [], "errors": []}
    names = input_effects.shown_targets(model)
    # Rows whose own model has as many degrees of freedom as rows have no deviation.
    known, intervals = found.standardized[np.isfinite(found.standardized).all(axis=1)], []
    if np.isfinite(model.normal_equations.noise_variance).all() and len(known):
        intervals = [prediction_figures.interval_figure(known, names)]
        intervals.append(prediction_figures.normality_figure(known, names))
    errors = zip(names[:_MOST_ROWS], found.rmse, found.r2, strict=False)
    return {
        "intervals": intervals,
        "held_out": [
            each
            for j, name in enumerate(names[:MOST_TARGETS])
            for each in prediction_figures.pairs_figures(found.measure, found.n_rows, j, name)
        ],
        "errors": [
            (name, f"rmse {number(float(rmse))}, R² {percent(float(r2))}")
            for name, rmse, r2 in errors
        ],
    }


def _class_tiles(found: Validation | None) -> list[tuple[str, str, str]]:
    if found is None:
        return []
    errors = found.measure
    most = percent(errors.confusion.sum(axis=1).max() / errors.weight)
    auc = "–" if errors.auc is None else f"{errors.auc:.3f}"
    return [
        ("Accuracy, held out", percent(errors.accuracy), f"{most} by always saying the commonest"),
        ("Area under the curve", auc, "1 is best, 0.5 chance"),
        ("Calibration error", percent(errors.calibration_error, 2), "of probabilities"),
    ]


def _class_section(found: Validation | None) -> dict[str, Any]:
    if found is None:
        return {"held_out": [], "errors": []}
    return {
        "held_out": class_figures.class_figures(found.measure),
        "errors": found.measure.rows(number),
        "confusion": class_figures.confusion_table(found.measure),
    }


def _input_figures(model: Any, found: Validation | None) -> list[Figure]:
    """Return pictures of which columns matter, and how the first of them do."""
    weights = input_effects.weights_figure(model.ridge)
    figures = [] if weights is None else [weights]
    if found is None:
        return figures
    sample, falls = held_out_importance(model, found.predictor, found.sample)
    rows = f"{counted(len(sample.X), 'row')}{' held out' if found.by_fold else ' of the fit'}"
    figures.append(input_effects.importance_figure(model, falls, rows))
    columns = [inputs for _, inputs in model.columns.table]
    most = np.argsort(-falls, kind="stable")[: input_effects.MOST_CURVES].tolist()
    return figures + [
        input_effects.dependence_figure(model, sample, columns[j]) for j in most if falls[j] > 0
    ]


def _choices(model: FittedRidge) -> list[Figure]:
    """Return curves of what the penalty and the number of features were chosen from."""
    penalty = choice_figures.penalty_curve(model)
    names, figures = input_effects.shown_targets(model), []
    if penalty:
        figures.append(choice_figures.penalty_figure(penalty, names))
    for find in (choice_figures.components_curve, choice_figures.sparsity_curve):
        if curve := find(model):
            is_sparse = find is choice_figures.sparsity_curve
            figures.append(choice_figures.sizes_figure(curve, is_sparse=is_sparse))
    return figures
