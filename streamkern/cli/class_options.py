"""Options of commands that classify."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from streamkern.cli.common_options import given_options
from streamkern.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

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
