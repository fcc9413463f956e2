"""The option --boost: AdaBoost in place of one classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from streamkern.cli.common_options import drop_checkpoint, given_options
from streamkern.cli.model_options import parameters_of, prepared
from streamkern.cli.report_option import json_report
from streamkern.errors import ParameterError

if TYPE_CHECKING:
    from streamkern.cli.common_options import Say

# What rounds take no part in: they have maps of their own, and votes for probabilities.
_NOT_BOOSTED = ("like", "calibration", "report")

boost_option = click.option(
    "--boost",
    metavar="ROUNDS[:gentle|real|discrete]",
    help="AdaBoost: so many rounds, of 512 components each unless --components is given, on "
    "rows weighted by how the rounds before did.",
)


def _boosting_of(text: str) -> dict[str, Any]:
    """Return the parameters of boosting that --boost names."""
    rounds, _, algorithm = text.partition(":")
    try:
        return {"n_estimators": int(rounds)} | ({"algorithm": algorithm} if algorithm else {})
    except ValueError as error:
        raise ParameterError(
            f"--boost must be a number of rounds, or one with an algorithm as 10:discrete, not "
            f"{text!r}; give one of these."
        ) from error


def fit_boosted(say: Say, options: dict[str, Any], **choices: Any) -> None:
    """Fit a boosted classifier: what `fit` does with --boost."""
    from streamkern.models.boosting import Boosting
    from streamkern.models.boosting_fit import round_options
    from streamkern.report.report_rows import Row, boosted_rows
    from streamkern.report.trial_tables import round_table

    if not options["classify"]:
        raise ParameterError("--boost is for classes; give --classify too, or leave it out.")
    for parameter in given_options(_NOT_BOOSTED):
        raise ParameterError(
            f"{parameter.opts[0]} is not for rounds of --boost; leave one of them out."
        )
    if not given_options(["components"]):
        options = options | {"components": str(Boosting.parameters_of_a_round().n_components)}
    parameters = parameters_of(options, **choices)
    boosting = Boosting(class_weight=options["class_weight"], **_boosting_of(options["boost"]))
    how = {"fixed_alpha": parameters.solves_at_once, "n_maps": 1 + boosting.n_estimators}
    job = prepared(say, options, round_options(parameters), **how)
    if job is None:
        return
    source, place, plan = job
    with place.entered(say, plan, options["out"]):
        rows = source, None, None
        model = boosting.fit(parameters, rows, checkpoint=options["checkpoint"])
        model.save(options["out"], force=options["force"])
        drop_checkpoint(options["checkpoint"])
    report = json_report(model.report, model=options["out"])
    say.table("Fitted", [*boosted_rows(report), Row("model", options["out"])])
    say.words(round_table(report), "Training error after every round")
    say.result(report)
