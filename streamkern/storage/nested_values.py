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
from streamkern.storage.untrusted import DAMAGE, array, check_contents, fixed, mark, opened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
                file.create_group(place).attrs["kind"] = fixed(item)
            else:
                file[place] = item
                disk.check()
        file.attrs["format"] = fixed(_FORMAT)
        file.attrs["checksum"] = fixed(_checksum(value))


def read_plain(path: str | Path) -> Any:
    """Return the value that `write_plain` wrote.

    Raises
    ------
    CheckpointError
        If the file is missing or is not whole.
    """
    where = Path(path)
    try:
        with opened(where) as file:
            if mark(file, "format") != _FORMAT:
                raise ValueError(f"format {mark(file, 'format')}")
            check_contents(file)
            value = _read(file["value"])
            if mark(file, "checksum") != _checksum(value):
                raise ValueError("wrong checksum")
    except DAMAGE as error:
        raise _unreadable(where, error) from error
    return value


def is_whole(path: str | Path) -> bool:
    """Say whether a file holds what `write_plain` wrote, one array at a time in memory.

    Raises
    ------
    CheckpointError
        If that cannot be found out now: the system would not read the file.
    """
    try:
        with opened(path) as file:
            check_contents(file)
            return mark(file, "format") == _FORMAT and mark(file, "checksum") == _checksum_in(file)
    except OSError as error:
        if error.errno:
            raise _unreadable(Path(path), error) from error
        return False  # HDF5 has found it cut short
    except DAMAGE:
        return False


def _unreadable(where: Path, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"{where} does not hold the sums that were saved ({first_line(error)}); remove it."
    )


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
    return _hash_of(sorted(_flat("value", value), key=lambda pair: pair[0]))


def _checksum_in(file: h5py.File) -> str:
    places = ["value"]
    if isinstance(file["value"], h5py.Group):
        file["value"].visit(lambda name: places.append(f"value/{name}"))
    items = ((place, file[place]) for place in sorted(places))
    return _hash_of(
        (place, array(item, _KINDS) if isinstance(item, h5py.Dataset) else str(mark(item, "kind")))
        for place, item in items
    )


def _hash_of(items: Iterable[tuple[str, Any]]) -> str:
    """Return a hash of every place with the bytes, type and shape of what is there."""
    digest = hashlib.sha256()
    for place, item in items:
        if isinstance(item, str):
            digest.update(f"{place} {item}\n".encode())
        else:
            digest.update(f"{place} {item.dtype.str} {item.shape}\n".encode())
            digest.update(np.ascontiguousarray(item).data)
    return digest.hexdigest()
