"""`streamkern fit`."""

from __future__ import annotations

from typing import Any

import click

from streamkern.cli.boost_option import boost_option, fit_boosted
from streamkern.cli.class_options import class_options, class_rows, regression_of
from streamkern.cli.common_options import (
    Say,
    bad_rows_option,
    checkpoint_option,
    common,
    data_options,
    drop_checkpoint,
    force_option,
    place_options,
)
from streamkern.cli.model_options import (
    check_like,
    like_option,
    map_options,
    model_of,
    penalty_of,
    penalty_options,
    prepared,
    sparse_of,
    sparse_options,
)
from streamkern.cli.report_option import folders_option, report_option, write_report
from streamkern.errors.formatting import listed

# Inputs that are named.
_NAMED = 5


@click.command()
@data_options
@click.option("--out", required=True, metavar="MODEL.h5", help="The model file to write.")
@map_options
@like_option
@penalty_options
@sparse_options
@class_options
@boost_option
@click.option("--no-intercept", is_flag=True, help="Fit through the origin.")
@bad_rows_option
@checkpoint_option
@place_options
@folders_option
@report_option
@click.option("--dry-run", is_flag=True, help="Print the plan, and read no rows.")
@force_option
@common
def fit(say: Say, **options: Any) -> None:
    """Fit random-feature kernel ridge regression to the rows of DATA.

    DATA is an HDF5 file, several, or a quoted pattern, whose rows are one data set.
    """
    from streamkern.models.ridge_model import pattern_of
    from streamkern.models.ridge_options import RidgeOptions

    check_like(options["like"])
    choices = penalty_of(options) | sparse_of(options)
    choices["fit_intercept"] = not options["no_intercept"]
    if options["boost"] is not None:
        fit_boosted(say, options, **choices)
        return
    model = model_of(options, **choices)
    like, asked = pattern_of(options["like"]), RidgeOptions(regression_of(model))
    job = prepared(
        say,
        options,
        asked.passes(like),
        fixed_alpha=asked.solves_at_once,
        n_left_out=asked.penalty.n_left_out,
    )
    if job is None:
        return
    source, place, plan = job
    with place.entered(say, plan, options["out"]):
        model.fit(
            source,
            like=options["like"] if options["classify"] else like,
            checkpoint=options["checkpoint"],
            keep_moments=bool(options["report"]),
        )
        model.save(options["out"], force=options["force"])
        write_report(say, model, options, source)
        drop_checkpoint(options["checkpoint"])
    report_on(say, "Fitted", model, options["out"])


def report_on(say: Say, title: str, model: Any, path: str) -> None:
    """Say what a model file holds, to people and to programs."""
    report = fit_report(model, path)
    say.table(title, card_rows(report))
    say.result(report)


def fit_report(model: Any, path: str) -> dict[str, Any]:
    """Return the JSON of a fit: the keys of the contract first."""
    report = {key: value for key, value in model.report_.items() if key != "data"}
    return report | {"model": str(path)}


def card_rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what a person wants to know of a fitted model, as pairs of a name and a value."""
    return [
        *data_rows(report),
        *class_rows(report),
        ("alpha", _chosen(report)),
        ("training rmse", _brief(report["train_rmse"])),
        ("cross-validated rmse", _brief(report["cv_rmse"])),
        ("effective degrees of freedom", _brief(report["effective_dof"])),
        ("solver", f"{report['solver']}, condition {_brief(report['condition'])}"),
        *pass_rows(report),
        *([("note", report["note"])] if report["note"] else []),
        *([("model", report["model"])] if "model" in report else []),
    ]


def data_rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what was read, and what features it became."""
    components = f"{report['n_components']:,}"
    if report.get("sparse_of"):
        components += f" of {report['sparse_of']:,} by {report['sparse_method']}"
    size, kernel = input_rows(report)
    return [
        size,
        ("targets", f"{report['n_targets']:,}{_called(report)}"),
        *weight_rows(report),
        kernel,
        *metric_rows(report),
        ("components", f"{components} ({report['precision']} precision)"),
    ]


def _called(report: dict[str, Any]) -> str:
    from streamkern.sources.preprocessing.column_names import target_names

    names = None if "classes" in report else target_names(report)
    return "" if names is None else f": {listed(names, _NAMED)}"


def weight_rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what rows are weighted by, and what that makes of them, where they are."""
    name = report.get("weights")
    return [("weights", f"{name}, which add up to {report['weight']:,.10g}")] if name else []


def input_rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Return how many rows were read, and the kernel of them."""
    kernel, scale = report["kernel"], report["length_scale"]
    kernel += f", length scale {_brief(scale)}" if scale is not None else ""
    return [
        ("rows x inputs", f"{report['rows']:,} x {report['n_features']:,}"),
        ("kernel", kernel),
    ]


def metric_rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Return which metric the kernel takes, and which inputs weigh most in it."""
    metric = report.get("metric")
    if not metric:
        return []
    how, rounds = metric["kind"], metric.get("rounds")
    if rounds:
        kept = rounds[metric["kept"]]
        number = kept["number"]
        how = f"learnt, round {number} of {max(each['number'] for each in rounds)}"
        if not number:
            return [("metric", "plain distances, which predicted better than a learnt one")]
    from streamkern.sources.preprocessing.column_names import input_names

    names, columns = input_names(report), metric["columns"]
    called = columns if names is None else [names[j] for j in columns]
    share = zip(metric["importance"], called, strict=True)
    heaviest = sorted(share, key=lambda pair: -pair[0])[:_NAMED]
    named = ", ".join(f"{column} ({100 * part:.0f}%)" for part, column in heaviest)
    return [("metric", how), ("inputs that weigh most", named)]


def pass_rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what reading took, and what was left out."""
    from streamkern.runtime.memory import in_words

    peak = in_words(report["peak_worker_bytes"])
    seconds = ", ".join(f"{name} {value:.1f}" for name, value in report["seconds"].items())
    rows = [
        ("seconds", seconds),
        (
            "memory of a worker",
            f"{peak} of {in_words(report['projected_worker_bytes'])} projected",
        ),
    ]
    for key, label in (
        ("skipped_rows", "rows skipped"),
        ("weightless_rows", "rows of weight 0"),
        ("forgotten_rows", "rows forgotten"),
        ("resumed_shards", "shards resumed"),
        ("retried_shards", "shards retried"),
    ):
        if report.get(key):
            rows.append((label, f"{report[key]:,}"))
    from streamkern.sources.preprocessing.column_names import input_names

    names = input_names(report)
    for label, key in (
        ("constant columns left out", "dropped_columns"),
        ("nearly constant columns, deviation enlarged", "nearly_constant_columns"),
    ):
        if columns := report.get(key):
            rows.append((label, _brief(columns if names is None else [names[j] for j in columns])))
    return rows


def _chosen(report: dict[str, Any]) -> str:
    curve, alpha = report.get("alpha_curve"), _brief(report["alpha"])
    if not curve:
        return alpha
    crossed = curve["criterion"] == "cv"
    folds = f", {report['n_folds']} folds by {report['fold_by']}" if crossed else ""
    return f"{alpha} by {curve['criterion']}{folds}, of {len(curve['alphas'])} tried"


def _brief(value: Any) -> str:
    if isinstance(value, list):
        shown = ", ".join(_brief(item) for item in value[:4])
        return shown + (f", ... ({len(value)})" if len(value) > 4 else "")
    if value is None:
        return "none"
    return f"{value:.5g}" if isinstance(value, float) else str(value)
