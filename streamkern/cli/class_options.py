"""Options of commands that classify, and what they say of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from streamkern.errors import ParameterError
from streamkern.errors.formatting import listed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamkern.models.boosting_model import BoostedModel
    from streamkern.models.classifier_model import ClassifierModel
    from streamkern.models.model_files import ModelFile
    from streamkern.models.ridge_model import RidgeModel
    from streamkern.solve import NormalEquations

# Classes whose confusions are printed.
_SHOWN = 12
_NAMED = 5


classify_option = click.option(
    "--classify",
    is_flag=True,
    help="y holds labels of classes: text, booleans or whole numbers.",
)


def class_options(command: Any) -> Any:
    """Give a command the choice to take y for labels of classes, and how."""
    class_weight = click.option(
        "--class-weight",
        type=click.Choice(["balanced"]),
        help="Weigh rows so that all classes weigh the same.",
    )
    calibration = calibration_option("sigmoid", "isotonic", "none")
    for option in (calibration, class_weight, classify_option):
        command = option(command)
    return command


def growing_class_options(command: Any) -> Any:
    """Give a command the choice to take y for labels of classes, where rows are read but once."""
    for option in (calibration_option("sigmoid", "none"), classify_option):
        command = option(command)
    return command


def calibration_option(*methods: str, default: str | None = "sigmoid") -> Callable[[Any], Any]:
    """Give a command the choice of how to calibrate."""
    return click.option(
        "--calibration",
        type=click.Choice(methods),
        default=default,
        show_default="sigmoid",
        help="How scores of classes become probabilities, by rows left out in turn.",
    )


def class_choices(options: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a classifier that the options describe, none of a regression.

    Raises
    ------
    ParameterError
        If they are given for a regression.
    """
    if options.get("classify"):
        how = options["calibration"]
        return {
            "class_weight": options.get("class_weight"),
            "calibration": None if how == "none" else how,
        }
    context = click.get_current_context()
    for name in ("class_weight", "calibration"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise ParameterError(
                f"--{name.replace('_', '-')} is for labels of classes, which y is taken for with "
                f"--classify; leave it out for numbers."
            )
    return {}


def regression_of(model: Any) -> RidgeModel:
    """Return the ridge regression whose options are planned with, also of a classifier."""
    from streamkern.models.ridge_model import RidgeModel

    return model if isinstance(model, RidgeModel) else model._ridge()


def classifier_of(file: ModelFile, path: str | Path) -> ClassifierModel | None:
    """Return the classifier of a model file, or None if it holds a regression."""
    if "classifier" not in file.card:
        return None
    from streamkern.models.classifier_model import ClassifierModel, restored_classifier

    return restored_classifier(ClassifierModel, file, path)


class Opened(NamedTuple):
    """A model of any kind, as commands use it.

    Parameters
    ----------
    predictor : Predictor or Ensemble
    classifier : ClassifierModel or BoostedModel, optional
        None for a regression.
    equations : NormalEquations, optional
    card : dict
        Of its file.
    """

    predictor: Any
    classifier: ClassifierModel | BoostedModel | None
    equations: NormalEquations | None
    card: dict[str, Any]


def opened_model(path: str | Path, *, with_equations: bool = False) -> Opened:
    """Read a model of any kind, its normal equations only if they are wanted."""
    from streamkern.models.ensemble_files import read_ensemble
    from streamkern.models.model_files import read_model
    from streamkern.storage import holds_ensemble

    if holds_ensemble(path):
        from streamkern.models.boosting_model import BoostedModel, restored_ensemble
        from streamkern.models.ridge_model import RidgeModel

        stored = read_ensemble(path)
        boosted = restored_ensemble(BoostedModel, RidgeModel, stored, path)
        return Opened(boosted.ensemble_, boosted, None, stored.card)
    file = read_model(path, with_equations=with_equations)
    return Opened(file.predictor, classifier_of(file, path), file.equations, file.card)


def class_rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what a person wants to know of the classes of a model or of moments."""
    if "classes" not in report:
        return []
    values, factors = report["classes"]["values"], report["class_factors"]
    rows = [("classes", f"{len(values):,}: {listed(values, _NAMED)}")]
    if report.get("class_counts") and factors is None:
        rows.append(
            ("rows of each", listed((f"{n:,.10g}" for n in report["class_counts"]), _NAMED))
        )
    if factors is not None:
        rows.append(("weights of classes", listed((f"{factor:.4g}" for factor in factors), _NAMED)))
    if "calibration" in report:
        rows.append(("calibration", report["calibration"]))
    return rows


def error_rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the errors of a classifier, as pairs of a name and a value."""
    named = {
        "accuracy": "accuracy",
        "balanced_accuracy": "balanced accuracy",
        "log_loss": "log loss",
        "brier_score": "Brier score",
        "expected_calibration_error": "expected calibration error",
    }
    rows = [(name, f"{found[key]:.6g}") for key, name in named.items()]
    if found["auc"] is not None:
        within = f"{found['auc']:.6g}, within {found['auc_error']:.1g}"
        rows.append(("area under the curve", within))
    return rows


def confusion_rows(found: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the table of confusions, of the first classes."""
    names = [str(value) for value in found["classes"][:_SHOWN]]
    counts = [[f"{count:,.10g}" for count in row[:_SHOWN]] for row in found["confusion_matrix"]]
    return ["class", *names], [[name, *row] for name, row in zip(names, counts, strict=False)]
