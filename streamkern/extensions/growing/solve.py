"""`streamkern solve`."""

from typing import Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Console, command
from streamkern.cli.job import check_outputs, place_of
from streamkern.cli.parameter_options import parameter_options, values_of
from streamkern.cli.saving import save_model, show_model

# Parameters of what is made of moments.
_OF_MODELS = (
    *("n_components", "alpha", "alphas", "per_target", "one_standard_error", "sparse"),
    *("sparse_method", "fit_intercept"),
)


@command(
    click.argument("moments", metavar="M.h5"),
    shared.model_option,
    *parameter_options(
        *_OF_MODELS,
        n_components={
            "default": None,
            "help": "The first D features; auto: the smallest number that is good enough; by "
            "default all.",
        },
    ),
    *shared.options_of_extensions("solve"),
    click.option(
        "--compact",
        is_flag=True,
        help="Leave the normal equations out of MODEL.h5, and with them standard deviations.",
    ),
    *shared.place_options,
    shared.force_option,
    *shared.options_of_extensions("report"),
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
    parameters = Parameters(**moments.options.parameters() | chosen)
    problem = shared.problem_of(options, moments)
    with place_of(console, options):
        model = problem.solve(parameters, moments)
        save_model(console, model, options)
    show_model(console, "Solved", model, options["out"])
