"""Commands that take rows through a model: they read HDF5 or a raw table, and write predictions."""

from __future__ import annotations

import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamkern.cli.job import check_outputs, place_of
from streamkern.errors import DataError, ModelFileError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streamkern.cli.console import Say
    from streamkern.models.fitted_model import FittedModel
    from streamkern.parameters.fit_report import FitReport
    from streamkern.sources.hdf5 import HDF5Source


@contextmanager
def opened_rows(
    options: dict[str, Any], report: FitReport, y: str | None, *, labels: bool = False
) -> Iterator[tuple[HDF5Source, int, dict[str, int]]]:
    """Open HDF5 files; or CSV and Parquet files, whose rows are converted for that time.

    Gives rows, how many others of a table have no label, and counts of cells not expected there.
    Without `y` there are neither targets nor weights.  Converted rows are kept beside the output of
    the command, or else in the folder for temporary files.  Weights of tables are those of the
    recipe in the model's report, unless the options name others.
    """
    from streamkern.sources import open_hdf5
    from streamkern.sources.headers import matching
    from streamkern.sources.preprocessing import recipe_of
    from streamkern.sources.preprocessing.column_names import check_same_inputs
    from streamkern.sources.tables import is_table
    from streamkern.storage import FORMATS

    paths, out = options["data"], options.get("out")
    weights = options.get("weights")
    if not any(map(is_table, paths)):
        source = open_hdf5(paths, options["x"], y, weights=weights, labels=labels)
        check_same_inputs(report, source.describe())
        yield source, 0, {}
        return
    if options["x"] != "X" or y not in (None, "y"):
        raise ParameterError("--x and --y name datasets of HDF5, and tables have none; omit them.")
    tables = [name for path in paths for name in matching(path)]
    if other := [name for name in tables if not is_table(name)]:
        raise DataError(f"{other[0]} is no CSV or Parquet, but {tables[0]} is; name one kind.")
    recipe = recipe_of(report)
    if recipe is None:
        raise ModelFileError(
            f"{options['model']} was not fitted to a table that `streamkern convert` read, so "
            f"{tables[0]} cannot become inputs; convert it to HDF5."
        )
    from streamkern.storage.table_encoding import encoded_tables

    if out:
        check_outputs(options | {"data": tables}, formats=FORMATS)
    folder = Path(out).resolve().parent if out else Path(tempfile.gettempdir())
    recipe = replace(recipe, weights=weights or recipe.weights)
    with encoded_tables(tables, recipe, folder, with_targets=y is not None) as (paths, bare, odd):
        weights = "weights" if y is not None and recipe.weights else None
        yield open_hdf5(paths, "X", y, weights=weights, labels=labels), bare, odd


def write_rows(
    say: Say,
    options: dict[str, Any],
    model: FittedModel,
    write: Callable[..., int],
    *,
    what: str,
    missing: str = "NaN",
    **more: Any,
) -> None:
    """Write what a model gives for every row, and print counts.

    `write` takes rows, a path, and whether to skip bad rows and replace the file; it returns how
    many rows it skipped.
    """
    from streamkern.storage import FORMATS, exported

    begun, out = time.perf_counter(), options["out"]
    with opened_rows(options, model.report, y=None) as (source, _, unexpected):
        model.predictor.check((source.n_samples, source.n_features))
        check_outputs(options, source, formats=FORMATS)
        with place_of(say, options), exported(out, force=options["force"]) as path:
            skip = options["on_bad_rows"] == "skip"
            skipped = write(source, path, skip_bad_rows=skip, force=options["force"])
    seconds, n_rows = time.perf_counter() - begun, source.n_samples
    say.line(f"{n_rows:,} {what}{f', {skipped:,} of them {missing}' if skipped else ''}")
    rate = {"seconds": seconds, "rows_per_second": n_rows / seconds}
    say.result({"rows": n_rows, "skipped_rows": skipped} | rate | unexpected | more)
