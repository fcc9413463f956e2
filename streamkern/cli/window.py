"""`streamkern window`."""

from __future__ import annotations

from typing import Any

import click

from streamkern.cli.class_options import growing_class_options, regression_of
from streamkern.cli.common_options import (
    Say,
    bad_rows_option,
    common,
    data_options,
    force_option,
    place_options,
)
from streamkern.cli.model_options import (
    map_options,
    model_of,
    penalty_of,
    penalty_options,
    sparse_of,
    sparse_options,
)
from streamkern.cli.report_option import folders_option, report_option, write_report


@click.command()
@data_options
@click.option(
    "--last", "n_files", type=int, required=True, metavar="K", help="Files that the window has."
)
@click.option(
    "--keep", required=True, metavar="DIR", help="The folder of the moments of every file."
)
@click.option("--out", required=True, metavar="MODEL.h5", help="The model file to write.")
@map_options
@penalty_options
@sparse_options
@growing_class_options
@click.option("--no-intercept", is_flag=True, help="Fit through the origin.")
@bad_rows_option
@place_options
@folders_option
@report_option
@force_option
@common
def window(say: Say, **options: Any) -> None:
    """Fit the rows of the last K files of DATA, a series such as a file a day.

    DATA is in the order of time; a quoted pattern is sorted by name. The moments of every file are
    kept in DIR. Run again with --force when files have come: only these are read, and moments of
    files that are not among the last K any more are removed. The first file of all decides length
    scale and standardisation, and the first K files the classes; take another DIR to choose them
    again.
    """
    from dataclasses import replace

    from streamkern.cli.compute_place import Place
    from streamkern.cli.fit import report_on
    from streamkern.cli.output_paths import check_outputs
    from streamkern.models.ridge_options import RidgeOptions
    from streamkern.models.window_fit import fit_window, last_files
    from streamkern.sources import open_hdf5

    choices = penalty_of(options) | sparse_of(options)
    model = model_of(options, **choices, fit_intercept=not options["no_intercept"])
    checked = RidgeOptions(regression_of(model)).passes()
    names = options["x"], options["y"]
    series = open_hdf5(
        options["data"], *names, weights=options["weights"], labels=options["classify"]
    )
    source = replace(last_files(series, options["n_files"]), folders=options["folders"])
    check_outputs(options, series)  # of which the window may be a part
    place = Place.of(options)
    # Files are read one at a time.
    largest = replace(source, files=(max(source.files, key=lambda file: file.n_rows),))
    plan = checked.planned(largest, indexed=True, n_workers=place.workers)
    with place.entered(say, plan, options["out"]):
        fit_window(model, source, options["keep"], n_files=options["n_files"])
        model.save(options["out"], force=options["force"])
        write_report(say, model, options, source)
    report_on(say, "Fitted", model, options["out"])
