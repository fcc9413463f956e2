"""`streamkern fit`."""

from typing import Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Console, command
from streamkern.cli.parameter_options import OF_LIKE, parameter_options, parameters_of
from streamkern.cli.row_files import prepared
from streamkern.cli.saving import json_report, save_model, show_model
from streamkern.errors import ParameterError
from streamkern.parameters.parameters import Parameters

# What rounds take no part in: they have maps of their own, and votes for probabilities.
_NOT_BOOSTED = ("like", "calibration", "report", "target_range")
# What `tune` chooses, where it is given seconds; a fit that took more is not told of it.
_CHOSEN, _SECONDS = ("kernel", "length_scale", "feature_map", "metric", "scale"), 180


@command(
    *shared.rows_options,
    shared.model_option,
    *parameter_options(),
    shared.like_option,
    *shared.class_options,
    click.option(
        "--boost",
        metavar="ROUNDS[:gentle|real|discrete]",
        help="AdaBoost: so many rounds, of 512 components each unless --components is given, on "
        "rows weighted by how the rounds before did.",
    ),
    *shared.job_options,
    shared.report_option,
    examples=(
        "streamkern fit houses.csv --target price --out model.h5",
        "streamkern fit people.csv --target income --classify --out model.h5",
        "streamkern fit 'train-*.h5' --out model.h5 --components 4096 --report model.html",
    ),
)
def fit(console: Console, **options: Any) -> None:
    """Fit random-feature kernel ridge regression to the rows of DATA.

    DATA is HDF5, CSV or Parquet: a file, several, or a quoted pattern, whose rows are one data set.
    Columns of a table become inputs as `streamkern convert` makes them, and the model keeps how;
    the rows are converted beside MODEL.h5 for as long as the command runs.
    """
    from streamkern.estimators.loading import template_of

    if like := options["like"]:
        shared.refuse_given(OF_LIKE, f"is decided by --like {like}; leave out one of the two.")
    given = parameters_of(options)
    if options["boost"] is not None:
        _fit_boosted(console, options, given)
        return
    task, template = shared.task_of(options), template_of(like)
    with prepared(console, options, task.job(given, template), template) as source:
        how: Any = {"checkpoint": options["checkpoint"], "keep_moments": bool(options["report"])}
        model = task.fit(given, (source, None, None), template=template, **how)
        save_model(console, model, options, source)
    show_model(console, "Fitted", model, options["out"])
    given_more = like or options["checkpoint"] or shared.given_options(_CHOSEN)
    for_people = not (console.quiet or console.as_json or console.log_json)
    if for_people and not given_more and model.seconds["total"] < _SECONDS:
        console.note(
            "`streamkern tune --budget 3m` in place of `streamkern fit` would try other kernels, "
            "length scales, maps, metrics and scales."
        )


def _fit_boosted(console: Console, options: dict[str, Any], parameters: Parameters) -> None:
    from dataclasses import replace

    from streamkern.estimators.boosting import Boosting
    from streamkern.report.report_rows import boosted_rows
    from streamkern.report.trial_tables import round_table

    if not options["classify"]:
        raise ParameterError("--boost is for classes; give --classify too, or leave it out.")
    shared.refuse_given(_NOT_BOOSTED, "is not for rounds of --boost; leave one of them out.")
    if not shared.given_options(["n_components"]):
        usual = Boosting.parameters_of_a_round()
        parameters = replace(parameters, n_components=usual.n_components)
    text = options["boost"]
    rounds, _, algorithm = text.partition(":")
    named: dict[str, Any] = {"algorithm": algorithm} if algorithm else {}
    try:
        named["n_estimators"] = int(rounds)
    except ValueError as error:
        raise ParameterError(
            f"--boost must be a number of rounds, or one with an algorithm as 10:discrete, not "
            f"{text!r}; give one of these."
        ) from error
    boosting = Boosting(class_weight=options["class_weight"], **named)
    boosting.check(parameters)
    with prepared(console, options, boosting.job(parameters)) as source:
        rows = source, None, None
        model = boosting.fit(parameters, rows, checkpoint=options["checkpoint"])
        save_model(console, model, options)
    report = json_report(model.report, {"model": options["out"]})
    console.table("Fitted", [*boosted_rows(report), ("model", options["out"])])
    console.table("Training error after every round", **round_table(report)._asdict())
    console.result(report)
