"""What an HDF5 file holds, dataset by dataset, read from its headers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import h5py

from streamkern.errors import DataError
from streamkern.sources.headers import matching, opened

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class Contents(NamedTuple):
    """One dataset.

    Parameters
    ----------
    name : str
        Its path in the file.
    shape : tuple of int
    dtype : str
    chunks : tuple of int, optional
        None where it is stored in one piece, or is virtual.
    compression : str
        The names of its filters; empty without.
    bytes, stored_bytes : int
        What its values take in memory, and in the file.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    chunks: tuple[int, ...] | None
    compression: str
    bytes: int
    stored_bytes: int


def describe_file(path: str) -> list[Contents]:
    """List the datasets of an HDF5 file, by name.

    Raises
    ------
    DataError
        If the file is missing, cannot be opened as HDF5, or has damaged headers.
    """
    found: list[h5py.Dataset] = []
    with opened(path) as file:
        try:
            file.visititems(lambda _, item: _keep(item, found))
            return sorted((_contents(dataset) for dataset in found), key=lambda item: item.name)
        except (KeyError, OSError, RuntimeError, ValueError) as error:
            raise DataError(f"{path} has damaged headers ({error}); copy it again.") from error


def describe_files(patterns: Iterable[str | Path]) -> dict[str, list[Contents]]:
    """List the datasets of several files, by path; paths and patterns as in `open_hdf5`."""
    paths = [path for pattern in patterns for path in matching(str(pattern))]
    return {path: describe_file(path) for path in paths}


def _keep(item: h5py.Group | h5py.Dataset, found: list[h5py.Dataset]) -> None:
    if isinstance(item, h5py.Dataset):
        found.append(item)


def _contents(dataset: h5py.Dataset) -> Contents:
    text = h5py.check_string_dtype(dataset.dtype) is not None
    return Contents(
        name=dataset.name.lstrip("/"),
        shape=dataset.shape or (),
        dtype="text" if text else str(dataset.dtype),
        chunks=dataset.chunks,
        compression=_compression(dataset),
        bytes=dataset.nbytes,
        stored_bytes=dataset.id.get_storage_size(),
    )


def _compression(dataset: h5py.Dataset) -> str:
    if dataset.is_virtual:
        return "virtual"
    properties = dataset.id.get_create_plist()
    labels = [properties.get_filter(i)[3] for i in range(properties.get_nfilters())]
    # Some filters put an address after their name.
    return " + ".join(label.decode(errors="replace").split(";")[0] for label in labels)
