"""Options of commands: those that several share, and those made from the table of parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from streamkern.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from dataclasses import Field

    from streamkern.kernels import Kernel
    from streamkern.models.tasks import Task
    from streamkern.parameters.parameters import Option, Parameters

    Decorator = Callable[[Any], Any]

# Parameters of a map, of the moments that it makes, and of what is made of moments.
OF_MAPS = ("kernel", "feature_map", "paired", "standardize", "precision", "random_state")
OF_MOMENTS = (*OF_MAPS, "n_components", "metric", "n_folds", "fold_by", "on_bad_rows")
OF_MODELS = (
    *("n_components", "alpha", "alphas", "per_target", "one_standard_error", "sparse"),
    *("sparse_method", "fit_intercept"),
)
# What moments or a model that others are to be like decide.
OF_LIKE = (*OF_MAPS, "length_scale", "n_components", "metric")


def out_option(metavar: str, text: str) -> Decorator:
    return click.option("--out", required=True, metavar=metavar, help=text)


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
x_option = click.option("--x", default="X", show_default=True, help="Dataset of inputs.")
weights_option = click.option(
    "--weights",
    metavar="NAME",
    help="Dataset of weights, one a row: a row of weight 2 counts as two, of 0 as none.",
)
data_options = (
    rows_argument,
    x_option,
    click.option("--y", default="y", show_default=True, help="Dataset of targets."),
    weights_option,
)
bad_rows_option = click.option(
    "--on-bad-rows",
    type=click.Choice(["error", "skip"]),
    default="error",
    show_default=True,
    help="What to do about rows with NaN or infinite values.",
)
place_options = (
    click.option("--cluster", metavar="FILE.yaml", help="Start the cluster of this file."),
    click.option(
        "--trust-cluster-file",
        is_flag=True,
        help="Take every option of the file of --cluster: who chose a host, image, address or"
        " program in it can run code as you.",
    ),
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
folders_option = click.option(
    "--folders",
    is_flag=True,
    help="Say in models and reports in which folders the files are, not their names alone.",
)
report_option = click.option(
    "--report",
    metavar="FILE.html",
    help="Write what was fitted, how well it does on rows left out, and what it took.",
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Print the plan, and read no rows.")
force_option = click.option("--force", is_flag=True, help="Replace an existing output.")
# Of the commands that read all rows.
job_options = (checkpoint_option, *place_options, folders_option, dry_run_option, force_option)
model_option = out_option("MODEL.h5", "The model file to write.")
like_option = click.option(
    "--like",
    metavar="M.h5",
    help="Moments or a model, whose map to take: standardisation, kernel and precision.",
)
classify_option = click.option(
    "--classify", is_flag=True, help="y holds labels of classes: text, booleans or whole numbers."
)


def calibration_option(*methods: str, default: str | None = "sigmoid") -> Decorator:
    return click.option(
        "--calibration",
        type=click.Choice(methods),
        default=default,
        show_default="sigmoid",
        help="How scores of classes become probabilities, by rows left out in turn.",
    )


class_options = (
    classify_option,
    click.option(
        "--class-weight",
        type=click.Choice(["balanced"]),
        help="Weigh rows so that all classes weigh the same.",
    ),
    calibration_option("sigmoid", "isotonic", "none"),
)


def parameter_options(*names: str, **changes: dict[str, Any]) -> list[Decorator]:
    """Return the options of all parameters, or of those named, as the table has them.

    `changes` are other arguments of `click.option`, by the names of the parameters.
    """
    from streamkern.parameters.parameters import OPTIONS

    made = []
    for field in OPTIONS:
        if not names or field.name in names:
            made.append(_parameter_option(field, changes.get(field.name, {})))
            if field.name == "kernel":
                made.append(_length_scale_option)
    return made


_length_scale_option = click.option(
    "--length-scale",
    default="median",
    show_default=True,
    metavar="median|FLOAT[,FLOAT...]",
    help="In units of the standardised inputs; several: one per input.  Of all kernels for which "
    "--kernel says none.",
)


def _parameter_option(field: Field[Any], changes: dict[str, Any]) -> Decorator:
    option: Option = field.metadata["option"]
    default = getattr(field.default, "name", field.default)  # of a kernel its name
    named: dict[str, Any] = {"help": option.help}
    if isinstance(default, bool):
        named["is_flag"] = True
        if default:
            named["callback"] = lambda _context, _option, flag: not flag
    else:
        named |= {"default": default, "show_default": default is not None}
        if option.choices:
            named["type"] = click.Choice([*option.choices, *filter(None, [option.form])])
        elif option.form:
            named |= {"type": str, "metavar": option.form}
        elif option.least is not None:
            named["type"] = click.IntRange(min=option.least)
    named |= changes
    if option.listed:
        named["help"] += f": {option.listed()}"
    return click.option(_flag_of(field), field.name, **named)


def _flag_of(field: Field[Any]) -> str:
    option: Option = field.metadata["option"]
    return f"--{option.name or field.name.replace('_', '-')}"


def values_of(options: dict[str, Any]) -> dict[str, Any]:
    from streamkern.parameters.parameters import OPTIONS

    return {field.name: _value(field, options) for field in OPTIONS if field.name in options}


def parameters_of(options: dict[str, Any]) -> Parameters:
    from streamkern.parameters.parameters import Parameters

    return Parameters(**values_of(options))


def _value(field: Field[Any], options: dict[str, Any]) -> Any:
    """Return a parameter that may be given as text: a kernel, numbers, a whole number, words."""
    given, option = options[field.name], field.metadata["option"]
    if field.name == "kernel":
        return kernel_named(given, options["length_scale"])
    words = (option.form or "").split("|")
    if not isinstance(given, str) or given in words or option.choices:
        return given
    if words[-1] == "FLOAT[,FLOAT...]":
        others = "".join(f"{word}, " for word in words[:-1])
        numbers = _numbers(given, _flag_of(field), others and f"{others}or ")
        return numbers[0] if others and len(numbers) == 1 else numbers
    if "auto" not in words:
        return given
    try:
        return int(given)
    except ValueError as error:
        raise ParameterError(
            f"{_flag_of(field)} must be a whole number or auto, not {given!r}; give one of these."
        ) from error


def _numbers(text: str, option: str, others: str = "") -> list[float]:
    """Return the numbers that an option names, in place of which it takes others."""
    try:
        return [float(number) for number in text.split(",")]
    except ValueError as error:
        raise ParameterError(
            f"{option} must be {others}numbers with commas between, not {text!r}; give "
            f"{'one of these' if others else 'some'}."
        ) from error


def kernel_named(text: str, length_scale: str) -> Kernel:
    from streamkern.kernels import length_scale_of, parsed_kernel

    kernel = parsed_kernel(text, "median")
    if length_scale == "median":
        return kernel
    if length_scale_of(kernel) != "median":
        said = "no length scale" if length_scale_of(kernel) is None else "its own length scale"
        raise ParameterError(f"the {text} kernel has {said}; leave --length-scale out.")
    numbers = tuple(_numbers(length_scale, "--length-scale", "'median' or "))
    return parsed_kernel(text, numbers[0] if len(numbers) == 1 else numbers)


def task_of(options: dict[str, Any]) -> Task:
    from streamkern.models.classification import Classification
    from streamkern.models.tasks import Regression

    task: Task = Regression()
    if options["classify"]:
        how = options["calibration"]
        calibration = None if how == "none" else how
        task = Classification(class_weight=options.get("class_weight"), calibration=calibration)
    else:
        refuse_given(
            ("class_weight", "calibration"),
            "is for labels of classes, which y is taken for with --classify; leave it out for "
            "numbers.",
        )
    return task
