"""The codec of checkpoints: nested arrays, numbers, lists and dictionaries, with a checksum.

Every group says what kind of value it holds, so nothing that is read is more than numbers.
"""

import hashlib
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from streamkern.errors import CheckpointError, first_line
from streamkern.sources.dataset_checks import objects_of
from streamkern.sources.hdf5_opening import known_reason, open_local
from streamkern.statistics.triangle import Triangle
from streamkern.storage.hdf5_files import new_hdf5
from streamkern.storage.untrusted import DAMAGE, array, check_contents, fixed, mark

_FORMAT, _DTYPES = "streamkern-sums", "fiub"


def write_plain(path: str | Path, value: Any) -> None:
    """Write nested arrays, numbers, lists and dictionaries in the place of a file before them."""
    with new_hdf5(path, force=True) as (file, disk):
        for place, item in _described("value", value):
            if isinstance(item, str):
                file.create_group(place).attrs["kind"] = fixed(item)
            else:
                file[place] = item
                disk.check()
        places = sorted(_described("value", value), key=itemgetter(0))
        file.attrs["format"], file.attrs["checksum"] = fixed(_FORMAT), fixed(_hash_of(places))


def read_plain(path: str | Path) -> Any:
    """Return the value that `write_plain` wrote, or raise CheckpointError if it is not whole."""
    try:
        with open_local(path) as file:
            _check_sums(file)
            return _value_of(file["value"])
    except DAMAGE as error:
        raise _unreadable(path, error) from error


def is_whole(path: str | Path) -> bool:
    """Say whether a file holds what `write_plain` wrote, or that it cannot be read (an error)."""
    try:
        with open_local(path) as file:
            _check_sums(file)
    except DAMAGE as error:
        if getattr(error, "errno", None):  # HDF5, which finds files cut short, gives none
            raise _unreadable(path, error) from error
        return False
    return True


def _check_sums(file: h5py.File) -> None:
    """Raise ValueError unless a file has the format, the contents and the checksum of sums."""
    if mark(file, "format") != _FORMAT:
        raise ValueError(f"format {mark(file, 'format')}")
    check_contents(file)
    items = sorted(objects_of(file), key=itemgetter(0))
    if mark(file, "checksum") != _hash_of(
        (place, array(item, _DTYPES) if isinstance(item, h5py.Dataset) else str(mark(item, "kind")))
        for place, item in items
    ):
        raise ValueError("wrong checksum")


def _unreadable(path: str | Path, error: Exception) -> CheckpointError:
    said = f"does not hold the sums that were saved ({first_line(error)}); remove it."
    return CheckpointError(f"{Path(path)} {known_reason(error) or said}")


def _described(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the places of a file with the array that is there, or the kind of what is below."""
    if isinstance(value, Triangle):
        yield place, "triangle"
        yield from _described(f"{place}/panels", value.panels)
    elif isinstance(value, dict):
        yield place, "numbered" if all(isinstance(key, int) for key in value) else "named"
        for name, item in value.items():
            yield from _described(f"{place}/{name}", item)
    elif isinstance(value, (list, tuple)):
        yield place, "list"
        for i, item in enumerate(value):
            yield from _described(f"{place}/{i}", item)
    elif value is None:
        yield place, "nothing"
    else:
        numbers = np.asarray(value)
        if numbers.dtype.kind not in _DTYPES:
            raise TypeError(f"{value!r} at {place} cannot be saved; it is no number or array.")
        yield place, numbers


def _value_of(item: h5py.Group | h5py.Dataset) -> Any:
    if isinstance(item, h5py.Dataset):
        found = array(item, _DTYPES)
        return found if item.shape else found.item()
    kind = mark(item, "kind")
    if kind == "nothing":
        return None
    values = {name: _value_of(item[name]) for name in item}
    if kind == "triangle":
        return Triangle.of_panels(values["panels"])
    if kind == "list":
        return [values[str(i)] for i in range(len(values))]
    return {int(name): value for name, value in values.items()} if kind == "numbered" else values


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
