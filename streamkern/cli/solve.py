"""`streamkern solve`."""

from __future__ import annotations

from typing import Any

import click

from streamkern.cli import common_options, model_options
from streamkern.cli.class_options import calibration_option
from streamkern.cli.common_options import Say, common
from streamkern.cli.report_option import report_option, save_model, show_model


@click.command()
@click.argument("moments", metavar="M.h5")
@common_options.model_option
@model_options.alpha_options
@model_options.sparse_options
@calibration_option("sigmoid", "none", default=None)
@click.option(
    "--components",
    metavar="D|auto",
    help="The first D features; auto: the smallest number that is good enough; by default all.",
)
@common_options.origin_option
@click.option(
    "--compact",
    is_flag=True,
    help="Leave the normal equations out of MODEL.h5, and with them standard deviations.",
)
@report_option
@common_options.place_options
@common_options.force_option
@common
def solve(say: Say, **options: Any) -> None:
    """Make the model that `fit` would make of the rows that the moments M.h5 are of.

    Of moments with classes that is a classifier, calibrated by the scores of every fold that the
    other folds give, as the moments tell them.
    """
    from streamkern.cli.compute_place import Place
    from streamkern.cli.output_paths import check_outputs
    from streamkern.errors import ParameterError
    from streamkern.models.data_moments import load_moments
    from streamkern.parameters.parameters import Parameters

    chosen = model_options.alpha_of(options) | model_options.sparse_of(options)
    components = options["components"] and model_options.components_of(options["components"])
    check_outputs(options)
    moments = load_moments(options["moments"])
    D = moments.feature_map.n_components
    if moments.options.is_identity and components not in (None, D):
        raise ParameterError(
            f"the identity map has {D:,} features and no smaller part; leave --components out."
        )
    is_classifier = "classes" in moments.report
    if is_classifier and options["calibration"] is None:
        options["calibration"] = "sigmoid" if moments.n_folds > 1 else "none"
        if moments.n_folds == 1:
            say.note("there are no folds to calibrate by: probabilities are of plain scores.")
    parameters = Parameters(
        **moments.options.parameters()
        | chosen
        | {"n_components": components or D, "fit_intercept": not options["no_intercept"]}
    )
    task = model_options.task_of(options, classify=is_classifier)
    with Place.of(options).entered(say, what=options["out"]):
        model = task.solve(parameters, moments)
        save_model(say, model, options)
    show_model(say, "Solved", model, options["out"])
