"""Options of classes: `--classify` and what goes with it, `fit --boost` and `predict --proba`."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Console
from streamkern.errors import ParameterError, warn
from streamkern.parameters.parameters import Parameters

if TYPE_CHECKING:
    from streamkern.extensions.classes.classification import Classification

_CLASSIFY = click.option(
    "--classify", is_flag=True, help="y holds labels of classes: text, booleans or whole numbers."
)


def _calibration(*methods: str, default: str | None = "auto") -> shared.Decorator:
    return click.option(
        "--calibration",
        type=click.Choice(methods),
        default=default,
        show_default=bool(default) or "auto",
        help="How scores of classes become probabilities, by rows left out in turn; auto: by a "
        "spline, or of moments alone by a sigmoid.",
    )


_OF_FITS = (
    _CLASSIFY,
    click.option(
        "--class-weight",
        type=click.Choice(["balanced"]),
        help="Weigh rows so that all classes weigh the same.",
    ),
    _calibration("auto", "spline", "sigmoid", "isotonic", "none"),
)
_BOOST = click.option(
    "--boost",
    metavar="ROUNDS[:gentle|real|discrete]",
    help="AdaBoost: so many rounds, of 512 components each unless --components is given, on "
    "rows weighted by how the rounds before did.",
)
OPTIONS = {
    "fit": (*_OF_FITS, _BOOST),
    "tune": _OF_FITS,
    "moments": _OF_FITS,
    "inspect": (_CLASSIFY,),
    "solve": (_calibration("auto", "sigmoid", "none", default=None),),
    "predict": (
        click.option(
            "--proba", is_flag=True, help="Write the probabilities of classes, as y_proba."
        ),
    ),
}
# What rounds take no part in: they have maps of their own, and votes for probabilities.
_NOT_BOOSTED = ("like", "calibration", "report", "target_range", "loss")


def problem(options: dict[str, Any], moments: Any) -> "Classification | None":
    """Return the classification that options, or moments that are to be solved, are of."""
    from streamkern.extensions.classes.classification import Classification

    how = options.get("calibration", "auto")
    if moments is not None and moments.encoding.reads_labels:
        if how is None and moments.n_folds == 1:
            how = "none"
            warn("there are no folds to calibrate by: probabilities are of plain scores.")
    elif not options.get("classify"):
        shared.refuse_given(
            ("class_weight", "calibration"),
            "is for labels of classes, which y is taken for with --classify; leave it out for "
            "numbers.",
        )
        return None
    shared.refuse_given(("target_range",), "is of numbers, but y holds labels; leave it out.")
    calibration = None if how == "none" else how or "auto"
    loss = options.get("loss", "squared")
    return Classification(options.get("class_weight"), calibration, loss=loss)


def check_predictions(options: dict[str, Any], model: Any) -> None:
    """Raise ParameterError if what is asked for is not of models of this kind."""
    name = options["model"]
    if not model.encoding.reads_labels:
        if options["proba"]:
            raise ParameterError(
                f"--proba is for classifiers, but {name} is a regression; leave it out."
            )
        return
    for asked, remedy in {"std": "take --proba", "support": "leave it out"}.items():
        if options[asked]:
            raise ParameterError(
                f"--{asked} is for regressions, but {name} is a classifier; {remedy}."
            )


def fit(console: Console, options: dict[str, Any], parameters: Parameters) -> bool:
    """Fit rounds where the option is given, and say whether it is."""
    if options["boost"] is None:
        return False
    from streamkern.cli.row_files import prepared
    from streamkern.cli.saving import json_report, save_model
    from streamkern.extensions.classes.boosted_rows import round_table
    from streamkern.extensions.classes.fitted_ensemble import OF_A_ROUND, Boosting

    if not options["classify"]:
        raise ParameterError("--boost is for classes; give --classify too, or leave it out.")
    shared.refuse_given(_NOT_BOOSTED, "is not for rounds of --boost; leave one of them out.")
    if not shared.given_options(["n_components"]):
        parameters = replace(parameters, n_components=OF_A_ROUND.n_components)
    boosting = Boosting(class_weight=options["class_weight"], **_rounds(options["boost"]))
    boosting.check(parameters)
    with prepared(console, options, boosting.job(parameters), labels=True) as source:
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
