"""Contents of an HDF5 file: its datasets, read from headers alone."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, NamedTuple

import h5py

from streamkern.errors import DataError
from streamkern.sources.dataset_checks import Tables, is_text, kind_of, type_of
from streamkern.sources.external_files import is_unlimited
from streamkern.sources.filters import compression
from streamkern.sources.hdf5_opening import opened, undamaged
from streamkern.sources.headers import matching

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class Contents(NamedTuple):
    name: str
    shape: tuple[int, ...]
    dtype: str
    chunks: tuple[int, ...] | None
    compression: str
    bytes: int
    stored_bytes: int


def describe_file(path: str) -> list[Contents]:
    found: list[h5py.Dataset] = []
    with opened(path) as file, undamaged(path):
        file.visititems(
            lambda _, item: found.append(item) if isinstance(item, h5py.Dataset) else None
        )
        tables = Tables(file, path)
        listed = (_contents(dataset, tables) for dataset in found)
        return sorted(listed, key=lambda item: item.name)


def describe_files(patterns: Iterable[str | Path]) -> dict[str, list[Contents]]:
    """List the datasets of several files, by path; paths and patterns as in `open_hdf5`."""
    paths = [path for pattern in patterns for path in matching(str(pattern))]
    return {path: describe_file(path) for path in paths}


def _contents(dataset: h5py.Dataset, tables: Tables) -> Contents:
    shape = _shape(dataset, tables)
    is_known = kind_of(dataset) != "?"
    item_bytes = dataset.dtype.itemsize if is_known else dataset.id.get_type().get_size()
    return Contents(
        name=os.fsdecode(dataset.name).lstrip("/"),  # bytes, where that is no UTF-8
        shape=shape or (),
        dtype="text" if is_text(dataset) else type_of(dataset),
        chunks=dataset.chunks,
        compression="virtual" if dataset.is_virtual else compression(dataset),
        bytes=0 if shape is None else math.prod(shape) * item_bytes,
        stored_bytes=dataset.id.get_storage_size(),
    )


def _shape(dataset: h5py.Dataset, tables: Tables) -> tuple[int, ...] | None:
    if dataset.is_virtual and any(is_unlimited(each.vspace) for each in dataset.virtual_sources()):
        try:  # HDF5 would look for it in files that may be pipes
            tables.check(dataset, str(dataset.name))
        except DataError:
            return None
    shape: tuple[int, ...] | None = dataset.shape
    return shape
