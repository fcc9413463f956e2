"""Whether a dataset holds numbers, can be decoded, and was written to its end."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py

from streamkern.errors import DataError
from streamkern.sources.stores import StoredFile


def numbers_in(
    file: h5py.File, path: str, name: str, *, with_booleans: bool = True
) -> h5py.Dataset:
    """Return a dataset of numbers that can be read, or raise DataError saying why there is none.

    Booleans are read as 0 and 1; as targets they are rather labels, and not taken for numbers.
    """
    found = _dataset_in(file, path, name)
    if found.dtype.kind not in ("fiub" if with_booleans else "fiu"):
        kind = "boolean" if found.dtype.kind == "b" else str(found.dtype)
        may_be_labels = found.dtype.kind == "b" or is_text(found)
        labels = ", or, if these are labels of classes, give --classify" * may_be_labels
        raise DataError(
            f"{path}: {name} must hold floats or integers, but its type is {kind}; convert it to "
            f"numbers first{labels}."
        )
    _need_readable(found, file, path, name)
    return found


def whole_numbers_in(
    file: h5py.File, path: str, name: str, *, with_booleans: bool = True
) -> h5py.Dataset:
    """Return a dataset of numbers that are all there, or raise DataError."""
    found = numbers_in(file, path, name, with_booleans=with_booleans)
    _need_all(found, path, name)
    return found


def whole_labels_in(file: h5py.File, path: str, name: str) -> h5py.Dataset:
    """Return a dataset of numbers, booleans or texts that are all there, or raise DataError."""
    found = _dataset_in(file, path, name)
    if found.dtype.kind not in "fiub" and not is_text(found):
        raise DataError(
            f"{path}: {name} must hold text, booleans or numbers to be labels, but its type is "
            f"{found.dtype}; convert it to one of these."
        )
    _need_readable(found, file, path, name)
    _need_all(found, path, name)
    return found


def is_text(dataset: h5py.Dataset) -> bool:
    """Say whether a dataset holds texts, of fixed or variable length."""
    return h5py.check_string_dtype(dataset.dtype) is not None


def _dataset_in(file: h5py.File, path: str, name: str) -> h5py.Dataset:
    found = file.get(name)
    if not isinstance(found, h5py.Dataset):
        present: list[str] = []
        file.visititems(lambda k, v: present.append(k) if isinstance(v, h5py.Dataset) else None)
        listed = ", ".join(sorted(present)[:20]) or "none"
        raise DataError(
            f"{path} has no dataset {name!r}; it holds: {listed}. Name the datasets with --x, --y "
            f"and --weights."
        )
    return found


def _need_readable(dataset: h5py.Dataset, file: h5py.File, path: str, name: str) -> None:
    if isinstance(path, StoredFile):
        _need_one_file(dataset, file, path, name)
    _need_filters(dataset, path, name)


def _need_all(dataset: h5py.Dataset, path: str, name: str) -> None:
    if dataset.is_virtual:
        _need_sources(dataset, path, name)
    else:
        _need_values(dataset, path, name)


def _need_one_file(dataset: h5py.Dataset, file: h5py.File, path: str, name: str) -> None:
    """Refuse a dataset that HDF5 would look for in other files, which it finds in folders only."""
    # Through an external link it would take this file for the other one, and read other rows.
    is_linked = h5py.h5o.get_info(dataset.id).fileno != h5py.h5o.get_info(file.id).fileno
    if dataset.is_virtual or is_linked:
        raise DataError(
            f"{path}: {name} is made of other files, which HDF5 finds in folders only; name these "
            f"files themselves, or copy all of them here."
        )


def _need_values(dataset: h5py.Dataset, path: str, name: str) -> None:
    """Refuse a dataset that was not written to its end: HDF5 would read the rest as zeros.

    That also bounds what a header can claim by what is in the file.
    """
    if dataset.external:
        raise DataError(
            f"{path}: {name} is in files beside it that are not HDF5; store its rows in {path}."
        )
    if dataset.chunks:
        expected = math.prod(-(-n // c) for n, c in zip(dataset.shape, dataset.chunks, strict=True))
        written, unit = dataset.id.get_num_chunks(), "chunks"
    else:
        expected, written, unit = dataset.nbytes, dataset.id.get_storage_size(), "bytes"
    if written < expected:
        raise DataError(
            f"{path}: {name} has {expected:,} {unit}, but {written:,} were written; finish writing "
            f"it, or store the rows that there are."
        )


def _need_sources(dataset: h5py.Dataset, path: str, name: str) -> None:
    """Refuse a virtual dataset with a file missing: HDF5 would read its rows as zeros."""
    for source in dataset.virtual_sources():
        where = _part(source, path)
        if not where.is_file():
            raise DataError(
                f"{path}: {name} is made of rows in {source.file_name}, which does not exist; "
                f"put it back."
            )
        with h5py.File(where, "r", locking="best-effort") as file:
            if not isinstance(file.get(source.dset_name), h5py.Dataset):
                raise DataError(
                    f"{path}: {name} is made of {source.dset_name} in {source.file_name}, which "
                    f"has no such dataset; put it back."
                )


def _part(source: Any, path: str) -> Path:
    """Return the file of a part of a virtual dataset in the file at `path`."""
    whole = Path(path).resolve()
    return whole if source.file_name == "." else whole.parent / source.file_name


def parts_of(dataset: h5py.Dataset, path: str) -> set[Path]:
    """Return the files that a dataset is made of, if it is a virtual one."""
    return (
        {_part(source, path) for source in dataset.virtual_sources()}
        if dataset.is_virtual
        else set()
    )


def _need_filters(dataset: h5py.Dataset, path: str, name: str) -> None:
    """Register the plugins that a dataset's filters need, or say which filter is missing."""
    for code, label in filters_of(dataset):
        if h5py.h5z.filter_avail(code):
            continue
        with suppress(ImportError):
            import hdf5plugin  # noqa: F401, PLC0415  slow, and registers its filters on import
        if not h5py.h5z.filter_avail(code):
            raise DataError(
                f"{path}: {name} is compressed with the filter {label} ({code}), which is not "
                f"available; install streamkern[compression]."
            )


def is_encoded(dataset: h5py.Dataset) -> bool:
    """Say whether what is stored passes through filters, such as decompression."""
    return dataset.chunks is not None and dataset.id.get_create_plist().get_nfilters() > 0


def filters_of(dataset: h5py.Dataset) -> list[tuple[int, str]]:
    """Return the number and the name of every filter of a dataset."""
    properties = dataset.id.get_create_plist()
    filters = [properties.get_filter(i) for i in range(properties.get_nfilters())]
    return [(code, label.decode(errors="replace")) for code, _, _, label in filters]
