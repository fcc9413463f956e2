"""`streamkern tune`."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import click
from click.core import ParameterSource

from streamkern.cli.class_options import class_options, regression_of
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
from streamkern.cli.fit import report_on
from streamkern.cli.model_options import (
    kernel_named,
    map_options,
    model_of,
    penalty_of,
    penalty_options,
    prepared,
    sparse_of,
    sparse_options,
)
from streamkern.cli.report_option import folders_option, report_option, write_report
from streamkern.errors import ParameterError
from streamkern.kernels import separated


@click.command()
@data_options
@click.option("--out", required=True, metavar="MODEL.h5", help="The model file to write.")
@partial(map_options, several=True)
@click.option(
    "--budget",
    metavar="PASSES|SECONDS",
    help="What the search may take: 10 is the work of ten fits to all rows; 120s, 5m and 1h are "
    "time, and then the choice depends on the machine.",
)
@penalty_options
@sparse_options
@class_options
@click.option("--no-intercept", is_flag=True, help="Fit through the origin.")
@bad_rows_option
@checkpoint_option
@place_options
@folders_option
@report_option
@click.option("--dry-run", is_flag=True, help="Print the plan, and read no rows.")
@force_option
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
    from streamkern.models.ridge_options import RidgeOptions

    kernels, maps = _chosen_among(options, "kernel"), _chosen_among(options, "feature_map")
    first = {
        "kernel": kernels[0] if isinstance(kernels, list) else "gaussian",
        "feature_map": maps[0] if isinstance(maps, list) else "orthogonal",
    }
    choices = penalty_of(options) | sparse_of(options)
    model = model_of(options | first, **choices, fit_intercept=not options["no_intercept"])
    tried: Any = kernels
    if isinstance(kernels, list):
        tried = [kernel_named(name, options["length_scale"]) for name in kernels]
    asked = RidgeOptions(regression_of(model))
    checked = asked.search(kernels=tried, maps=maps)
    job = prepared(say, options, checked, n_left_out=asked.penalty.n_left_out)
    if job is None:
        return
    source, place, plan = job
    with place.entered(say, plan, options["out"]):
        model.tune(
            source,
            kernels=tried,
            maps=maps,
            budget=options["budget"],
            checkpoint=options["checkpoint"],
            keep_moments=bool(options["report"]),
        )
        model.save(options["out"], force=options["force"])
        write_report(say, model, options, source)
        drop_checkpoint(options["checkpoint"])
    tell_search(say, model.report_)
    report_on(say, "Fitted", model, options["out"])


def _chosen_among(options: dict[str, Any], name: str) -> list[str] | str | None:
    """Return the names that an option lists, 'auto', or None where others say what is chosen."""
    context = click.get_current_context()
    given = context.get_parameter_source(name) is not ParameterSource.DEFAULT
    free = options["budget"] is not None or (name == "kernel" and options["feature_map"] == "auto")
    if free and not given:
        return None
    names: list[str] = separated(options[name])
    if names == ["auto"]:
        return "auto"
    if len(set(names)) < len(names):
        option, what = {"kernel": ("--kernel", "a kernel")}.get(name, ("--map", "a map"))
        raise ParameterError(f"{option} {options[name]} names {what} twice; name each once.")
    return names


def tell_search(say: Say, report: dict[str, Any]) -> None:
    """Say what a search tried, and what of it is worth its cost."""
    tried = report["tuning"]
    say.table("Tried", tuning_rows(tried), header=tuning_header(tried))
    header = ("", "map", "kernel", "length scale", "D", "error", "seconds", "passes")
    say.table("Error against cost", frontier_rows(report["frontier"]), header=header)


def frontier_rows(frontier: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return a row for every configuration that none beats in both, and the one chosen."""
    from streamkern.tune.frontier import map_in_words

    return [
        (
            "chosen" if each["is_chosen"] else "",
            map_in_words(each),
            each["kernel"],
            _scale(each),
            f"{each['n_components']:,}",
            f"{math.sqrt(each['relative_mse']):.4f}",
            f"{each['seconds']:.3g}",
            f"{each['passes']:.2g}",
        )
        for each in frontier
        if each["is_best"] or each["is_chosen"]
    ]


def tuning_header(tried: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return the columns of the table of what was tried: one for every number of features."""
    sizes = sorted({attempt["n_components"] for attempt in tried})
    return ("map", "kernel", "length scale", *(f"D = {size:,}" for size in sizes))


def tuning_rows(tried: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return a row for every map, kernel and length scale: its errors left out, over sd(y)."""
    from streamkern.tune.frontier import map_in_words

    sizes = sorted({attempt["n_components"] for attempt in tried})
    rows: dict[tuple[str, str, str], dict[int, float]] = {}
    for attempt in sorted(tried, key=lambda a: (map_in_words(a), a["kernel"], _first(a))):
        name = map_in_words(attempt), attempt["kernel"], _scale(attempt)
        errors = rows.setdefault(name, {})
        errors[attempt["n_components"]] = math.sqrt(attempt["relative_mse"])
    best = {size: min(e[size] for e in rows.values() if size in e) for size in sizes}

    def cell(errors: dict[int, float], size: int) -> str:
        if size not in errors:
            return ""
        return f"{errors[size]:.4f}" + ("*" if errors[size] == best[size] else " ")

    return [(*name, *(cell(errors, size) for size in sizes)) for name, errors in rows.items()]


def _scale(attempt: dict[str, Any]) -> str:
    scale = attempt["length_scale"]
    return f"{scale:.4g}" if isinstance(scale, float) else f"{scale[0]:.4g}, ..."


def _first(attempt: dict[str, Any]) -> float:
    scale = attempt["length_scale"]
    return float(scale if isinstance(scale, float) else scale[0])
