"""`streamkern moments`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamkern.cli import common_options, model_options
from streamkern.cli.class_options import class_options
from streamkern.cli.common_options import Say, common
from streamkern.cli.report_option import folders_option, json_report
from streamkern.kernels import length_scale_of

if TYPE_CHECKING:
    from streamkern.models.data_moments import DataMoments


@click.command()
@common_options.data_options
@click.option("--out", required=True, metavar="M.h5", help="The moments file to write.")
@model_options.map_options
@model_options.like_option
@model_options.folds_options
@class_options
@common_options.bad_rows_option
@common_options.checkpoint_option
@common_options.place_options
@folders_option
@common_options.dry_run_option
@common_options.force_option
@common
def moments(say: Say, **options: Any) -> None:
    """Reduce the rows of DATA to the moments that `solve` makes models of.

    Moments can be merged with those of other rows, and rows be forgotten, as if the rest had been
    read together. For that every row is known again: by 9 bytes, in memory and in the file.
    Moments of further rows are made with --like M.h5.
    """
    from streamkern.models.loading import template_of
    from streamkern.storage import holds_moments

    like_path = options["like"]
    folds = ["folds"] if like_path and holds_moments(like_path) else []
    model_options.check_like(like_path, *folds)
    task = model_options.task_of(options)
    parameters = model_options.parameters_of(options, **model_options.folds_of(options))
    template = template_of(like_path)
    job = model_options.prepared(say, options, parameters.moments(template), indexed=True)
    if job is None:
        return
    source, place, plan = job
    with place.entered(say, plan, options["out"]):
        how = {"template": template, "checkpoint": options["checkpoint"]}
        found = task.moments(parameters, (source, None, None), **how).gathered()
    save_moments(say, "Moments", found, options["out"], force=options["force"])
    common_options.drop_checkpoint(options["checkpoint"])


def save_moments(say: Say, title: str, found: DataMoments, path: str, *, force: bool) -> None:
    """Save moments, and print what they are of."""
    from streamkern.report.report_rows import moments_rows

    found.save(path, force=force)
    report = moments_report(found, path)
    say.table(title, moments_rows(report))
    say.result(report)


def moments_report(found: DataMoments, path: str) -> dict[str, Any]:
    """Return the JSON of a moments file."""
    return json_report(found.report) | {
        "n_components": found.feature_map.n_components,
        "kernel": found.kernel.name,
        "kernel_parameters": found.kernel.parameters(),
        "length_scale": length_scale_of(found.kernel),
        "bytes": Path(path).stat().st_size,
        "moments": path,
    }
