"""Tables of rows, written to HDF5 a piece at a time by one writer."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import h5py
import numpy as np

from streamkern.storage.outputs import replacing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from streamkern._typing import Array

_CHUNK_BYTES = 1 << 20


class RowWriter:
    """Appends rows to datasets of one open HDF5 file; made by `RowWriter.create`.

    Parameters
    ----------
    file : h5py.File
    """

    def __init__(self, file: h5py.File) -> None:
        self.file = file

    @classmethod
    @contextmanager
    def create(cls, path: str | Path, *, force: bool = False) -> Iterator[RowWriter]:
        """Write a new file, which takes its name when everything is in it."""
        with replacing(path, force=force) as temporary, h5py.File(temporary, "w") as file:
            yield cls(file)
            file.flush()

    def append(self, name: str, rows: Array) -> None:
        """Append rows (n, ...) to the dataset `name`, which the first rows make."""
        if name not in self.file:
            row_bytes = max(int(np.prod(rows.shape[1:])) * rows.dtype.itemsize, 1)
            self.file.create_dataset(
                name,
                shape=(0, *rows.shape[1:]),
                maxshape=(None, *rows.shape[1:]),
                chunks=(max(_CHUNK_BYTES // row_bytes, 1), *rows.shape[1:]),
                dtype=rows.dtype,
            )
        dataset = self.file[name]
        start = len(dataset)
        dataset.resize(start + len(rows), axis=0)
        dataset[start:] = rows
        self.file.flush()
