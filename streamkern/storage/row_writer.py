"""Tables of rows, written to HDF5 a piece at a time by one writer."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from h5py import string_dtype

from streamkern.storage.disk import new_hdf5
from streamkern.storage.untrusted import fixed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import h5py

    from streamkern._typing import Array
    from streamkern.storage.disk import Disk

_CHUNK_BYTES = 1 << 20
# HDF5 refuses an attribute of 64 KiB.
_ATTRIBUTE_BYTES = 60_000
# After so many bytes a writer lets go of what it wrote.
_RELEASED_BYTES = 32 << 20


class RowWriter:
    """Appends rows to datasets of one open HDF5 file; made by `RowWriter.create`."""

    def __init__(self, file: h5py.File, disk: Disk, release: bool) -> None:
        self.file = file
        self.disk = disk
        self.release = release and hasattr(os, "posix_fadvise")
        self._held = 0

    @classmethod
    @contextmanager
    def create(
        cls, path: str | Path, *, force: bool = False, release: bool = False
    ) -> Iterator[RowWriter]:
        """Write a new file, which takes its name when everything is in it.

        `release` keeps what was written out of the operating system's cache.  A file that is long
        and not read soon is written faster so: to the disk while more rows are made, and through
        the same few pages of memory.
        """
        with new_hdf5(path, force=force) as (file, disk):
            yield cls(file, disk, release)

    def append(self, name: str, rows: Array) -> None:
        """Append rows (n, ...) to the dataset `name`, which the first rows make.

        Bytes are those of UTF-8 texts, and stay of fixed length.
        """
        if name not in self.file:
            is_text = rows.dtype.kind == "S"
            row_bytes = max(int(np.prod(rows.shape[1:])) * rows.dtype.itemsize, 1)
            self.file.create_dataset(
                name,
                shape=(0, *rows.shape[1:]),
                maxshape=(None, *rows.shape[1:]),
                chunks=(max(min(_CHUNK_BYTES // row_bytes, len(rows)), 1), *rows.shape[1:]),
                dtype=string_dtype("utf-8", rows.dtype.itemsize) if is_text else rows.dtype,
            )
        dataset = self.file[name]
        start = len(dataset)
        dataset.resize(start + len(rows), axis=0)
        dataset[start:] = rows.view(dataset.dtype) if rows.dtype.kind == "S" else rows
        self.file.flush()
        self.disk.check()
        self._held += rows.nbytes
        if self.release and self._held >= _RELEASED_BYTES:
            os.posix_fadvise(self.disk.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            self._held = 0

    def note(self, name: str, text: str) -> None:
        """Attach a text to the file: an attribute, or a dataset of that name where it is long."""
        if len(text.encode()) <= _ATTRIBUTE_BYTES:
            self.file.attrs[name] = text
        else:
            self.file[name] = text

    def store(self, name: str, text: str) -> None:
        """Write a text of fixed length, which is safe to read again from a stranger."""
        self.file[name] = fixed(text)


def texts_of(texts: Sequence[str | bytes]) -> Array:
    """Return texts as `RowWriter` writes them: of fixed length, in UTF-8."""
    encoded = [text.encode() if isinstance(text, str) else text for text in texts]
    longest = max(map(len, encoded), default=1)
    return np.array(encoded, string_dtype("utf-8", max(longest, 1)))
