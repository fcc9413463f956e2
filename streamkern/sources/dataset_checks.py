"""Datasets as they are opened: numbers or labels, in the file itself, decodable and all there."""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import h5py

from streamkern.errors import DataError
from streamkern.errors.formatting import unknown
from streamkern.sources.missing_values import missing_values_of

_CLASSES = {h5py.h5t.INTEGER: "integers", h5py.h5t.FLOAT: "floats", h5py.h5t.TIME: "times"}
# Soft links that lead on to others, of which HDF5 follows as many.
_MOST_LINKS = 16
# Groups that a dataset may be in, one in the other.
_MOST_GROUPS = 64


class Tables:
    """The datasets of an open file, checked before a value is read; all of the rows at first."""

    def __init__(self, file: h5py.File, path: str, *, whole: bool = True) -> None:
        self.chunk_bytes = 0
        self._file, self._path, self._whole = file, path, whole

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
        return self._checked(found, name)

    def labels(self, name: str) -> h5py.Dataset:
        found = self._dataset(name)
        if kind_of(found) not in "fiub" and not is_text(found):
            raise DataError(
                f"{self._path}: {name} must hold text, booleans or numbers to be labels, but its "
                f"type is {type_of(found)}; convert it to one of these."
            )
        return self._checked(found, name)

    def _dataset(self, name: str) -> h5py.Dataset:
        if any("\udc80" <= letter <= "\udcff" for letter in name):
            raise DataError(
                f"{self._path}: names of datasets must be UTF-8, but {name} is not; rename it."
            )
        with _prefixed(f"{self._path}:"):
            found = _dataset_in(self._file, name)
        if found is None:
            present = [each for each, _ in datasets_of(self._file)]
            listed = ", ".join(sorted(present)[:20]) or "none"
            raise DataError(
                f"{self._path} has no dataset {unknown(name, present)}; it holds: {listed}. Name "
                f"the datasets with x, y and weights (--x, --y, --weights)."
            )
        return found

    def _checked(self, found: h5py.Dataset, name: str) -> h5py.Dataset:
        with _prefixed(f"{self._path}:"):
            missing_values_of(found, name)
            _check_opened(found, name)
            if self._whole:
                _check_written(found, name)
        if found.chunks:
            self.chunk_bytes += found.chunks[0] * math.prod(found.shape[1:]) * item_bytes(found)
        return found


def _dataset_in(group: h5py.Group, name: str, n_links: int = _MOST_LINKS) -> h5py.Dataset | None:
    """Return the dataset that a name leads to in one file, or None where there is none."""
    here, parts = group, [part for part in name.split("/") if part not in ("", ".")]
    for i, part in enumerate(parts, 1):
        link = here.get(part, getlink=True) if isinstance(here, h5py.Group) else None
        if isinstance(link, h5py.ExternalLink):
            raise DataError(
                f"{name} is a link to {link.path} in {link.filename}, and links to other files are "
                f"not followed; name that file and dataset."
            )
        if isinstance(link, h5py.SoftLink) and n_links:
            rest = "/".join([link.path, *parts[i:]])
            return _dataset_in(here.file if rest.startswith("/") else here, rest, n_links - 1)
        if not isinstance(link, h5py.HardLink):
            return None
        here = here[part]
    return here if isinstance(here, h5py.Dataset) else None


def _check_opened(dataset: h5py.Dataset, name: str) -> None:
    """Refuse rows that are not in the file itself, or that no filter there is can decode."""
    if dataset.is_virtual:
        raise DataError(
            f"{name} is a virtual dataset, whose rows are in other files; name these files instead."
        )
    if dataset.external:
        raise DataError(
            f"{name} is in files beside it that are not HDF5; store its rows in the file itself."
        )
    for code, label in filters_of(dataset):
        if h5py.h5z.filter_avail(code):
            continue
        with suppress(ImportError):
            import hdf5plugin  # noqa: F401, PLC0415  slow, and registers its filters on import
        if not h5py.h5z.filter_avail(code):
            raise DataError(
                f"{name} is compressed with the filter {label} ({code}), which is not available; "
                f"install streamkern[compression]."
            )


def _check_written(dataset: h5py.Dataset, name: str) -> None:
    """Refuse a dataset that was not written to its end: HDF5 would read the rest as zeros."""
    if dataset.chunks:
        expected = math.prod(-(-n // c) for n, c in zip(dataset.shape, dataset.chunks, strict=True))
        written, unit = dataset.id.get_num_chunks(), "chunks"
    else:
        expected = dataset.size * item_bytes(dataset)
        written, unit = dataset.id.get_storage_size(), "bytes"
    if written < expected:
        raise DataError(
            f"{name} has {expected:,} {unit}, but {written:,} were written; finish writing it, or "
            f"store the rows that there are."
        )


@contextmanager
def _prefixed(what: str) -> Iterator[None]:
    try:
        yield
    except DataError as error:
        raise DataError(f"{what} {error}") from error


def datasets_of(file: h5py.File) -> list[tuple[str, h5py.Dataset]]:
    """Return the datasets of a file with their names, each once, and none behind links."""
    return [found for found in objects_of(file) if isinstance(found[1], h5py.Dataset)]


def objects_of(file: h5py.File) -> list[tuple[str, Any]]:
    """Return what is in a file with its name, each once, and none behind links.

    Raises DataError where groups are so deep in others that their names alone take minutes.
    """
    left: list[tuple[bytes, Any]] = [(b"", file)]
    found, seen = list[tuple[str, Any]](), {h5py.h5o.get_info(file.id).addr}
    while left:
        place, group = left.pop()
        if place.count(b"/") >= _MOST_GROUPS:
            raise DataError(
                f"{file.filename} has groups in groups, more than {_MOST_GROUPS} deep; copy the "
                f"datasets to the first ones."
            )
        for name in group.id:
            if group.id.links.get_info(name).type != h5py.h5l.TYPE_HARD:
                continue
            item = group[name]
            if (address := h5py.h5o.get_info(item.id).addr) not in seen:
                seen.add(address)
                found.append((os.fsdecode(place + name), item))
                if isinstance(item, h5py.Group):
                    left.append((place + name + b"/", item))
    return found


def filters_of(dataset: h5py.Dataset) -> list[tuple[int, str]]:
    """Return the codes of a dataset's filters, and their labels."""
    made = dataset.id.get_create_plist()
    filters = [made.get_filter(i) for i in range(made.get_nfilters())]
    # Some filters put an address after their name.
    return [(code, label.decode(errors="replace").split(";")[0]) for code, *_, label in filters]


def item_bytes(dataset: h5py.Dataset) -> int:
    """Return the bytes of a value in the file: those of bfloat16, say, are more in NumPy."""
    return int(dataset.id.get_type().get_size())


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
