"""Predictions and scores, written as CSV and Parquet."""

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from streamkern.extensions.tables.cells import csv, pa, parquet
from streamkern.storage.hdf5_files import IDS

# That are in memory at a time.
_ROWS = 65_536


def write_table(file: h5py.File, path: Path, ending: str) -> None:
    """Write the rows of a file, as `exported` says, to a new one that ends in .csv or .parquet."""
    opened = csv.CSVWriter if ending == ".csv" else parquet.ParquetWriter
    names = json.loads(file.attrs.get(IDS, "[]"))
    names += [name for name in file if name == "X" or name.startswith("y_")]
    names += ["support"] * ("support" in file and "support" not in names)
    classes = _decoded(file["classes"][:]) if "classes" in file else []
    writer: Any = None
    for start in range(0, len(file[names[0]]), _ROWS):
        columns = {}
        for name in names:
            part = file[name][start : start + _ROWS]
            if part.ndim == 1:
                columns[name] = part
            else:
                ends = classes if len(classes) == part.shape[1] else range(part.shape[1])
                columns |= {f"{name}_{end}": each for end, each in zip(ends, part.T, strict=True)}
        arrays = [pa.array(_decoded(values)) for values in columns.values()]
        batch = pa.record_batch(arrays, names=list(columns))
        writer = writer or opened(path, batch.schema)
        writer.write_batch(batch)
    writer.close()


def _decoded(values: Any) -> Any:
    if values.dtype.kind == "f" or values.dtype == np.uint64:  # which Arrow takes for signed
        return values.astype(values.dtype.newbyteorder("="), copy=False)
    texts = values.tolist()
    return [t.decode(errors="backslashreplace") if isinstance(t, bytes) else t for t in texts]
