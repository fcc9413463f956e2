"""Tables in other formats, written to chunked HDF5 a piece at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.errors import DataError, OutputError
from streamkern.storage import RowWriter, check_output
from streamkern.tables import open_table

if TYPE_CHECKING:
    from collections.abc import Sequence


def convert(
    src: str | Path, dst: str | Path, *, targets: Sequence[str] | None = (), force: bool = False
) -> dict[str, Any]:
    """Write a table as the datasets X (n, p) and y (n,) or (n, q) of an HDF5 file.

    CSV and Parquet columns become float32 where that holds every value of their types, else
    float64; NumPy arrays keep their type.  Missing values become NaN.  Names of columns are
    written as the JSON texts `feature_names` and `target_names`, the name of the file as `source`.
    Tables are read a piece at a time, except the arrays of an `.npz`, which are read whole.

    Parameters
    ----------
    src : path
        `.csv` or `.tsv` with a header line (also `.gz`), `.parquet`, `.npz` or `.npy`.
    dst : path
        The HDF5 file to write.
    targets : sequence of str, or None for a file of inputs alone
        CSV and Parquet: names of the target columns, at least one.  `.npy`: their numbers, from
        0, or from -1 at the end.  `.npz`: none, since the array y is the target.
    force : bool
        Replace `dst` where it exists.

    Returns
    -------
    dict
        `rows`, `n_features`, `n_targets`, `missing_rows` (rows with NaN in X or y) and `output`.

    Raises
    ------
    DataError
        If `src` cannot be read, is empty, or has columns that are not numbers or not there.
    OutputError
        If `dst` exists and `force` is not given, or cannot be written.
    """
    source = Path(src)
    table = open_table(source, targets)
    if check_output(dst, force=force).exists() and source.samefile(dst):
        raise OutputError(f"{dst} is the file to be converted; name another one to write.")
    rows = missing = 0
    with RowWriter.create(dst, force=force) as writer:
        for X, y in table.pieces:
            if not len(X):  # the first rows decide the size of chunks
                continue
            writer.append("X", X)
            incomplete = np.isnan(X).any(axis=1)
            if y is not None:
                writer.append("y", y)
                incomplete |= np.isnan(y).reshape(len(y), -1).any(axis=1)
            rows += len(X)
            missing += int(incomplete.sum())
        if not rows:
            raise DataError(f"{source} has no rows; at least one is needed.")
        writer.note("source", source.name)
        for name, columns in zip(("feature_names", "target_names"), table[:2], strict=True):
            if columns:
                writer.note(name, json.dumps(list(columns)))
    return {
        "rows": rows,
        "n_features": X.shape[1],
        "n_targets": 0 if y is None else sum(y.shape[1:]) or 1,
        "missing_rows": missing,
        "output": str(dst),
    }
