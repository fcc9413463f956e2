"""Options that several commands share, and what is told by whether they are given."""

import math
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from streamkern.errors import ParameterError
from streamkern.registry import more_options

if TYPE_CHECKING:
    from streamkern.estimators.problems import Problem

Decorator = Callable[[Any], Any]


def percent(text: str) -> float:
    """Return the share that is given in per cent, as 5 or 5%: a type of options."""
    share = math.nan
    with suppress(ValueError):
        share = float(text.removesuffix("%")) / 100
    if not 0 <= share < math.inf:
        raise click.BadParameter(f"{text} is no share in per cent; give 5%.")
    return share


def options_of_extensions(command: str) -> list[Decorator]:
    """Return the options of extensions for a command, or a group of commands."""
    return [option for each in more_options(command) for option in each.OPTIONS[command]]


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
rows_options = (*data_options, *options_of_extensions("rows"))
place_options = (
    *options_of_extensions("place"),
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


def problem_of(options: dict[str, Any], moments: Any = None) -> "Problem":
    """Return the problem that options, or moments that are to be solved, are of."""
    from streamkern.estimators.problems import Regression

    command = click.get_current_context().command.name or ""
    asking = [each for each in more_options(command) if hasattr(each, "problem")]
    asked = (each.problem(options, moments) for each in asking)
    return next(filter(None, asked), Regression())
