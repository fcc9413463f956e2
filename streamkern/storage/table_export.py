"""Rows that were made, as CSV or Parquet for those who read no HDF5."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py

from streamkern.storage.outputs import check_output, replacing, temporary_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ROWS = 65_536
FORMATS = ("HDF5", "CSV", "Parquet")


@contextmanager
def exported(path: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Give the path of an HDF5 file to write, which becomes CSV or Parquet if `path` ends so.

    Every column of the datasets `y_...`, or of X, is a column of the table, called `y_pred`, or
    `y_pred_0` and so on where there are several; in the place of numbers stand the classes, if a
    dataset `classes` names as many.
    """
    target = Path(path)
    folder = check_output(target, force=force, formats=FORMATS).parent
    if target.suffix.lower() not in (".csv", ".parquet"):
        yield target
        return
    with temporary_path(folder) as made:
        made.mkdir(mode=0o700)
        written = made / "rows.h5"
        yield written
        with replacing(target, force=force) as temporary, h5py.File(written) as file:
            _write_table(file, temporary, target.suffix.lower())


def _write_table(file: h5py.File, path: Path, ending: str) -> None:
    import pyarrow as pa  # noqa: PLC0415  slow
    from pyarrow import csv, parquet  # noqa: PLC0415  slow

    opened = csv.CSVWriter if ending == ".csv" else parquet.ParquetWriter
    names = [name for name in file if name == "X" or name.startswith("y_")]
    n_rows = len(file[names[0]])
    classes = _decoded(file["classes"][:]) if "classes" in file else []
    columns = [each for name in names for each in _columns(name, file[name].shape, classes)]
    writer: Any = None
    for start in range(0, n_rows, _ROWS):
        parts = {name: file[name][start : start + _ROWS] for name in names}
        arrays = [parts[name] if j is None else parts[name][:, j] for _, name, j in columns]
        texts = [pa.array(_decoded(values)) for values in arrays]
        batch = pa.record_batch(texts, names=[called for called, _, _ in columns])
        writer = writer or opened(path, batch.schema)
        writer.write_batch(batch)
    writer.close()


def _columns(
    name: str, shape: tuple[int, ...], classes: Sequence[Any]
) -> list[tuple[str, str, int | None]]:
    """Return the columns of a dataset: what they are called, its name, and their places in it."""
    if len(shape) == 1:
        return [(name, name, None)]
    ends = classes if len(classes) == shape[1] else range(shape[1])
    return [(f"{name}_{end}", name, j) for j, end in enumerate(ends)]


def _decoded(values: Any) -> Any:
    if values.dtype.kind == "f":
        return values
    return [value.decode() if isinstance(value, bytes) else value for value in values.tolist()]
