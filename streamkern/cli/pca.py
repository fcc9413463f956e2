"""`streamkern pca`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from streamkern.cli import common_options
from streamkern.cli.common_options import Say, common
from streamkern.cli.model_options import feature_options, kernel_named, prepared
from streamkern.cli.report_option import json_report
from streamkern.errors import ParameterError

if TYPE_CHECKING:
    from streamkern.models.component_fit import FittedComponents

# What moments have decided already.
_OF_MOMENTS = {
    *("x", "weights", "kernel", "length_scale", "feature_map", "phase", "seed", "precision"),
    *("no_standardize", "random_features", "on_bad_rows", "checkpoint", "dry_run"),
}


@click.command()
@common_options.rows_argument
@common_options.x_option
@common_options.weights_option
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
@common_options.bad_rows_option
@common_options.checkpoint_option
@common_options.place_options
@common_options.dry_run_option
@common_options.force_option
@common
def pca(say: Say, **options: Any) -> None:
    """Find the principal components of the features of DATA: kernel PCA out of core.

    Targets are not read.  Of one moments file, which `streamkern moments` wrote, the components
    follow without reading rows.  `transform` then takes rows to their scores.
    """
    from streamkern.models.component_fit import ComponentOptions
    from streamkern.predict.principal_components import checked_number
    from streamkern.storage import holds_moments

    wanted = checked_number(_number(options["components"]))
    if len(options["data"]) == 1 and holds_moments(options["data"][0]):
        _of_moments(say, options, wanted)
        return
    asked = ComponentOptions(
        kernel_named(options["kernel"], options["length_scale"]),
        n_components=wanted,
        n_random_features=options["random_features"],
        feature_map=options["feature_map"],
        paired=not options["phase"],
        standardize=not options["no_standardize"],
        precision=options["precision"],
        on_bad_rows=options["on_bad_rows"],
        random_state=options["seed"],
    )
    job = prepared(say, options | {"y": None}, asked.passes())
    if job is None:
        return
    source, place, plan = job
    with place.entered(say, plan, options["out"]):
        found = asked.fit(source, checkpoint=options["checkpoint"])
    _save(say, options, found)
    common_options.drop_checkpoint(options["checkpoint"])


def _of_moments(say: Say, options: dict[str, Any], wanted: int | float | None) -> None:
    from streamkern.cli.compute_place import Place
    from streamkern.cli.output_paths import check_outputs
    from streamkern.models.component_fit import ComponentOptions, principal_components
    from streamkern.models.data_moments import load_moments

    (path,) = options["data"]
    for parameter in common_options.given_options(_OF_MOMENTS):
        raise ParameterError(f"{parameter.opts[0]} is decided by the moments {path}; leave it out.")
    check_outputs(options)
    moments = load_moments(path)
    with Place.of(options).entered(say, what=options["out"]):
        found = principal_components(moments, ComponentOptions.of(moments.options, wanted))
    _save(say, options, found)


def _save(say: Say, options: dict[str, Any], found: FittedComponents) -> None:
    """Save principal components, and print what they explain."""
    from streamkern.report.report_rows import Row, component_rows

    out = options["out"]
    found.save(out, force=options["force"])
    say.table("Principal components", [*component_rows(found.report), Row("file", out)])
    say.result(json_report(found.report, pca=out))


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
