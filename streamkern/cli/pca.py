"""`streamkern pca`."""

from __future__ import annotations

from typing import Any

import click

from streamkern.cli.common_options import (
    Say,
    bad_rows_option,
    checkpoint_option,
    common,
    drop_checkpoint,
    force_option,
    place_options,
    weights_option,
)
from streamkern.cli.model_options import feature_options, kernel_named, prepared
from streamkern.errors import ParameterError

# What moments have decided already.
_OF_MOMENTS = {
    *("x", "weights", "kernel", "length_scale", "feature_map", "phase", "seed", "precision"),
    *("no_standardize", "random_features", "on_bad_rows", "checkpoint", "dry_run"),
}


@click.command()
@click.argument("data", nargs=-1, required=True, metavar="DATA...")
@click.option("--x", default="X", show_default=True, help="Dataset of inputs.")
@weights_option
@click.option("--out", required=True, metavar="PCA.h5", help="The file of components to write.")
@click.option(
    "--components",
    metavar="K|SHARE",
    help="Keep K principal components, or as many as explain a share of the variance; by default "
    "all whose variance is more than rounding.",
)
@click.option(
    "--random-features",
    type=int,
    default=2048,
    show_default=True,
    metavar="D",
    help="Features of a row, which --components counts in other commands.",
)
@feature_options
@bad_rows_option
@checkpoint_option
@place_options
@click.option("--dry-run", is_flag=True, help="Print the plan, and read no rows.")
@force_option
@common
def pca(say: Say, **options: Any) -> None:
    """Find the principal components of the features of DATA: kernel PCA out of core.

    Targets are not read.  Of one moments file, which `streamkern moments` wrote, the components
    follow without reading rows.  `transform` then takes rows to their scores.
    """
    from streamkern.models.component_fit import principal_components, save_components
    from streamkern.models.moments_fit import fit_moments
    from streamkern.parameters.fit_options import FitOptions
    from streamkern.predict.principal_components import checked_number
    from streamkern.storage import holds_moments

    wanted = checked_number(_number(options["components"]))
    if len(options["data"]) == 1 and holds_moments(options["data"][0]):
        _of_moments(say, options, wanted)
        return
    checked = FitOptions(
        kernel_named(options["kernel"], options["length_scale"]),
        n_components=options["random_features"],
        feature_map=options["feature_map"],
        paired=not options["phase"],
        standardize=not options["no_standardize"],
        fit_intercept=True,
        precision=options["precision"],
        on_bad_rows=options["on_bad_rows"],
        random_state=options["seed"],
    )
    job = prepared(say, options | {"y": None}, checked)
    if job is None:
        return
    source, place, plan = job
    with place.entered(say, plan, options["out"]):
        moments = fit_moments(
            source, checked, needs_targets=False, checkpoint=options["checkpoint"]
        )
        found, report = principal_components(moments, wanted)
        save_components(options["out"], found, report, checked, wanted, force=options["force"])
        drop_checkpoint(options["checkpoint"])
    _report_on(say, report, options["out"])


def _of_moments(say: Say, options: dict[str, Any], wanted: int | float | None) -> None:
    from streamkern.cli.compute_place import Place
    from streamkern.cli.output_paths import check_outputs
    from streamkern.models.component_fit import principal_components, save_components
    from streamkern.models.data_moments import load_moments

    (path,), out = options["data"], options["out"]
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if given and name in _OF_MOMENTS:
            raise ParameterError(
                f"{parameter.opts[0]} is decided by the moments {path}; leave it out."
            )
    check_outputs(options)
    moments = load_moments(path)
    with Place.of(options).entered(say, what=out):
        found, report = principal_components(moments, wanted)
    save_components(out, found, report, moments.options, wanted, force=options["force"])
    _report_on(say, report, out)


def _number(text: str | None) -> int | float | None:
    """Return the whole number or the share that --components names."""
    if text is None:
        return None
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    raise ParameterError(
        f"--components must be a whole number, or a share between 0 and 1, not {text!r}; give one "
        f"of these."
    )


def pca_report(report: dict[str, Any], path: str) -> dict[str, Any]:
    """Return the JSON of principal components."""
    return {key: value for key, value in report.items() if key != "data"} | {"pca": str(path)}


def pca_rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what a person wants to know of principal components, as pairs of name and value."""
    from streamkern.cli.fit import input_rows, pass_rows

    shares = report["explained_variance_ratio"]
    shown = ", ".join(f"{100 * share:.3g}%" for share in shares[:5])
    K, rank = report["n_components"], report["rank"]
    return [
        *input_rows(report),
        ("random features", f"{report['n_random_features']:,} ({report['precision']} precision)"),
        ("principal components", f"{K:,} of {rank:,} above rounding"),
        ("variance explained", f"{100 * sum(shares):.4g}%: {shown}" + ", ..." * (len(shares) > 5)),
        *pass_rows(report),
    ]


def _report_on(say: Say, report: dict[str, Any], path: str) -> None:
    say.table("Principal components", [*pca_rows(report), ("file", path)])
    say.result(pca_report(report, path))
