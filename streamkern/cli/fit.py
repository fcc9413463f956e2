"""`streamkern fit`."""

from __future__ import annotations

from typing import Any

import click

from streamkern.cli import common_options, model_options
from streamkern.cli.boost_option import boost_option, fit_boosted
from streamkern.cli.class_options import class_options
from streamkern.cli.common_options import Say, common
from streamkern.cli.report_option import folders_option, report_option, save_model, show_model


@click.command()
@common_options.data_options
@common_options.model_option
@model_options.map_options
@model_options.like_option
@model_options.penalty_options
@model_options.sparse_options
@class_options
@boost_option
@common_options.origin_option
@common_options.bad_rows_option
@common_options.checkpoint_option
@common_options.place_options
@folders_option
@report_option
@common_options.dry_run_option
@common_options.force_option
@common
def fit(say: Say, **options: Any) -> None:
    """Fit random-feature kernel ridge regression to the rows of DATA.

    DATA is an HDF5 file, several, or a quoted pattern, whose rows are one data set.
    """
    from streamkern.models.loading import template_of

    model_options.check_like(options["like"])
    choices = model_options.penalty_of(options) | model_options.sparse_of(options)
    choices["fit_intercept"] = not options["no_intercept"]
    if options["boost"] is not None:
        fit_boosted(say, options, **choices)
        return
    task, given = model_options.task_of(options), model_options.parameters_of(options, **choices)
    template, parameters = template_of(options["like"]), task.prepared(given)
    how = {"fixed_alpha": parameters.solves_at_once, "n_left_out": parameters.penalty.n_left_out}
    job = model_options.prepared(say, options, parameters.passes(template), **how)
    if job is None:
        return
    source, place, plan = job
    with place.entered(say, plan, options["out"]):
        model = task.fit(
            parameters,
            (source, None, None),
            template=template,
            checkpoint=options["checkpoint"],
            keep_moments=bool(options["report"]),
        )
        save_model(say, model, options, source)
    show_model(say, "Fitted", model, options["out"])
