"""`streamkern tune`."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from streamkern.cli import common_options, model_options
from streamkern.cli.class_options import class_options
from streamkern.cli.common_options import Say, common
from streamkern.cli.report_option import folders_option, report_option, save_model, show_model
from streamkern.errors import ParameterError
from streamkern.kernels import separated


@click.command()
@common_options.data_options
@common_options.model_option
@partial(model_options.map_options, several=True)
@click.option(
    "--budget",
    metavar="PASSES|SECONDS",
    help="What the search may take: 10 is the work of ten fits to all rows; 120s, 5m and 1h are "
    "time, and then the choice depends on the machine.",
)
@model_options.penalty_options
@model_options.sparse_options
@class_options
@common_options.origin_option
@common_options.bad_rows_option
@common_options.checkpoint_option
@common_options.place_options
@folders_option
@report_option
@common_options.dry_run_option
@common_options.force_option
@common
def tune(say: Say, **options: Any) -> None:
    """Choose kernel, length scale and map for the rows of DATA, and fit a model with them.

    The choice is made on a spread sample, at a reduced number of features; --length-scale says
    where to look, from an eighth of it to eight times it.  The search leaves out thirds of the
    sample in turn; --alpha and the folds are for the fit.  The rows are read no more often than
    `fit` reads them.

    With --map auto the kernel is auto unless it is given.  With --budget both are, and the sample,
    the length scales and the features that are tried grow with what may be spent.  The fit comes on
    top.
    """
    from streamkern.models.tuned_fit import search_options

    kernels, maps = _chosen_among(options, "kernel"), _chosen_among(options, "feature_map")
    first = {
        "kernel": kernels[0] if isinstance(kernels, list) else "gaussian",
        "feature_map": maps[0] if isinstance(maps, list) else "orthogonal",
    }
    choices = model_options.penalty_of(options) | model_options.sparse_of(options)
    choices["fit_intercept"] = not options["no_intercept"]
    given = model_options.parameters_of(options | first, **choices)
    tried: Any = kernels
    if isinstance(kernels, list):
        tried = [model_options.kernel_named(name, options["length_scale"]) for name in kernels]
    task = model_options.task_of(options)
    parameters = task.prepared(given)
    search = search_options(parameters, kernels=tried, maps=maps)
    job = model_options.prepared(say, options, search, n_left_out=parameters.penalty.n_left_out)
    if job is None:
        return
    source, place, plan = job
    with place.entered(say, plan, options["out"]):
        model = task.tune(
            parameters,
            (source, None, None),
            kernels=tried,
            maps=maps,
            budget=options["budget"],
            checkpoint=options["checkpoint"],
            keep_moments=bool(options["report"]),
        )
        save_model(say, model, options, source)
    show_search(say, model.report)
    show_model(say, "Fitted", model, options["out"])


def _chosen_among(options: dict[str, Any], name: str) -> list[str] | str | None:
    """Return the names that an option lists, 'auto', or None where others say what is chosen."""
    free = options["budget"] is not None or (name == "kernel" and options["feature_map"] == "auto")
    if free and not common_options.given_options([name]):
        return None
    names: list[str] = separated(options[name])
    if names == ["auto"]:
        return "auto"
    if len(set(names)) < len(names):
        option, what = {"kernel": ("--kernel", "a kernel")}.get(name, ("--map", "a map"))
        raise ParameterError(f"{option} {options[name]} names {what} twice; name each once.")
    return names


def show_search(say: Say, report: dict[str, Any]) -> None:
    """Print what a search tried, and what of it is worth its cost."""
    from streamkern.report.trial_tables import frontier_table, tuning_table

    say.words(tuning_table(report), "Tried")
    say.words(frontier_table(report), "Error against cost")
