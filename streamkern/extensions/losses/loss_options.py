"""The option of losses, `fit --loss`."""

from typing import TYPE_CHECKING, Any

import click

from streamkern.cli.options import refuse_given
from streamkern.errors import ParameterError
from streamkern.extensions.losses import FORM

if TYPE_CHECKING:
    from streamkern.extensions.losses.fitted_loss import LossRegression

OPTIONS = {
    "fit": (
        click.option(
            "--loss",
            metavar=FORM,
            default="squared",
            help="What errors cost: of shares, counts, amounts or sums of these, of targets with "
            "outliers, or of quantiles, by some passes over rows that are weighted anew.",
        ),
    ),
    "predict": (),
}


def problem(options: dict[str, Any], moments: Any) -> "LossRegression | None":  # noqa: ARG001
    """Return the regression of the loss that is asked for, None of squares and of classes."""
    if options.get("loss", "squared") == "squared" or options.get("classify"):
        return None
    refuse_given(("report",), "is a page of least squares; leave it out, and use `evaluate`.")
    from streamkern.extensions.losses.fitted_loss import FittedLoss, LossRegression
    from streamkern.extensions.losses.losses import are_alike, losses_of

    losses, start = losses_of(options["loss"]), None
    if options["like"]:
        from streamkern.estimators.loading import load_fitted

        start = load_fitted(options["like"], with_equations=False)
        if not isinstance(start, FittedLoss) or not are_alike(start.losses, losses):
            raise ParameterError(
                f"a fit of the loss {options['loss']} begins only at a model of the same loss; "
                f"give one for --like, or leave it out."
            )
    return LossRegression(losses, start)


def check_predictions(options: dict[str, Any], model: Any) -> None:
    """Raise ParameterError if what is asked for is not of models of this kind."""
    if hasattr(model, "losses"):
        if options["std"]:
            model.normal_equations  # noqa: B018  or an error
        if options["interval"] is not None:
            model.interval(options["interval"])
