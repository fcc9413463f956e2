"""New HDF5 files on a disk that may be full, and rows in them."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any, Self

import h5py
import numpy as np

from streamkern._typing import Array
from streamkern.errors import DataError, OutputError
from streamkern.registry import extension
from streamkern.runtime.stopping import between_callbacks, not_interrupted
from streamkern.sources.hdf5_opening import open_local
from streamkern.storage.outputs import check_format, check_output, replacing
from streamkern.storage.temporary_paths import temporary_path

_CHUNK_BYTES = 1 << 20
# HDF5 refuses an attribute of 64 KiB.
_ATTRIBUTE_BYTES = 60_000
# After so many bytes a writer lets go of what it wrote.
_RELEASED_BYTES = 32 << 20
# The attribute that lists the datasets of ids.
IDS = "id_names"
FORMATS = ("HDF5", "CSV", "Parquet")


class Disk(FileIO):
    """A file that remembers its first error, which is raised when HDF5 has let go of the file."""

    error: OSError | None = None

    @not_interrupted
    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        done = 0
        try:
            while done < len(view):
                done += super().write(view[done:])
        except OSError as error:
            self.error = self.error or error
        return len(view)

    @not_interrupted
    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size)
        except OSError as error:
            self.error = self.error or error
            return size or 0

    def check(self) -> None:
        if self.error:
            raise self.error


@contextmanager
def new_hdf5(path: str | Path, *, force: bool = False) -> Iterator[tuple[h5py.File, Disk]]:
    """Give a new HDF5 file and its disk; the file takes its name when everything is in it."""
    check_format(path, "HDF5")
    with replacing(path, force=force) as temporary, Disk(temporary, "w+") as disk:
        try:
            with between_callbacks(), h5py.File(disk, "w") as file:
                yield file, disk
        finally:
            # Of a disk that is full HDF5 may complain in words of its own.
            disk.check()


@dataclass
class RowWriter:
    """Appends rows to datasets of one open HDF5 file; made by `RowWriter.create`."""

    file: h5py.File
    disk: Disk
    release: bool
    _held: int = field(default=0, init=False)

    @classmethod
    @contextmanager
    def create(
        cls, path: str | Path, *, force: bool = False, release: bool = False
    ) -> Iterator[Self]:
        """Write a new file, which takes its name when everything is in it.

        `release` keeps what was written out of the operating system's cache: a long file is written
        faster so, while more rows are made, through the same few pages of memory.
        """
        with new_hdf5(path, force=force) as (file, disk):
            yield cls(file, disk, release and hasattr(os, "posix_fadvise"))

    def append(self, name: str, rows: Array) -> None:
        """Append rows (n, ...) to the dataset `name`, which the first rows make."""
        if name not in self.file:
            kind, row = rows.dtype.kind, rows.shape[1:]
            row_bytes = max(int(np.prod(row)) * rows.dtype.itemsize, 1)
            tall = max(min(_CHUNK_BYTES // row_bytes, len(rows)), 1)
            text = h5py.string_dtype("utf-8", rows.dtype.itemsize if kind == "S" else None)
            dtype = text if kind in "SO" else rows.dtype
            how = {"chunks": (tall, *row), "maxshape": (None, *row)}
            self.file.create_dataset(name, (0, *row), dtype, **how)
        dataset = self.file[name]
        if dataset.dtype.kind in "iu" and rows.dtype.kind == "O":
            raise DataError(f"{name} has integers first, but later cells are missing; fill them.")
        if dataset.dtype.kind == "O" and rows.dtype.kind in "iu":
            rows = rows.astype(str).astype(object)
        start = len(dataset)
        dataset.resize(start + len(rows), axis=0)
        dataset[start:] = rows.view(dataset.dtype) if rows.dtype.kind == "S" else rows
        self.file.flush()
        self.disk.check()
        self._held += rows.nbytes
        if self.release and self._held >= _RELEASED_BYTES:
            os.posix_fadvise(self.disk.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            self._held = 0

    def attach(self, axes: Mapping[str, Array], names: Sequence[str]) -> None:
        """Write the coordinates along the dimensions of datasets, as their scales."""
        for j, (axis, coordinates) in enumerate(axes.items()):
            self.append(axis, coordinates)
            self.file[axis].make_scale(axis)
            for name in names:
                self.file[name].dims[j].attach_scale(self.file[axis])

    def note(self, name: str, text: str) -> None:
        """Attach a text to the file: an attribute, or a dataset of that name where it is long."""
        if len(text.encode()) <= _ATTRIBUTE_BYTES:
            self.file.attrs[name] = text
        else:
            self.file[name] = text


def texts_of(texts: Sequence[str | bytes]) -> Array:
    """Return texts as `RowWriter` writes them: of fixed length, in UTF-8."""
    encoded = [text.encode() if isinstance(text, str) else text for text in texts]
    longest = max(map(len, encoded), default=1)
    return np.array(encoded, h5py.string_dtype("utf-8", max(longest, 1)))


@contextmanager
def exported(path: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Give the path of an HDF5 file to write, which becomes CSV or Parquet if `path` ends so.

    Ids of the rows come first.  Every column of the datasets `y_...`, or of X, follows, called
    `y_pred`, or `y_pred_0` and so on where there are several; in the place of numbers stand the
    classes, if a dataset `classes` names as many.
    """
    target = Path(path)
    folder = check_output(target, force=force, formats=FORMATS).parent
    if target.suffix.lower() not in (".csv", ".parquet"):
        yield target
        return
    tables = extension("tables", "written_tables")
    with temporary_path(folder) as made:
        made.mkdir(mode=0o700)
        written = made / "rows.h5"
        try:
            yield written
        except OutputError as error:
            raise OutputError(str(error).replace(str(written), str(target))) from error
        with replacing(target, force=force) as temporary, open_local(written) as file:
            tables.write_table(file, temporary, target.suffix.lower())
