"""Options of predictions on a grid: `predict --grid` and `--extent`."""

import time
from typing import Any

import click

from streamkern.cli import options as shared
from streamkern.cli.console import Console
from streamkern.cli.job import check_outputs, place_of
from streamkern.cli.parameter_options import numbers_of
from streamkern.errors import ParameterError

OPTIONS = {
    "predict": (
        click.option(
            "--grid",
            metavar="N[,N...]",
            help="Predict a grid in the place of DATA, of so many points along each of up to three "
            "inputs: y_pred has a dimension for each, and a dataset of its name, or x0 and so on, "
            "the coordinates.  PRED.h5 may be .nc or .zarr then, which take xarray.",
        ),
        click.option(
            "--extent",
            metavar="LOW,HIGH[,LOW,HIGH...]",
            help="Where the grid begins and ends along every input; by default the range of the "
            "rows of the fit.",
        ),
    )
}
# How rows are read.
_OF_ROWS = ("x", "delimiter", "on_bad_rows", "support")


def predict(console: Console, model: Any, options: dict[str, Any]) -> bool:
    """Predict a grid where one is asked for, and say whether it is."""
    from streamkern.extensions.fields.grid_prediction import grid_to_file
    from streamkern.models.fitted_ridge import FittedRidge

    if not (options["grid"] or options["extent"]):
        if options["data"]:
            return False
        raise ParameterError("there is nothing to predict; name files of rows, or give --grid.")
    if options["data"] or not options["grid"]:
        raise ParameterError(
            "a grid, whose ends are --extent, is predicted in the place of DATA; give either rows "
            "or --grid."
        )
    if not isinstance(model, FittedRidge):
        raise ParameterError(
            f"a grid is predicted by one regression, which {options['model']} is not; predict rows."
        )
    shared.refuse_given(_OF_ROWS, "is for rows, of which a grid has none; leave it out.")
    points, extent = numbers_of(options["grid"], "--grid", kind=int), None
    if options["extent"]:
        ends = numbers_of(options["extent"], "--extent")
        extent = [ends[j : j + 2] for j in range(0, len(ends), 2)]
    begun, out = time.perf_counter(), options["out"]
    check_outputs(options)
    with place_of(console, options):
        how: Any = {"return_std": options["std"], "force": options["force"]}
        shape = grid_to_file(model, points, out, extent, **how)
    more = " and y_std" * options["std"]
    console.line(f"{' x '.join(f'{n:,}' for n in shape)} predictions in {out}:y_pred{more}")
    console.result({"shape": list(shape), "seconds": time.perf_counter() - begun})
    return True
