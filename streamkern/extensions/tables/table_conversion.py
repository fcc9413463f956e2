"""Tables in other formats, written to chunked HDF5 a piece at a time, as numbers or by a recipe."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import DataError, ParameterError
from streamkern.extensions.tables.column_encoders import Tally
from streamkern.extensions.tables.discovery import RecipeOptions
from streamkern.extensions.tables.recipe import Recipe, read_recipe
from streamkern.extensions.tables.stored_tables import StoredTable
from streamkern.extensions.tables.table_files import (
    NoRowsError,
    TableFile,
    check_columns,
    checked_file,
    discover_tables,
    is_table,
    no_labels,
    open_tables,
    read_npz,
)
from streamkern.sources.columns import RECIPE
from streamkern.storage.hdf5_files import RowWriter
from streamkern.storage.outputs import check_format, check_output, local_path
from streamkern.storage.untrusted import fixed

# X, y, weights and ids of some rows.
Rows = tuple[Array, Array | None, Floats | None, dict[str, Array]]

# Of the inputs that are made at once.
_PIECE_BYTES = 16 << 20


def convert(
    src: str | Path,
    dst: str | Path,
    *,
    targets: Sequence[str] | None = (),
    categorical: Sequence[str] = (),
    missing: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    weights: str | None = None,
    impute: bool = False,
    header: bool = True,
    ids: Sequence[str] = (),
    delimiter: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    like: str | Path | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Write a table as the datasets X (n, p) and y (n,) or (n, q) of an HDF5 file.

    A table of numbers alone with no input missing keeps them: CSV and Parquet columns become
    float32 where that holds every value of their types, else float64.  Arrays of an `.npz` keep
    their type, and NaN.  In any other CSV or Parquet file,

    - text becomes an input a category, 1 or 0; beyond 64 the rarest share one input.
      A category that comes up later only is 0 in all of them, or is one of the rarest.
    - categories whose type in Parquet has an order become their places in it.
    - dates and times become seconds since the start of 1970, and sine and cosine of the day, the
      week and the year where the rows go through it at least twice.
    - true and false are 1 and 0.
    - missing numbers and times are filled with the mean over all rows, which is exact; every column
      with missing values has one more input that says so.
    - columns with one value, text that differs in more than half of the rows, and an index that
      pandas wrote without a name are left out.
    - a target of text is written as labels, UTF-8 of fixed length; rows without one are left out.

    What became of every column is a recipe, stored in the file and in models that are fitted to
    it, and applied to other tables by `like` and by `predict`.  Tables are read twice, a piece at a
    time; the arrays of an `.npz` are read whole.

    Parameters
    ----------
    src : path
        `.csv` or `.tsv` with a header line (also `.gz`), `.parquet`, or `.npz`.
    dst : path
        The HDF5 file to write.
    targets : sequence of str, or None for a file of inputs alone
        Names of the target columns, at least one; none of an `.npz`, whose array y is the target.
    categorical : sequence of str
        Columns that are categories, though they hold numbers: those of a CSV are text as written
        unless all are plain numbers, without zeros before them.  A target here is one of labels.
    missing : sequence of str, optional
        Texts that mean missing, beside the empty one, in place of '?', 'NA', 'NaN', 'null', ...
    drop : sequence of str
        Columns to leave out.
    weights : str, optional
        The column of weights of rows, written as the dataset `weights` (n,).
    impute : bool
        Fill missing values of later tables too where all columns here are numbers, none missing.
    header : bool
        Whether a CSV begins with the names of its columns; else they are called 0, 1, 2, ...
    ids : sequence of str
        Columns that are no inputs, and that predictions carry; each is a dataset of its name.
    delimiter : str, optional
        What stands between the cells of a CSV; by default a comma, of `.tsv` a tab.
    decimal, thousands : str, optional
        The decimal mark of the numbers in a CSV, by default a point, and the one between thousands.
    like : path, optional
        A file with a recipe, of rows or of a model, which is applied as it is; its targets are
        written unless `targets` is None.
    force : bool
        Replace `dst` where it exists.

    Returns
    -------
    dict
        `rows`, `n_features`, `n_targets`, `missing_rows` (rows with NaN in X or y) and `output`;
        of a table that was not numbers alone also `columns` (what became of each) and
        `unlabelled_rows` (left out), and with `like` `unseen_categories` and `imputed_cells`.

    Raises
    ------
    DataError, ParameterError, OutputError
        If `src` cannot be read or has columns without a rule, options do not go together, or `dst`
        cannot be written or exists and `force` is not given.
    """
    source = local_path(src)
    if source != Path(dst):
        check_format(dst, "HDF5")
    columns = categorical, missing, drop, weights, impute
    options = RecipeOptions(*columns, header, ids, delimiter, decimal, thousands)
    if (options.is_given or like) and not is_table(source):
        raise ParameterError(f"{source} is no CSV or Parquet; such options are for these alone.")
    if like is not None and (options.is_given or targets):
        raise ParameterError(
            "like takes all from another recipe, so it goes with no other options; leave them out."
        )
    check_output(dst, force=force, inputs=[source, *([] if like is None else [like])])
    if checked_file(source) == ".npz":
        return _write_arrays(source, dst, targets, force=force)
    known, with_targets = None if like is None else read_recipe(like), targets is not None
    (table,), tally = open_tables([TableFile(str(source))], known or options), Tally()
    recipe = discover_tables([table], targets, options) if known is None else known
    check_columns([table], recipe, with_targets=with_targets)
    named = recipe.targets if with_targets else ()
    pieces = _encoded(table, recipe, tally, with_targets=with_targets)
    result = _write_rows(source, dst, pieces, recipe, named, force=force)
    if recipe.left_out or not recipe.is_plain:
        result["columns"] = dict(recipe.in_words())
        result["unlabelled_rows"] = table.n_rows - result["rows"]
    return result if like is None else result | tally.as_dict()


def _write_arrays(
    source: Path, dst: str | Path, targets: Sequence[str] | None, *, force: bool
) -> dict[str, Any]:
    if targets:
        raise DataError(f"{source} names its target itself, as the array y; give no targets.")
    X, y = read_npz(source, with_y=targets is not None)
    step = max(_PIECE_BYTES // (X.shape[1] * X.itemsize), 1)
    parts = (slice(start, start + step) for start in range(0, len(X), step))
    pieces: Iterator[Rows] = ((X[i], None if y is None else y[i], None, {}) for i in parts)
    return _write_rows(source, dst, pieces, None, (), force=force)


def _encoded(
    table: StoredTable, recipe: Recipe, tally: Tally, *, with_targets: bool
) -> Iterator[Rows]:
    """Yield what a recipe makes of the rows of a table that have a label, if there are labels."""
    needed = [column.name for column in recipe.columns]
    beside = [name for name in recipe.ids if name in table.schema.names]
    if with_targets:
        needed += [*recipe.targets, *filter(None, [recipe.weights])]
    label = max((len(text.encode()) for text in recipe.labels or ()), default=0)
    row_bytes = recipe.dtype.itemsize * len(recipe.feature_names) + label
    step, n_rows = max(_PIECE_BYTES // row_bytes, 1), 0
    for batch in table.read(list(dict.fromkeys([*needed, *beside]))):
        for start in range(0, batch.num_rows, step):
            part = batch.slice(start, step)
            with table.naming():
                X = recipe.transform(part, tally)
                y = recipe.read_targets(part) if with_targets else None
                weights = recipe.read_weights(part) if with_targets else None
                ids = recipe.read_beside(part, beside)
            if y is not None and y.dtype.kind == "S":
                kept = y != b""
                X, y = X[kept], y[kept]
                weights = None if weights is None else weights[kept]
                ids = {name: values[kept] for name, values in ids.items()}
            n_rows += len(X)
            yield X, y, weights, ids
    if table.n_rows and not n_rows:
        raise no_labels(table, recipe, table.n_rows)


def _write_rows(
    source: Path,
    dst: str | Path,
    pieces: Iterator[Rows],
    recipe: Recipe | None,
    targets: Sequence[str],
    *,
    force: bool,
) -> dict[str, Any]:
    """Write rows, where they come from, what their columns are called and how they became rows."""
    rows = missing = n_targets = 0
    with RowWriter.create(dst, force=force) as writer:
        for X, y, weights, ids in pieces:
            if not len(X):  # the first rows decide the size of chunks
                continue
            writer.append("X", X)
            incomplete = np.isnan(X).any(axis=1)
            if y is not None:
                writer.append("y", y)
                n_targets = sum(y.shape[1:]) or 1
                if y.dtype.kind == "f":
                    incomplete |= np.isnan(y).reshape(len(y), -1).any(axis=1)
            if weights is not None:
                writer.append("weights", weights)
            for name, values in ids.items():
                writer.append(name, values)
            rows += len(X)
            missing += int(incomplete.sum())
        if not rows:
            raise NoRowsError(f"{source} has no rows; at least one is needed.")
        writer.note("source", source.name)
        if targets:
            writer.note("target_names", json.dumps(list(targets)))
        if recipe is not None:
            writer.note("feature_names", json.dumps(recipe.feature_names))
            writer.file[RECIPE] = fixed(recipe.to_json())
        counts = {"rows": rows, "n_features": writer.file["X"].shape[1], "n_targets": n_targets}
    return counts | {"missing_rows": missing, "output": str(dst)}
