"""Options that several commands share, and what is told by whether they are given."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from streamkern.errors import ParameterError
from streamkern.registry import more_options

if TYPE_CHECKING:
    from streamkern.estimators.problems import Problem

Decorator = Callable[[Any], Any]


def out_option(metavar: str, text: str) -> Decorator:
    return click.option("--out", required=True, metavar=metavar, help=text)


def count_option(name: str, least: int, default: int, text: str) -> Decorator:
    return click.option(name, type=click.IntRange(min=least), default=default, help=text)


def given_options(names: Collection[str]) -> list[click.Parameter]:
    """Return those of the options named that the command line gives a value to."""
    context = click.get_current_context()
    return [
        parameter
        for parameter in context.command.params
        if (name := parameter.name) in names
        and context.get_parameter_source(name or "") is ParameterSource.COMMANDLINE
    ]


def refuse_given(names: Collection[str], why: str) -> None:
    for parameter in given_options(names):
        raise ParameterError(f"{parameter.opts[0]} {why}")


rows_argument = click.argument("data", nargs=-1, required=True, metavar="DATA...")
x_option = click.option("--x", default="X", help="Dataset of inputs.")
weights_option = click.option(
    "--weights",
    metavar="NAME",
    help="Dataset of weights, one a row: a row of weight 2 counts as two, of 0 as none.",
)
data_options = (
    rows_argument,
    x_option,
    click.option("--y", default="y", help="Dataset of targets."),
    weights_option,
)
# Those of extensions, of commands without a model that knows more of the rows, and with one.
_MORE = more_options("rows")
more_row_options = tuple(option for each in _MORE for option in each.OPTIONS)
more_options_with_model = tuple(option for each in _MORE for option in each.WITH_MODEL)
rows_options = (*data_options, *more_row_options)
place_options = (
    click.option("--cluster", metavar="FILE.yaml", help="Start the cluster of this file."),
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Join the cluster at this address; who answers there can run code as you.",
    ),
    click.option("--scheduler-file", metavar="FILE", help="Join the cluster of this file."),
    click.option("--workers", type=click.IntRange(min=1), help="Start so many local workers."),
)
checkpoint_option = click.option(
    "--checkpoint",
    metavar="DIR",
    help="Save sums in this folder as they are made, and go on from there if stopped.",
)
report_option = click.option(
    "--report",
    metavar="FILE.html",
    help="Write what was fitted, how well it does on rows left out, and what it took.",
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Print the plan, and read no rows.")
force_option = click.option("--force", is_flag=True, help="Replace an existing output.")
# Of the commands that read all rows.
job_options = (checkpoint_option, *place_options, dry_run_option, force_option)
model_option = out_option("MODEL.h5", "The model file to write.")
like_option = click.option(
    "--like",
    metavar="M.h5",
    help="Moments or a model, whose map to take: standardisation, kernel and precision.",
)
classify_option = click.option(
    "--classify", is_flag=True, help="y holds labels of classes: text, booleans or whole numbers."
)


def calibration_option(*methods: str, default: str | None = "auto") -> Decorator:
    return click.option(
        "--calibration",
        type=click.Choice(methods),
        default=default,
        show_default=bool(default) or "auto",
        help="How scores of classes become probabilities, by rows left out in turn; auto: by a "
        "spline, or of moments alone by a sigmoid.",
    )


class_options = (
    classify_option,
    click.option(
        "--class-weight",
        type=click.Choice(["balanced"]),
        help="Weigh rows so that all classes weigh the same.",
    ),
    calibration_option("auto", "spline", "sigmoid", "isotonic", "none"),
)


def task_of(options: dict[str, Any]) -> "Problem":
    from streamkern.estimators.classification import Classification
    from streamkern.estimators.problems import Regression

    if options["classify"]:
        refuse_given(("target_range",), "is of numbers, but y holds labels; leave it out.")
        how = options["calibration"]
        calibration = None if how == "none" else how
        return Classification(class_weight=options.get("class_weight"), calibration=calibration)
    refuse_given(
        ("class_weight", "calibration"),
        "is for labels of classes, which y is taken for with --classify; leave it out for numbers.",
    )
    return Regression()
