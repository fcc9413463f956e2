"""Checks of datasets: they hold numbers, can be decoded and were written to their end."""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

import h5py
import numpy as np

from streamkern.errors import DataError
from streamkern.errors.formatting import unknown
from streamkern.sources.external_files import (
    LinkedFiles,
    boxes,
    first_gap,
    is_unlimited,
    rows_of,
    volume,
)
from streamkern.sources.filters import check_chunk_sizes, check_filters

# Virtual datasets of virtual ones, and so on; one of itself ends in a crash of HDF5.
_DEEPEST = 8
_CLASSES = {h5py.h5t.INTEGER: "integers", h5py.h5t.FLOAT: "floats", h5py.h5t.TIME: "times"}

# The shape of a dataset that is all there, and the decoded size of a row of its chunks.
_Whole: TypeAlias = tuple[tuple[int, ...], int]


def _packing(dataset: h5py.Dataset) -> str | None:
    """Return the attribute by which numbers stand for others (CF conventions), None without one."""
    usual: dict[str, int | None] = {"scale_factor": 1, "add_offset": 0}
    if dataset.dtype.kind in "iu":  # of floats they are often there, and far out where they count
        usual |= {"_FillValue": None, "missing_value": None}
    for name, value in usual.items():
        given = dataset.attrs.get(name, value)
        if isinstance(given, (np.number, np.ndarray)) and np.any(given != value):
            return name
    return None


class Tables:
    """The datasets of an open file, checked before a value is read, and what they are made of."""

    def __init__(self, file: h5py.File, path: str, rows: tuple[int, int] | None = None) -> None:
        self.chunk_bytes = 0
        self._file, self._path, self._rows = file, path, rows
        self._linked = LinkedFiles(path)
        self.files = self._linked.files  # all others that values are in
        self._known: dict[tuple[str, str, str], _Whole] = {}

    def numbers(self, name: str, *, with_booleans: bool = True) -> h5py.Dataset:
        """Return a dataset of numbers that are all there, or raise DataError.

        Booleans are 0 and 1, but labels where they are targets.
        """
        found = self._dataset(name)
        kind = kind_of(found)
        if kind not in ("fiub" if with_booleans else "fiu"):
            may_be_labels = kind == "b" or is_text(found)
            labels = ", or, if these are labels of classes, give --classify" * may_be_labels
            raise DataError(
                f"{self._path}: {name} must hold floats or integers, but its type is "
                f"{'boolean' if kind == 'b' else type_of(found)}; convert it to numbers first"
                f"{labels}."
            )
        if packing := _packing(found):
            raise DataError(
                f"{self._path}: {name} holds no plain numbers, by its attribute {packing}; write "
                f"those that they stand for, with NaN where one is missing."
            )
        return self.check(found, name)

    def labels(self, name: str) -> h5py.Dataset:
        found = self._dataset(name)
        if kind_of(found) not in "fiub" and not is_text(found):
            raise DataError(
                f"{self._path}: {name} must hold text, booleans or numbers to be labels, but its "
                f"type is {type_of(found)}; convert it to one of these."
            )
        return self.check(found, name)

    def _dataset(self, name: str) -> h5py.Dataset:
        if any("\udc80" <= letter <= "\udcff" for letter in name):
            raise DataError(
                f"{self._path}: names of datasets must be UTF-8, but {name} is not; rename it."
            )
        with _prefixed(f"{self._path}:"):
            found = self._linked.dataset(self._file, name)
        if found is None:
            present: list[str] = []
            self._file.visititems(
                lambda k, v: present.append(os.fsdecode(k)) if isinstance(v, h5py.Dataset) else None
            )
            listed = ", ".join(sorted(present)[:20]) or "none"
            raise DataError(
                f"{self._path} has no dataset {unknown(name, present)}; it holds: {listed}. Name "
                f"the datasets with --x, --y and --weights."
            )
        return found

    def check(self, dataset: h5py.Dataset, name: str) -> h5py.Dataset:
        """Return a dataset, or raise DataError unless it can be decoded and is all there."""
        with _prefixed(f"{self._path}:"):
            self.chunk_bytes += self._whole(dataset, name, self._rows)[1]
        return dataset

    def _whole(
        self, dataset: h5py.Dataset, name: str, rows: tuple[int, int] | None, n_deep: int = 1
    ) -> _Whole:
        check_filters(dataset, name)
        if dataset.is_virtual:
            return self._whole_parts(dataset, name, rows, n_deep)
        if rows is None and self._rows is None:
            _check_written(dataset, name)
        chunk_rows = dataset.chunks[0] if dataset.chunks else 0
        shape = dataset.shape or ()
        return shape, chunk_rows * math.prod(shape[1:]) * dataset.dtype.itemsize

    def _whole_parts(
        self, dataset: h5py.Dataset, name: str, rows: tuple[int, int] | None, n_deep: int
    ) -> _Whole:
        """Raise DataError if a virtual dataset lacks anything: HDF5 would read zeros there."""
        if n_deep > _DEEPEST:
            raise DataError(
                f"{name} is made of virtual datasets more than {_DEEPEST} deep, or of itself; "
                f"store its rows."
            )
        holder = dataset.file
        parts = [part for part in dataset.virtual_sources() if _has_rows(part.vspace, rows)]
        found = [self._whole_part(holder, part, name, n_deep) for part in parts]
        shape = dataset.shape  # for which HDF5 opens files, all of which are known by now
        pieces = [boxes(part.vspace, shape) for part in parts]
        for part, piece, (there, _) in zip(parts, pieces, found, strict=True):
            if volume(piece) != volume(boxes(part.src_space, there)):
                raise DataError(
                    f"{rows_of(part.vspace)} of {name} are not as many as {part.dset_name} in "
                    f"{part.file_name} has with its shape {there}; write {name} again."
                )
        # NaN there would be told, or skipped, as in any row.
        is_told = dataset.dtype.kind == "f" and np.isnan(dataset.fillvalue)
        if rows is None and not is_told and (gap := first_gap(shape, pieces)):
            raise DataError(
                f"{gap} of {name} are in no part of this virtual dataset, and its fill value is no "
                f"data; add the part, or store the other rows."
            )
        return shape, max((chunk_bytes for _, chunk_bytes in found), default=0)

    def _whole_part(self, holder: h5py.File, part: Any, name: str, n_deep: int) -> _Whole:
        """Raise DataError unless a part of a virtual dataset in a file is all there."""
        what = rows_of(part.vspace)
        # In both names HDF5 takes two signs for one.
        outer, inner = (each.replace("%%", "%") for each in (part.file_name, part.dset_name))
        if is_unlimited(part.vspace) and not is_unlimited(part.src_space):
            raise DataError(
                f"{what} of {name} are in a series of datasets without an end; write {name} again "
                f"with a mapping for each of them."
            )
        key = holder.filename, outer, inner
        if key not in self._known:
            with (
                _prefixed(f"{what} of {name} are made of {inner} in {outer}:"),
                self._linked.opened(outer, holder, "HDF5_VDS_PREFIX") as file,
            ):
                found = self._linked.dataset(file, inner)
                if found is None:
                    raise DataError("it has no such dataset; put it back.")
                self._known[key] = self._whole(found, inner, None, n_deep + 1)
        return self._known[key]


@contextmanager
def _prefixed(what: str) -> Iterator[None]:
    try:
        yield
    except DataError as error:
        raise DataError(f"{what} {error}") from error


def _has_rows(space: h5py.h5s.SpaceID, rows: tuple[int, int] | None) -> bool:
    with suppress(RuntimeError, ValueError):  # it has no end, or takes all
        first, last = space.get_select_bounds()
        return rows is None or bool(first[0] < rows[1] and rows[0] <= last[0])
    return True


def is_text(dataset: h5py.Dataset) -> bool:
    """Say whether a dataset holds texts, of fixed or variable length."""
    return kind_of(dataset) != "?" and h5py.check_string_dtype(dataset.dtype) is not None


def kind_of(dataset: h5py.Dataset) -> str:
    """Return the kind of a dataset's type in NumPy, "?" where that has no such type."""
    try:
        return str(dataset.dtype.kind)
    except TypeError:
        return "?"


def type_of(dataset: h5py.Dataset) -> str:
    if kind_of(dataset) != "?":
        return str(dataset.dtype)
    stored = dataset.id.get_type()
    return f"{_CLASSES.get(stored.get_class(), 'values')} of {8 * stored.get_size()} bits"


def _check_written(dataset: h5py.Dataset, name: str) -> None:
    """Refuse a dataset that was not written to its end: HDF5 would read the rest as zeros."""
    if dataset.external:
        raise DataError(
            f"{name} is in files beside it that are not HDF5; store its rows in the file itself."
        )
    if dataset.chunks:
        expected = math.prod(-(-n // c) for n, c in zip(dataset.shape, dataset.chunks, strict=True))
        written, unit = dataset.id.get_num_chunks(), "chunks"
        check_chunk_sizes(dataset, name)
    else:
        expected, written, unit = dataset.nbytes, dataset.id.get_storage_size(), "bytes"
    if written < expected:
        raise DataError(
            f"{name} has {expected:,} {unit}, but {written:,} were written; finish writing it, or "
            f"store the rows that there are."
        )
