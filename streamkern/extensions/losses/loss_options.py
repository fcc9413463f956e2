"""The option of losses, `fit --loss`."""

from typing import TYPE_CHECKING, Any

import click

from streamkern.cli.options import refuse_given
from streamkern.extensions.losses import FORM, KINDS, exposed_by

if TYPE_CHECKING:
    from streamkern.extensions.losses.fitted_loss import LossRegression

_BESIDE = (
    click.option(
        "--exposure", metavar="NAME", help="What holds how much each row stands for, of rates."
    ),
    click.option(
        "--offset", metavar="NAME", help="What is added to the linear function of each row."
    ),
)
OPTIONS = {
    "fit": (
        click.option(
            "--loss",
            metavar=FORM,
            default="squared",
            help="What errors cost: of shares, counts, amounts or sums of these, of targets with "
            "outliers, or of quantiles, by some passes over rows that are weighted anew.",
        ),
        *_BESIDE,
    ),
    "evaluate": _BESIDE,
    "predict": (),
}


def problem(options: dict[str, Any], moments: Any) -> "LossRegression | None":  # noqa: ARG001
    """Return the regression of the loss that is asked for, None of squares and of classes.

    A column of exposures or offsets is noted in the options to drop: it is no input.
    """
    if options.get("loss", "squared") == "squared" or options.get("classify"):
        refuse_given(
            KINDS, "is for counts, amounts and quantiles, by --loss; name one, or leave it out."
        )
        return None
    from streamkern.extensions.losses.fitted_loss import LossRegression
    from streamkern.extensions.losses.loss_names import losses_of

    exposed = exposed_by(options)
    options["drop"] = (exposed or ())[1:]
    return LossRegression(losses_of(options["loss"]), exposed=exposed)


def rows(options: dict[str, Any], model: Any, source: Any) -> Any:
    """Return rows to evaluate as the options and the model have them."""
    if hasattr(model, "exposed"):
        return model.exposed(source, exposed_by(options))
    refuse_given(KINDS, "is for models of counts, amounts and quantiles; leave it out.")
    return source


def check_predictions(options: dict[str, Any], model: Any) -> None:
    """Raise ParameterError if what is asked for is not of models of this kind."""
    if options["std"] and hasattr(model, "losses"):
        model.normal_equations  # noqa: B018  or an error
