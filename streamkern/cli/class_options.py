"""Options of commands that classify, and models of any kind as commands read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from streamkern.cli.common_options import given_options
from streamkern.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamkern.models.boosting_model import BoostedModel
    from streamkern.models.classifier_model import ClassifierModel
    from streamkern.models.model_files import ModelFile
    from streamkern.models.ridge_model import RidgeModel
    from streamkern.solve import NormalEquations

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
    """Return the parameters of a classifier that the options describe, none of a regression."""
    if options.get("classify"):
        how = options["calibration"]
        return {
            "class_weight": options.get("class_weight"),
            "calibration": None if how == "none" else how,
        }
    for parameter in given_options(("class_weight", "calibration")):
        raise ParameterError(
            f"{parameter.opts[0]} is for labels of classes, which y is taken for with --classify; "
            f"leave it out for numbers."
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
    """A model of any kind, with a classifier where it is one, and the card of its file."""

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
