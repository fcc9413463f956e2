"""Filters of HDF5: compression and checksums, and whether chunks can be decoded safely."""

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import h5py

from streamkern.errors import DataError
from streamkern.sources.chunks import item_bytes

# Shuffle, checksum, n-bit, scale-offset and two that round, which make no more of a chunk than it
# holds.
_PLAIN = {2, 3, 5, 6, 32022, 32023}
# N-bit and scale-offset, which know how many values a chunk has.
_PACKING = {5, 6}
# Shuffle and checksum, which make nothing smaller either.
_SAME_SIZE = {2, 3}
# What a filter may add to a chunk that it cannot make smaller, beside a quarter of it.
_HEADER_BYTES = 4096


class Filter(NamedTuple):
    code: int
    values: Sequence[int]
    label: str


def filters_of(dataset: h5py.Dataset) -> list[Filter]:
    made = dataset.id.get_create_plist()
    filters = [made.get_filter(i) for i in range(made.get_nfilters())]
    return [Filter(code, v, label.decode(errors="replace")) for code, _, v, label in filters]


def compression(dataset: h5py.Dataset) -> str:
    # Some filters put an address after their name.
    return " + ".join(each.label.split(";")[0] for each in filters_of(dataset))


def check_filters(dataset: h5py.Dataset, name: str) -> None:
    """Register the plugins that a dataset's filters need, or say what is wrong with these."""
    filters = filters_of(dataset)
    compressing = [each.label for each in filters if each.code not in _PLAIN]
    if len(compressing) > 1:
        raise DataError(
            f"{name} is compressed more than once ({', '.join(compressing)}), so that a few bytes "
            f"may become gigabytes; compress it once."
        )
    packed = [each.values for each in filters if each.code in _PACKING]
    if any(len(values) > 2 and values[2] != math.prod(dataset.chunks) for values in packed):
        # HDF5 would write as many as the filter says, whatever room there is.
        raise DataError(f"{name} has a damaged filter, for chunks of another size; copy it again.")
    for code, _, label in filters:
        if h5py.h5z.filter_avail(code):
            continue
        with suppress(ImportError):
            import hdf5plugin  # noqa: F401, PLC0415  slow, and registers its filters on import
        if not h5py.h5z.filter_avail(code):
            raise DataError(
                f"{name} is compressed with the filter {label} ({code}), which is not available; "
                f"install streamkern[compression]."
            )


def check_chunk_sizes(dataset: h5py.Dataset, name: str) -> None:
    """Refuse chunks that take more in the file than in memory, or less without a filter for it."""
    decoded = math.prod(dataset.chunks) * item_bytes(dataset)
    filters = enumerate(filters_of(dataset))
    smaller = sum(1 << place for place, each in filters if each.code not in _SAME_SIZE)
    stored, short = {0}, set()

    def note(chunk: Any) -> None:
        stored.add(chunk.size)
        if chunk.size < decoded and chunk.filter_mask & smaller == smaller:
            short.add(chunk.size)

    dataset.id.chunk_iter(note)
    if short:  # HDF5 would read on in memory
        raise DataError(
            f"{name} has chunks of {decoded:,} bytes, but of one {min(short):,} were written; "
            f"write it again."
        )
    if max(stored) > decoded + decoded // 4 + _HEADER_BYTES:
        raise DataError(
            f"{name} has chunks of {decoded:,} bytes, one of which takes {max(stored):,} in the "
            f"file; write it again."
        )
