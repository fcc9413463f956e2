"""The option --boost, and what commands say of boosted classifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from streamkern.cli.class_options import class_rows, regression_of
from streamkern.cli.common_options import drop_checkpoint
from streamkern.cli.model_options import model_of, prepared
from streamkern.errors import ParameterError

if TYPE_CHECKING:
    from streamkern.cli.common_options import Say

# What rounds take no part in: they have maps of their own, and votes for probabilities.
_NOT_BOOSTED = ("like", "calibration", "report")


def boost_option(command: Any) -> Any:
    """Give a command the choice to fit rounds of classifiers instead of one."""
    return click.option(
        "--boost",
        metavar="ROUNDS[:gentle|real|discrete]",
        help="AdaBoost: so many rounds, of 512 components each unless --components is given, on "
        "rows weighted by how the rounds before did.",
    )(command)


def boosting_of(text: str) -> dict[str, Any]:
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
    from streamkern.cli.fit import fit_report
    from streamkern.models.boosting_fit import boosting_options
    from streamkern.models.boosting_model import BoostedModel
    from streamkern.models.ridge_options import RidgeOptions

    context = click.get_current_context()
    if not options["classify"]:
        raise ParameterError("--boost is for classes; give --classify too, or leave it out.")
    for name in _NOT_BOOSTED:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise ParameterError(f"--{name} is not for rounds of --boost; leave one of them out.")
    if context.get_parameter_source("components") is ParameterSource.DEFAULT:
        options = options | {"components": str(BoostedModel()._ridge().n_components)}
    base = regression_of(model_of(options | {"calibration": "none"}, **choices))
    model = BoostedModel(
        base, class_weight=options["class_weight"], **boosting_of(options["boost"])
    )
    boosting, fixed = model._boosting(), RidgeOptions(base).solves_at_once
    n_maps = 1 + boosting.n_estimators
    job = prepared(say, options, boosting_options(base), fixed_alpha=fixed, n_maps=n_maps)
    if job is None:
        return
    source, place, plan = job
    with place.entered(say, plan, options["out"]):
        model.fit(source, checkpoint=options["checkpoint"])
        model.save(options["out"], force=options["force"])
        drop_checkpoint(options["checkpoint"])
    report = fit_report(model, options["out"])
    say.table("Fitted", [*boosted_rows(report), ("model", report["model"])])
    tell_rounds(say, report)
    say.result(report)


def boosted_rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what a person wants to know of a boosted classifier, as pairs of name and value."""
    from streamkern.cli.fit import data_rows, pass_rows

    rounds, rate, bound = report["rounds"], report["learning_rate"], report["train_error_bound"]
    slower = f", learning rate {rate:g}" if rate < 1 else ""
    return [
        *data_rows(report),
        *class_rows(report),
        ("rounds", f"{len(rounds):,} by {report['algorithm']} AdaBoost{slower}"),
        *([("stopped", report["stopped"])] if report["stopped"] else []),
        ("training error", f"{report['train_error']:.5g}"),
        *([] if bound is None else [("training error, at most", f"{bound:.5g}")]),
        *pass_rows(report),
        *[("note", note) for note in dict.fromkeys(each["note"] for each in rounds) if note],
    ]


def tell_rounds(say: Say, report: dict[str, Any]) -> None:
    """Print the errors of every round, with their bounds if there are any."""
    columns = 4 if report["train_error_bound"] is None else 5
    say.table(
        "Training error after every round",
        [
            (
                str(each["round"]),
                f"{each['weighted_error']:.4f}",
                f"{each['step']:.4f}",
                *(f"{each[n]:.4f}" for n in ("train_error", "train_error_bound")[: columns - 3]),
            )
            for each in report["rounds"]
        ],
        header=("round", "weighted error", "votes count", "error", "at most")[:columns],
    )
