"""Tables of rows, written to HDF5 a piece at a time by one writer."""

from __future__ import annotations

from contextlib import contextmanager
from io import FileIO
from typing import TYPE_CHECKING

import h5py
import numpy as np

from streamkern.storage.outputs import replacing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from typing_extensions import Buffer

    from streamkern._typing import Array

_CHUNK_BYTES = 1 << 20


class _Disk(FileIO):
    """A file that remembers its first error instead of raising it.

    HDF5 cannot close a file that it cannot write, and takes the process down with it.  So it is
    left to think that all is well, and the error is raised when it has let go.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, "w+")
        self.error: OSError | None = None

    def write(self, data: Buffer) -> int:
        """Write all of `data`, or remember why not."""
        view = memoryview(data).cast("B")
        done = 0
        try:
            while done < len(view):
                done += super().write(view[done:])
        except OSError as error:
            self.error = self.error or error
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Set the size, or remember why not."""
        try:
            return super().truncate(size)
        except OSError as error:
            self.error = self.error or error
            return size or 0

    def check(self) -> None:
        """Raise the error that was met, if any."""
        if self.error:
            raise self.error


# HDF5 refuses an attribute of 64 KiB.
_ATTRIBUTE_BYTES = 60_000


class RowWriter:
    """Appends rows to datasets of one open HDF5 file; made by `RowWriter.create`.

    Parameters
    ----------
    file : h5py.File
    disk : _Disk
        What the file is written to.
    """

    def __init__(self, file: h5py.File, disk: _Disk) -> None:
        self.file = file
        self.disk = disk

    @classmethod
    @contextmanager
    def create(cls, path: str | Path, *, force: bool = False) -> Iterator[RowWriter]:
        """Write a new file, which takes its name when everything is in it."""
        with replacing(path, force=force) as temporary, _Disk(temporary) as disk:
            with h5py.File(disk, "w") as file:
                yield cls(file, disk)
            disk.check()

    def append(self, name: str, rows: Array) -> None:
        """Append rows (n, ...) to the dataset `name`, which the first rows make."""
        if name not in self.file:
            row_bytes = max(int(np.prod(rows.shape[1:])) * rows.dtype.itemsize, 1)
            self.file.create_dataset(
                name,
                shape=(0, *rows.shape[1:]),
                maxshape=(None, *rows.shape[1:]),
                chunks=(max(min(_CHUNK_BYTES // row_bytes, len(rows)), 1), *rows.shape[1:]),
                dtype=rows.dtype,
            )
        dataset = self.file[name]
        start = len(dataset)
        dataset.resize(start + len(rows), axis=0)
        dataset[start:] = rows
        self.file.flush()
        self.disk.check()

    def note(self, name: str, text: str) -> None:
        """Attach a text to the file: an attribute, or a dataset of that name where it is long."""
        if len(text.encode()) <= _ATTRIBUTE_BYTES:
            self.file.attrs[name] = text
        else:
            self.file[name] = text
