"""The rows that a model is applied to: files of HDF5, or tables by the recipe of the model."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamkern.sources.hdf5 import HDF5Source


class OpenedRows(NamedTuple):
    """Rows, how many others of a table have no label, and counts of cells not expected there."""

    source: HDF5Source
    unlabelled: int
    unexpected: dict[str, int]


@contextmanager
def opened_rows(
    options: dict[str, Any], card: dict[str, Any], y: str | None, *, labels: bool = False
) -> Iterator[OpenedRows]:
    """Open HDF5 files; or CSV and Parquet files, whose rows are converted for that time.

    Parameters
    ----------
    options : dict
        Of the command: model, data and x; weights where targets are wanted, the name of a dataset,
        or of a column of tables, which is that of the recipe by default; and out and force where it
        writes a file.  Converted rows are kept beside that file, or else in the folder for
        temporary files.
    card : dict
        Of the model, or of principal components.
    y : str, optional
        The dataset of targets, None where neither they nor weights are wanted.
    labels : bool
        Whether targets are labels.

    Raises
    ------
    DataError
        If rows cannot be used.
    ModelFileError
        If there are tables, but the model has no recipe.
    ParameterError
        If there are tables, but datasets are named.
    """
    from streamkern.cli.output_paths import check_outputs
    from streamkern.errors import DataError, ModelFileError, ParameterError
    from streamkern.sources import open_hdf5
    from streamkern.sources.headers import matching
    from streamkern.sources.preprocessing import recipe_of
    from streamkern.sources.preprocessing.column_names import check_same_inputs
    from streamkern.sources.table_batches import is_table
    from streamkern.storage import FORMATS

    paths, out = options["data"], options.get("out")
    weights = options.get("weights")
    if not any(map(is_table, paths)):
        source = open_hdf5(paths, options["x"], y, weights=weights, labels=labels)
        check_same_inputs(card["report"], source.describe())
        yield OpenedRows(source, 0, {})
        return
    if options["x"] != "X" or y not in (None, "y"):
        raise ParameterError("--x and --y name datasets of HDF5, and tables have none; omit them.")
    tables = [name for path in paths for name in matching(path)]
    if other := [name for name in tables if not is_table(name)]:
        raise DataError(f"{other[0]} is no CSV or Parquet, but {tables[0]} is; name one kind.")
    recipe = recipe_of(card["report"])
    if recipe is None:
        raise ModelFileError(
            f"{options['model']} was not fitted to a table that `streamkern convert` read, so "
            f"{tables[0]} cannot become inputs; convert it to HDF5."
        )
    from streamkern.storage.table_conversion import encoded_tables

    if out:
        check_outputs(options | {"data": tables}, formats=FORMATS)
    folder = Path(out).resolve().parent if out else Path(tempfile.gettempdir())
    recipe = replace(recipe, weights=weights or recipe.weights)
    with encoded_tables(tables, recipe, folder, with_targets=y is not None) as (paths, bare, odd):
        weights = "weights" if y is not None and recipe.weights else None
        yield OpenedRows(open_hdf5(paths, "X", y, weights=weights, labels=labels), bare, odd)
