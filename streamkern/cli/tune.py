"""`streamkern tune`."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import click

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
from streamkern.cli.options import (
    Say,
    bad_rows_option,
    checkpoint_option,
    common,
    data_options,
    drop_checkpoint,
    force_option,
    place_options,
)
from streamkern.cli.reporting import report_option, write_report
from streamkern.errors import ParameterError
from streamkern.kernels import separated


@click.command()
@data_options
@click.option("--out", required=True, metavar="MODEL.h5", help="The model file to write.")
@partial(map_options, several=True)
@penalty_options
@sparse_options
@click.option("--no-intercept", is_flag=True, help="Fit through the origin.")
@bad_rows_option
@checkpoint_option
@place_options
@report_option
@click.option("--dry-run", is_flag=True, help="Print the plan, and read no rows.")
@force_option
@common
def tune(say: Say, **options: Any) -> None:
    """Choose the kernel and its length scale for the rows of DATA, and fit a model with them.

    The choice is made on a spread sample, at a reduced number of features; --length-scale says
    where to look, from an eighth of it to eight times it.  The search leaves out thirds of the
    sample in turn; --alpha and the folds are for the fit.  The rows are read no more often than
    `fit` reads them.
    """
    names = separated(options["kernel"])
    if len(set(names)) < len(names):
        raise ParameterError(f"--kernel {options['kernel']} names a kernel twice; name each once.")
    kernels = [kernel_named(name, options["length_scale"]) for name in names]
    choices = penalty_of(options) | sparse_of(options)
    model = model_of(options, **choices, fit_intercept=not options["no_intercept"])
    job = prepared(say, options, model.options()[0])
    if job is None:
        return
    source, place, plan = job
    with place.entered(say, plan, options["out"]):
        model.tune(
            source,
            kernels=kernels,
            checkpoint=options["checkpoint"],
            keep_moments=bool(options["report"]),
        )
        model.save(options["out"], force=options["force"])
        write_report(say, model, options, source)
        drop_checkpoint(options["checkpoint"])
    tried = model.report_["tuning"]
    say.table("Tried", tuning_rows(tried), header=tuning_header(tried))
    report_on(say, "Fitted", model, options["out"])


def tuning_header(tried: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return the columns of the table of what was tried: one for every number of features."""
    sizes = sorted({attempt["n_components"] for attempt in tried})
    return ("kernel", "length scale", *(f"D = {size:,}" for size in sizes))


def tuning_rows(tried: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return a row for every kernel and length scale: its errors left out, over sd(y)."""
    sizes = sorted({attempt["n_components"] for attempt in tried})
    rows: dict[tuple[str, str], dict[int, float]] = {}
    for attempt in sorted(tried, key=lambda attempt: (attempt["kernel"], _first(attempt))):
        scale = attempt["length_scale"]
        shown = f"{scale:.4g}" if isinstance(scale, float) else f"{scale[0]:.4g}, ..."
        errors = rows.setdefault((attempt["kernel"], shown), {})
        errors[attempt["n_components"]] = math.sqrt(attempt["relative_mse"])
    best = {size: min(e[size] for e in rows.values() if size in e) for size in sizes}

    def cell(errors: dict[int, float], size: int) -> str:
        if size not in errors:
            return ""
        return f"{errors[size]:.4f}" + ("*" if errors[size] == best[size] else " ")

    return [(*name, *(cell(errors, size) for size in sizes)) for name, errors in rows.items()]


def _first(attempt: dict[str, Any]) -> float:
    scale = attempt["length_scale"]
    return float(scale if isinstance(scale, float) else scale[0])
