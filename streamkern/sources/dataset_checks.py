"""Checks of datasets: they hold numbers, can be decoded and were written to their end."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import h5py

from streamkern.errors import DataError
from streamkern.errors.formatting import unknown
from streamkern.sources.chunks import item_bytes
from streamkern.sources.external_files import dataset_in, datasets_of, parts_of
from streamkern.sources.filters import check_chunk_sizes, check_filters
from streamkern.sources.missing_values import missing_values_of

_CLASSES = {h5py.h5t.INTEGER: "integers", h5py.h5t.FLOAT: "floats", h5py.h5t.TIME: "times"}


class Tables:
    """The datasets of an open file, checked before a value is read, and what they are made of."""

    def __init__(self, file: h5py.File, path: str, rows: tuple[int, int] | None = None) -> None:
        self.chunk_bytes = 0
        self._file, self._path, self._rows = file, path, rows
        self.files: set[str] = set()  # all others that values are in

    def numbers(self, name: str, *, with_booleans: bool = True) -> h5py.Dataset:
        """Return a dataset of numbers that are all there, or raise DataError.

        Booleans are 0 and 1, but labels where they are targets.
        """
        found = self._dataset(name)
        kind = kind_of(found)
        if kind not in ("fiub" if with_booleans else "fiu"):
            may_be_labels = kind == "b" or is_text(found)
            labels = (
                ", or, if these are labels of classes, take a classifier (--classify)"
                * may_be_labels
            )
            raise DataError(
                f"{self._path}: {name} must hold floats or integers, but its type is "
                f"{'text' if is_text(found) else type_of(found)}; convert it to numbers first"
                f"{labels}."
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
            found = dataset_in(self._file, name)
        if found is None:
            present = [each for each, _ in datasets_of(self._file)]
            listed = ", ".join(sorted(present)[:20]) or "none"
            raise DataError(
                f"{self._path} has no dataset {unknown(name, present)}; it holds: {listed}. Name "
                f"the datasets with x, y and weights (--x, --y, --weights)."
            )
        return found

    def check(self, dataset: h5py.Dataset, name: str) -> h5py.Dataset:
        """Return a dataset, or raise DataError unless it can be decoded and is all there."""
        with _prefixed(f"{self._path}:"):
            missing = missing_values_of(dataset, name)
            check_filters(dataset, name)
            chunk_bytes = [_chunk_bytes(dataset)]
            if dataset.is_virtual:
                for where, part in parts_of(dataset, self._path, name, self._rows):
                    self.files.add(where)
                    what = f"{name} in {where}"
                    if missing_values_of(part, what) not in (missing, None):
                        raise DataError(
                            f"{what} has attributes that say which values are missing, and {name} "
                            f"has others; give it the same ones, or fit to the files themselves."
                        )
                    check_filters(part, what)
                    _check_written(part, what)
                    chunk_bytes.append(_chunk_bytes(part))
            elif self._rows is None:
                _check_written(dataset, name)
            self.chunk_bytes += max(chunk_bytes)
        return dataset


def _chunk_bytes(dataset: h5py.Dataset) -> int:
    """Return the decoded size of a row of the chunks of a dataset."""
    if not dataset.chunks:
        return 0
    return int(dataset.chunks[0] * math.prod(dataset.shape[1:]) * item_bytes(dataset))


@contextmanager
def _prefixed(what: str) -> Iterator[None]:
    try:
        yield
    except DataError as error:
        raise DataError(f"{what} {error}") from error


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
        expected = dataset.size * item_bytes(dataset)
        written, unit = dataset.id.get_storage_size(), "bytes"
    if written < expected:
        raise DataError(
            f"{name} has {expected:,} {unit}, but {written:,} were written; finish writing it, or "
            f"store the rows that there are."
        )
