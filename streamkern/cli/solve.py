"""`streamkern solve`."""

from typing import Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Console, command
from streamkern.cli.job import check_outputs, place_of
from streamkern.cli.parameter_options import OF_MODELS, parameter_options, values_of
from streamkern.cli.saving import save_model, show_model
from streamkern.registry import more_options


@command(
    click.argument("moments", metavar="M.h5"),
    shared.model_option,
    *parameter_options(
        *OF_MODELS,
        n_components={
            "default": None,
            "help": "The first D features; auto: the smallest number that is good enough; by "
            "default all.",
        },
    ),
    shared.calibration_option("auto", "sigmoid", "none", default=None),
    click.option(
        "--compact",
        is_flag=True,
        help="Leave the normal equations out of MODEL.h5, and with them standard deviations.",
    ),
    *shared.place_options,
    shared.force_option,
    *(option for each in more_options("solve") for option in each.OPTIONS),
    examples=("streamkern solve both.h5 --out model.h5 --alpha gcv",),
)
def solve(console: Console, **options: Any) -> None:
    """Make the model that `fit` would make of the rows that the moments M.h5 are of.

    Of moments with classes that is a classifier, calibrated by the scores of every fold that the
    other folds give, as the moments tell them.
    """
    from streamkern.errors import ParameterError
    from streamkern.models.data_moments import load_moments
    from streamkern.parameters.parameters import Parameters

    chosen = values_of(options)
    check_outputs(options)
    moments = load_moments(options["moments"])
    D = moments.feature_map.n_components
    chosen["n_components"] = chosen["n_components"] or D
    if moments.options.is_identity and chosen["n_components"] != D:
        raise ParameterError(
            f"the identity map has {D:,} features and no smaller part; leave --components out."
        )
    is_classifier = moments.classes is not None
    if is_classifier and options["calibration"] is None:
        options["calibration"] = "auto" if moments.n_folds > 1 else "none"
        if moments.n_folds == 1:
            console.note("there are no folds to calibrate by: probabilities are of plain scores.")
    parameters = Parameters(**moments.options.parameters() | chosen)
    task = shared.task_of(options | {"classify": is_classifier})
    with place_of(console, options):
        model = task.solve(parameters, moments)
        save_model(console, model, options)
    show_model(console, "Solved", model, options["out"])
