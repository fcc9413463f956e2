"""Values of HDF5 files that anyone may have written: never code, never more than the file holds.

Texts are of fixed length.  HDF5 keeps those of variable length in a heap, and one that was tampered
with sends HDF5 (2.0.0, H5HG__cache_heap_deserialize) into an endless loop.  No filters: two of
them make a gigabyte of a kilobyte.

All functions that read a value raise ValueError if it is not what they are to return.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

import h5py
import numpy as np

from streamkern._typing import Array
from streamkern.sources.dataset_checks import datasets_of

# What values of other types and sizes than expected can lead to, and reading them besides.
WRONG_VALUES = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
DAMAGE = (*WRONG_VALUES, OSError)
_MARK_BYTES = 256
# Of an integer: seeds may have many.
_MOST_DIGITS = 100


def check_contents(file: h5py.File) -> None:
    """Raise ValueError unless a file holds all that it names; nothing is decoded for that.

    So there are no links, and arrays have no more bytes than the file.
    """
    room = file.id.get_filesize()
    for _, item in datasets_of(file):
        room -= _claimed_bytes(item, room)
    # What these calls back raise would not get through HDF5.
    link = file.visititems_links(
        lambda name, link: None if isinstance(link, h5py.HardLink) else name
    )
    if link is not None:
        raise ValueError(f"{link!r} is a link")


def _claimed_bytes(dataset: h5py.Dataset, most: int) -> int:
    """Return how many bytes reading a dataset takes, or raise ValueError unless it has them."""
    layout, kind = dataset.id.get_create_plist(), dataset.id.get_type()
    if layout.get_layout() == h5py.h5d.VIRTUAL or layout.get_external_count():
        raise ValueError(f"{dataset.name} is in other files")
    if layout.get_nfilters():
        raise ValueError(f"{dataset.name} has filters")
    claimed: int = max(math.prod(dataset.shape or ()), math.prod(dataset.chunks or (0,)))
    claimed *= kind.get_size()
    if claimed > most:
        raise ValueError(f"{dataset.name} claims {claimed:,} bytes that were not written")
    return claimed


def json_of(text: str) -> Any:
    """Return the plain values of a JSON text; RecursionError if they are nested without end."""
    return json.loads(text, parse_int=_integer)


def _integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"an integer of {len(digits)} digits")
    return int(digits)


def fixed(text: str) -> Array:
    """Return a text as it is written for `mark` or `text` to read."""
    encoded = text.encode()
    return np.array(encoded, h5py.string_dtype("utf-8", max(len(encoded), 1)))


def mark(item: h5py.File | h5py.Group, name: str) -> str | int | None:
    """Return an attribute that is a short text or an integer, or None if it is anything else."""
    if name not in item.attrs:
        return None
    attribute = item.attrs.get_id(name)
    is_one = attribute.get_space().get_simple_extent_type() == h5py.h5s.SCALAR
    if not is_one or attribute.get_storage_size() > _MARK_BYTES:
        return None
    if attribute.dtype.kind not in "Siu":
        return None
    value = item.attrs[name]
    return value.decode(errors="replace") if isinstance(value, bytes) else int(value)


def text(group: h5py.Group, name: str) -> str:
    dataset = member(group, name)
    if dataset.shape or dataset.dtype.kind != "S":
        raise ValueError(f"{dataset.name} holds {dataset.dtype}, not a text of fixed length")
    return bytes(array(dataset, "S")).decode()


def member(group: h5py.Group, name: str) -> Any:
    """Return what a group holds by a name, itself and not by a link to elsewhere."""
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise ValueError(f"{group.name} holds no {name!r}")  # noqa: TRY004  damage, not a type
    return group[name]


def array(dataset: h5py.Dataset, kinds: str = "fiu") -> Array:
    if dataset.dtype.kind not in kinds:
        raise ValueError(f"{dataset.name} holds {dataset.dtype}, not numbers")
    _claimed_bytes(dataset, dataset.id.get_storage_size())  # as little as the file has
    return dataset[()]


def finite_array(
    group: h5py.Group, name: str, shape: tuple[int, ...] | None = None, kinds: str = "fiu"
) -> Array:
    dataset = member(group, name)
    if shape is not None and dataset.shape != shape:
        raise ValueError(f"{dataset.name} has shape {dataset.shape}, not {shape}")
    found = array(dataset, kinds)
    if not np.isfinite(found).all():
        raise ValueError(f"{dataset.name} holds values that are not finite")
    return found


def finite_arrays(
    group: h5py.Group, shapes: Mapping[str, tuple[int, ...]], kinds: str = "fiu"
) -> dict[str, Array]:
    return {name: finite_array(group, name, shape, kinds) for name, shape in shapes.items()}
