"""`streamkern pca`."""

from contextlib import suppress
from typing import Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Console, command
from streamkern.cli.job import check_outputs, place_of
from streamkern.cli.parameter_options import GIVEN_KERNEL, OF_MAPS, parameter_options, values_of
from streamkern.cli.row_files import prepared
from streamkern.cli.saving import drop_checkpoint, json_report
from streamkern.errors import ParameterError

# What moments have decided already.
_OF_MOMENTS = (
    *("x", "weights", "targets", "ids", "delimiter", "decimal", "thousands"),
    *(*OF_MAPS, "length_scale", "random_features", "on_bad_rows"),
    *("checkpoint", "dry_run"),
)


@command(
    shared.rows_argument,
    shared.x_option,
    shared.weights_option,
    *shared.options_of_extensions("rows"),
    shared.out_option("PCA.h5", "The file of components to write."),
    click.option(
        "--components",
        metavar="K|SHARE",
        help="Keep K principal components, or as many as explain a share of the variance; by "
        "default all whose variance is more than rounding.",
    ),
    click.option(
        "--random-features",
        type=int,
        default=2048,
        metavar="D",
        help="Features of a row, which --components counts in other commands.",
    ),
    *parameter_options(*OF_MAPS, "on_bad_rows", kernel=GIVEN_KERNEL),
    shared.checkpoint_option,
    *shared.place_options,
    shared.dry_run_option,
    shared.force_option,
    examples=("streamkern pca train.h5 --out components.h5",),
)
def pca(console: Console, **options: Any) -> None:
    """Find the principal components of the features of DATA: kernel PCA out of core.

    Targets are not read.  Of one moments file, which `streamkern moments` wrote, the components
    follow without reading rows.  `transform` then takes rows to their scores.
    """
    from streamkern.extensions.components.fitted_components import (
        ComponentOptions,
        checked_number,
        principal_components,
    )
    from streamkern.models.data_moments import load_moments
    from streamkern.parameters.planning import Job
    from streamkern.storage.codec import MOMENTS, kind_of

    wanted = checked_number(_number(options["components"]))
    path, out = options["data"][0], options["out"]
    if len(options["data"]) == 1 and kind_of(path) is MOMENTS:
        shared.refuse_given(_OF_MOMENTS, f"is decided by the moments {path}; leave it out.")
        check_outputs(options)
        moments = load_moments(path)
        with place_of(console, options):
            found = principal_components(moments, ComponentOptions.of(moments.options, wanted))
    else:
        given = values_of(options) | {"n_random_features": options["random_features"]}
        asked = ComponentOptions(n_components=wanted, **given)
        alone = {"y": None, "targets": (), "drop": options.get("targets", ())}
        with prepared(console, options | alone, Job(asked.pass_options(), {})) as source:
            found = asked.fit(source, checkpoint=options["checkpoint"])
    found.save(out, force=options["force"])
    console.table("Principal components", [*found.rows_of(found.report), ("file", out)])
    console.result(json_report(found.report, {"pca": out}))
    drop_checkpoint(options["checkpoint"])


def _number(text: str | None) -> int | float | None:
    if text is None:
        return None
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    raise ParameterError(
        f"--components must be a whole number, or a share between 0 and 1, not {text!r}; give one "
        f"of these."
    )
