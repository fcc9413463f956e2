"""`streamkern fit --boost`."""

from dataclasses import replace
from typing import Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Console
from streamkern.cli.row_files import prepared
from streamkern.cli.saving import json_report, save_model
from streamkern.errors import ParameterError
from streamkern.parameters.parameters import Parameters

OPTIONS = (
    click.option(
        "--boost",
        metavar="ROUNDS[:gentle|real|discrete]",
        help="AdaBoost: so many rounds, of 512 components each unless --components is given, on "
        "rows weighted by how the rounds before did.",
    ),
)
# What rounds take no part in: they have maps of their own, and votes for probabilities.
_NOT_BOOSTED = ("like", "calibration", "report", "target_range")


def run(console: Console, options: dict[str, Any], parameters: Parameters) -> bool:
    """Fit rounds where the option is given, and say whether it is."""
    if options["boost"] is None:
        return False
    from streamkern.extensions.boosting.fitted_ensemble import Boosting
    from streamkern.extensions.boosting.report_rows import round_table

    if not options["classify"]:
        raise ParameterError("--boost is for classes; give --classify too, or leave it out.")
    shared.refuse_given(_NOT_BOOSTED, "is not for rounds of --boost; leave one of them out.")
    if not shared.given_options(["n_components"]):
        usual = Boosting.parameters_of_a_round()
        parameters = replace(parameters, n_components=usual.n_components)
    boosting = Boosting(class_weight=options["class_weight"], **_rounds(options["boost"]))
    boosting.check(parameters)
    with prepared(console, options, boosting.job(parameters)) as source:
        rows = source, None, None
        model = boosting.fit(parameters, rows, checkpoint=options["checkpoint"])
        save_model(console, model, options)
    report = json_report(model.report, {"model": options["out"]})
    console.table("Fitted", [*model.rows_of(report), ("model", options["out"])])
    console.table(**round_table(report)._asdict())
    console.result(report)
    return True


def _rounds(text: str) -> dict[str, Any]:
    rounds, _, algorithm = text.partition(":")
    named: dict[str, Any] = {"algorithm": algorithm} if algorithm else {}
    try:
        return named | {"n_estimators": int(rounds)}
    except ValueError as error:
        raise ParameterError(
            f"--boost must be a number of rounds, or one with an algorithm as 10:discrete, not "
            f"{text!r}; give one of these."
        ) from error
