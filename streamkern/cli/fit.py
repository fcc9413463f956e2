"""`streamkern fit`."""

from typing import Any

from streamkern.cli import options as shared
from streamkern.cli.console import Console, command
from streamkern.cli.parameter_options import OF_LIKE, parameter_options, parameters_of
from streamkern.cli.row_files import prepared
from streamkern.cli.saving import save_model, show_model
from streamkern.registry import more_options

# What `tune` chooses, where it is given seconds; a fit that took more is not told of it.
_CHOSEN, _SECONDS = ("kernel", "length_scale", "feature_map", "metric", "scale"), 180


@command(
    *shared.rows_options,
    shared.model_option,
    *parameter_options(),
    shared.like_option,
    *shared.options_of_extensions("fit"),
    *shared.job_options,
    *shared.options_of_extensions("report"),
    examples=(
        "streamkern fit houses.csv --target price --out model.h5",
        "streamkern fit people.csv --target income --classify --out model.h5",
        "streamkern fit 'train-*.h5' --out model.h5 --components 4096",
    ),
)
def fit(console: Console, **options: Any) -> None:
    """Fit random-feature kernel ridge regression to the rows of DATA.

    DATA is HDF5, CSV or Parquet: a file, several, or a quoted pattern, whose rows are one data set.
    Columns of a table become inputs as `streamkern convert` makes them, and the model keeps how;
    the workers read the table where it lies.
    """
    from streamkern.estimators.loading import template_of

    if like := options["like"]:
        shared.refuse_given(OF_LIKE, f"is decided by --like {like}; leave out one of the two.")
    given = parameters_of(options)
    loops = [each for each in more_options("fit") if hasattr(each, "fit")]
    if any(each.fit(console, options, given) for each in loops):
        return
    problem, template = shared.problem_of(options), template_of(like)
    job, labels = problem.job(given, template), problem.reads_labels
    with prepared(console, options, job, template, labels=labels) as source:
        keep_moments = bool(options.get("report"))
        how: Any = {"checkpoint": options["checkpoint"], "keep_moments": keep_moments}
        model = problem.fit(given, (source, None, None), template=template, **how)
        rows = source
        for each in more_options("fit"):
            if hasattr(each, "rows"):
                rows = each.rows(options, model, rows)
        save_model(console, model, options, rows)
    show_model(console, "Fitted", model, options["out"])
    given_more = like or options["checkpoint"] or shared.given_options(_CHOSEN)
    for_people = problem.is_squared and not (console.quiet or console.as_json or console.log_json)
    if for_people and not given_more and model.seconds["total"] < _SECONDS:
        console.note(
            "`streamkern tune --budget 3m` in place of `streamkern fit` would try other kernels, "
            "length scales, maps, metrics and scales."
        )
