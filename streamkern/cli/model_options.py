"""Options of the commands that make models, and what follows from them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from streamkern.cli.class_options import class_choices
from streamkern.cli.common_options import given_options
from streamkern.errors import ParameterError
from streamkern.features import FAMILIES
from streamkern.kernels import KERNELS, Kernel, length_scale_of, parsed_kernel

if TYPE_CHECKING:
    from streamkern.cli.common_options import Say
    from streamkern.cli.compute_place import Place
    from streamkern.models.tasks import Task
    from streamkern.parameters.fit_options import FitOptions
    from streamkern.parameters.parameters import Parameters
    from streamkern.parameters.plan import Plan
    from streamkern.sources.hdf5 import HDF5Source

# What moments or a model that others are to be like decide.
_OF_LIKE = (
    *("kernel", "length_scale", "feature_map", "phase", "seed", "components", "precision"),
    *("metric", "no_standardize"),
)


def kernel_option(command: Any, *, several: bool = False) -> Any:
    """Give a command the choice of a kernel, or of several, and of its length scale."""
    names = ", ".join(KERNELS)
    form = (
        f"{names}; with parameters, as matern(nu=2); sums and products, of columns where there are "
        f"brackets: gaussian[0-2]*periodic(period=7)[3]+0.5*laplacian."
    )
    one: dict[str, Any] = {"metavar": "KERNEL", "help": f"How similar two rows are: {form}"}
    some: dict[str, Any] = {
        "metavar": "KERNEL[,KERNEL...]|auto",
        "help": f"Kernels to choose among, or auto for a short list: {form}",
    }
    for option in (
        click.option(
            "--length-scale",
            default="median",
            show_default=True,
            metavar="median|FLOAT[,FLOAT...]",
            help="In units of the standardised inputs; several: one per input.  Of all kernels for "
            "which --kernel says none.",
        ),
        click.option(
            "--kernel", default="gaussian", show_default=True, **(some if several else one)
        ),
    ):
        command = option(command)
    return command


def kernel_options(command: Any, *, several: bool = False) -> Any:
    """Give a command the options that make a kernel, or several, and its map."""
    each = "; ".join(f"{name}: {family.help}" for name, family in FAMILIES.items())
    one: dict[str, Any] = {
        "type": click.Choice([*FAMILIES, "auto"]),
        "help": f"How features are made: {each}; auto: what `tune` chooses.",
    }
    some: dict[str, Any] = {
        "metavar": "NAME[,NAME...]|auto",
        "help": f"Maps to choose among: {each}; auto: a short list that suits the inputs.",
    }
    for option in (
        click.option(
            "--seed",
            type=click.IntRange(min=0),
            default=0,
            show_default=True,
            help="Seed of the map, and of the sample behind the median.",
        ),
        click.option("--phase", is_flag=True, help="Cosines with random phases, instead of pairs."),
        click.option(
            "--map",
            "feature_map",
            default="orthogonal",
            show_default=True,
            **(some if several else one),
        ),
        partial(kernel_option, several=several),
    ):
        command = option(command)
    return command


def kernel_named(text: str, length_scale: str) -> Kernel:
    """Return the kernel that two options describe."""
    kernel = parsed_kernel(text, "median")
    if length_scale == "median":
        return kernel
    if length_scale_of(kernel) != "median":
        said = "no length scale" if length_scale_of(kernel) is None else "its own length scale"
        raise ParameterError(f"the {text} kernel has {said}; leave --length-scale out.")
    try:
        numbers = tuple(float(text) for text in length_scale.split(","))
    except ValueError as error:
        raise ParameterError(
            f"--length-scale must be 'median' or numbers with commas between, not "
            f"{length_scale!r}; give one of these."
        ) from error
    return parsed_kernel(text, numbers[0] if len(numbers) == 1 else numbers)


def folds_options(command: Any) -> Any:
    """Give a command the options that say how rows are dealt to folds."""
    for option in (
        click.option(
            "--fold-by",
            type=click.Choice(["auto", "shards", "rows", "blocks"]),
            default="auto",
            show_default=True,
            help="What is left out together: shards, rows spread evenly, or contiguous blocks.",
        ),
        click.option(
            "--folds", type=int, default=5, show_default=True, help="K of cross-validation."
        ),
    ):
        command = option(command)
    return command


def alpha_options(command: Any) -> Any:
    """Give a command the options that say how the penalty is chosen from moments."""
    for option in (
        click.option(
            "--one-standard-error",
            is_flag=True,
            help="Take the largest alpha within one standard error of the best.",
        ),
        click.option(
            "--alphas",
            metavar="FLOAT[,FLOAT...]",
            help="What --alpha cv, gcv, evidence or loo choose from; by default 30 penalties that "
            "follow from the features.",
        ),
        click.option("--per-target", is_flag=True, help="Choose one alpha for every target."),
        click.option(
            "--alpha",
            default="cv",
            show_default=True,
            metavar="cv|gcv|evidence|loo|FLOAT[,FLOAT...]",
            help="The penalty, in units of the sum of squares; several: choose among them.  loo "
            "leaves out every row in turn, which takes one more reading.",
        ),
    ):
        command = option(command)
    return command


def penalty_options(command: Any) -> Any:
    """Give a command the options that say how the penalty is chosen, folds included."""
    return alpha_options(folds_options(command))


def penalty_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a model that the options of `penalty_options` describe."""
    return {**alpha_of(options), **folds_of(options)}


def folds_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a model that the options of `folds_options` describe."""
    return {"n_folds": options["folds"], "fold_by": options["fold_by"]}


def alpha_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a model that the options of `alpha_options` describe."""
    alpha, alphas = options["alpha"], options["alphas"]
    if alpha not in ("cv", "gcv", "evidence", "loo"):
        numbers = _numbers("--alpha", alpha, "cv, gcv, evidence, loo, or ")
        alpha = numbers[0] if len(numbers) == 1 else numbers
    return {
        "alpha": alpha,
        "alphas": None if alphas is None else _numbers("--alphas", alphas),
        "per_target": options["per_target"],
        "one_standard_error": options["one_standard_error"],
    }


def _numbers(option: str, text: str, others: str = "") -> list[float]:
    """Return the numbers that an option names, beside which it may be of some other words."""
    try:
        return [float(number) for number in text.split(",")]
    except ValueError as error:
        raise ParameterError(
            f"{option} must be {others}numbers with commas between, not {text!r}; give "
            f"{'one of these' if others else 'some'}."
        ) from error


def sparse_options(command: Any) -> Any:
    """Give a command the options of models of few features."""
    for option in (
        click.option(
            "--sparse-method",
            type=click.Choice(["forward", "omp", "lasso"]),
            default="forward",
            show_default=True,
            help="Forward selection, orthogonal matching pursuit, or the path of the lasso.",
        ),
        click.option(
            "--sparse",
            metavar="K|auto",
            help="Keep the best K components; auto: the fewest that are good enough.",
        ),
    ):
        command = option(command)
    return command


def sparse_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a model that the options of `sparse_options` describe."""
    sparse = options["sparse"]
    return {
        "sparse": None if sparse is None else number_or_auto("--sparse", sparse),
        "sparse_method": options["sparse_method"],
    }


def components_of(text: str) -> int | str:
    """Return the number of features that --components names, or 'auto'."""
    return number_or_auto("--components", text)


def number_or_auto(option: str, text: str) -> int | str:
    """Return the whole number that an option names, or 'auto'."""
    try:
        return text if text == "auto" else int(text)
    except ValueError as error:
        raise ParameterError(
            f"{option} must be a whole number or auto, not {text!r}; give one of these."
        ) from error


def like_option(command: Any) -> Any:
    """Give a command the choice of taking its map from a file."""
    return click.option(
        "--like",
        metavar="M.h5",
        help="Moments or a model, whose map to take: standardisation, kernel and precision.",
    )(command)


def feature_options(command: Any, *, several: bool = False) -> Any:
    """Give a command the options of a map, its precision and the units of its inputs."""
    for option in (
        click.option("--no-standardize", is_flag=True, help="Take the inputs in their own units."),
        click.option(
            "--precision",
            type=click.Choice(["single", "double"]),
            default="single",
            show_default=True,
            help="Of features and products, which are summed in double.",
        ),
        partial(kernel_options, several=several),
    ):
        command = option(command)
    return command


def map_options(command: Any, *, several: bool = False) -> Any:
    """Give a command all options that make features of rows, with one kernel or several."""
    for option in (
        click.option(
            "--metric",
            metavar="learn[:ROUNDS]|diagonal[:ROUNDS]",
            help="Learn which directions of the inputs matter, or one weight for each input.",
        ),
        click.option(
            "--components",
            default="2048",
            show_default=True,
            metavar="D|auto",
            help="D, counting all outputs; auto: the smallest that is good enough, of up to 4,096.",
        ),
        partial(feature_options, several=several),
    ):
        command = option(command)
    return command


def task_of(options: dict[str, Any], *, classify: bool | None = None) -> Task:
    """Return the task that the options of `class_options` describe."""
    from streamkern.models.classification import Classification
    from streamkern.models.tasks import Regression

    given = options if classify is None else options | {"classify": classify}
    chosen = class_choices(given)
    task: Task = Classification(**chosen) if chosen else Regression()
    task.check()
    return task


def parameters_of(options: dict[str, Any], **penalty: Any) -> Parameters:
    """Return the parameters that the options of `map_options` describe, and others."""
    from streamkern.parameters.parameters import Parameters

    return Parameters(
        kernel_named(options["kernel"], options["length_scale"]),
        n_components=components_of(options["components"]),
        feature_map=options["feature_map"],
        paired=not options["phase"],
        metric=options["metric"],
        standardize=not options["no_standardize"],
        precision=options["precision"],
        on_bad_rows=options["on_bad_rows"],
        random_state=options["seed"],
        **penalty,
    )


def check_like(like: str | None, *others: str) -> None:
    """Raise ParameterError if options are given that --like decides."""
    for parameter in given_options((*_OF_LIKE, *others)) if like is not None else ():
        raise ParameterError(
            f"{parameter.opts[0]} is decided by --like {like}; leave out one of the two."
        )


def prepared(
    say: Say, options: dict[str, Any], checked: FitOptions, **how: Any
) -> tuple[HDF5Source, Place, Plan] | None:
    """Return the rows of a job, its place and its plan; `how` is as of `FitOptions.planned`.

    Returns None after a dry run, with the plan printed.
    """
    from streamkern.cli.compute_place import Place
    from streamkern.cli.input_rows import source_of
    from streamkern.cli.output_paths import check_outputs
    from streamkern.parameters.fit_options import check_folds
    from streamkern.parameters.plan import planned

    source = source_of(options, labels=options.get("classify", False))
    if not options.get("like"):
        check_folds(checked, source)
    place = Place.of(options)
    plan = planned(checked, source, n_workers=place.workers, **how)
    if options["dry_run"]:
        if place.is_elsewhere:
            raise ParameterError(
                "--dry-run plans for this machine; leave out either it, or the cluster."
            )
        say.table("Plan", plan.rows())
        plan.check()
        say.result(plan.as_dict())
        return None
    check_outputs(options, source)
    if place.workers or not place.is_named:
        plan.check()
    return source, place, plan
