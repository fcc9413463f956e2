"""Nested plain values as HDF5 with a checksum: arrays, numbers, text, lists and dictionaries.

What is read is never more than that, whoever wrote the file.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from streamkern.errors import CheckpointError, first_line
from streamkern.statistics.triangle import Triangle
from streamkern.storage.disk import new_hdf5
from streamkern.storage.untrusted import DAMAGE, array, mark

if TYPE_CHECKING:
    from collections.abc import Iterator

_FORMAT, _KINDS = "streamkern-sums", "fiub"


def write_plain(path: str | Path, value: Any) -> None:
    """Write a value to a file that appears whole or not at all, in the place of one before it.

    Raises
    ------
    OutputError
        If it cannot be written.
    TypeError
        If something in the value is not plain.
    """
    with new_hdf5(path, force=True) as (file, disk):
        for place, item in _flat("value", value):
            if isinstance(item, str):
                file.create_group(place).attrs["kind"] = item
            else:
                file[place] = item
                disk.check()
        file.attrs["format"] = _FORMAT
        file.attrs["checksum"] = _checksum(value)


def read_plain(path: str | Path) -> Any:
    """Return the value that `write_plain` wrote.

    Raises
    ------
    CheckpointError
        If the file is missing or is not whole.
    """
    where = Path(path)
    try:
        with h5py.File(where, "r", locking="best-effort") as file:
            if mark(file, "format") != _FORMAT:
                raise ValueError(f"format {mark(file, 'format')}")
            value = _read(file["value"])
            if mark(file, "checksum") != _checksum(value):
                raise ValueError("wrong checksum")
    except DAMAGE as error:
        raise CheckpointError(
            f"{where} does not hold the sums that were saved ({first_line(error)}); remove it."
        ) from error
    return value


def _flat(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the places of a file with the array that is there, or the kind of what is below."""
    if isinstance(value, Triangle):
        yield place, "triangle"
        yield from _flat(f"{place}/panels", value.panels)
    elif isinstance(value, dict):
        yield place, "numbered" if all(isinstance(key, int) for key in value) else "named"
        for name, item in value.items():
            yield from _flat(f"{place}/{name}", item)
    elif isinstance(value, (list, tuple)):
        yield place, "list"
        for i, item in enumerate(value):
            yield from _flat(f"{place}/{i}", item)
    elif value is None:
        yield place, "nothing"
    else:
        numbers = np.asarray(value)
        if numbers.dtype.kind not in _KINDS:
            raise TypeError(f"{value!r} at {place} cannot be saved; it is no number or array.")
        yield place, numbers


def _read(item: h5py.Group | h5py.Dataset) -> Any:
    if isinstance(item, h5py.Dataset):
        found = array(item, _KINDS)
        return found if item.shape else found.item()
    kind = mark(item, "kind")
    if kind == "nothing":
        return None
    values = {name: _read(item[name]) for name in item}
    if kind == "triangle":
        return Triangle.of_panels(values["panels"])
    if kind == "list":
        return [values[str(i)] for i in range(len(values))]
    return {int(name): value for name, value in values.items()} if kind == "numbered" else values


def _checksum(value: Any) -> str:
    """Return a hash of every place with the bytes, type and shape of what is there."""
    digest = hashlib.sha256()
    for place, item in sorted(_flat("value", value), key=lambda pair: pair[0]):
        if isinstance(item, str):
            digest.update(f"{place} {item}\n".encode())
        else:
            digest.update(f"{place} {item.dtype.str} {item.shape}\n".encode())
            digest.update(np.ascontiguousarray(item).data)
    return digest.hexdigest()
