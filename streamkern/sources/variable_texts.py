"""Texts of variable length, which HDF5 keeps in heaps, read without HDF5's own reader of these.

That (2.0.0, H5HG__cache_heap_deserialize) never comes back from a heap that was tampered with.  A
value in a dataset is the length of a text (4 bytes), the address of a heap (8), and the number of
an object in it (4).  HDF5 decodes values, as bytes, in a copy of their chunks in memory.
"""

from __future__ import annotations

import struct
from io import BytesIO, RawIOBase

import h5py
import numpy as np

from streamkern._typing import Array
from streamkern.errors import DataError

_VALUE = np.dtype([("length", "<u4"), ("heap", "<u8"), ("number", "<u4")])
# The head of a heap and of an object: magic, version, size; number, references, size.
_HEAP, _OBJECT = struct.Struct("<4sB3xQ"), struct.Struct("<HH4xQ")


def has_variable_texts(dataset: h5py.Dataset) -> bool:
    told = h5py.check_string_dtype(dataset.dtype)
    return told is not None and told.length is None


def check_variable_texts(dataset: h5py.Dataset, name: str) -> None:
    """Raise DataError unless `variable_texts` reads such a dataset."""
    layout = dataset.id.get_create_plist().get_layout()
    is_usual = dataset.file.id.get_create_plist().get_sizes() == (8, 8)
    is_column = dataset.ndim == 1 or (dataset.chunks or (1, 1))[1:] == (1,)
    if layout not in (h5py.h5d.CONTIGUOUS, h5py.h5d.CHUNKED) or not (is_usual and is_column):
        raise DataError(
            f"{name} holds texts of variable length, stored in an unusual way; store them with a "
            f"fixed length, as dataset.astype('S')."
        )


def variable_texts(dataset: h5py.Dataset, raw: RawIOBase, rows: slice) -> Array:
    """Return texts (rows,), of a dataset in a file that is open as `raw` too.

    Raises OSError if heaps are damaged, and UnicodeDecodeError if texts are not UTF-8.
    """
    values = _values(dataset, raw, rows)
    heaps, left = dict[int, dict[int, bytes]](), dataset.file.id.get_filesize()
    for address in np.unique(values["heap"]).tolist():
        heap = _heap(raw, address + dataset.file.userblock_size, left) if address else b""
        left -= len(heap)  # heaps do not overlap
        heaps[address] = _objects(heap)
    texts = []
    for length, heap, number in values.tolist():
        found = heaps[heap].get(number, b"") if length else b""
        if len(found) < length:
            raise OSError("a text that is in no heap")
        texts.append(found[:length].partition(b"\0")[0].decode())
    return np.array(texts, dtype=object)


def _values(dataset: h5py.Dataset, raw: RawIOBase, rows: slice) -> Array:
    if dataset.chunks is None:
        raw.seek((dataset.id.get_offset() or 0) + rows.start * _VALUE.itemsize)
        found = raw.read((rows.stop - rows.start) * _VALUE.itemsize)
        return np.frombuffer(found or b"", _VALUE, rows.stop - rows.start)
    tall, filters, parts = dataset.chunks[0], dataset.id.get_create_plist(), []
    begin = rows.start - rows.start % tall
    bytes_of, space = h5py.h5t.py_create(np.dtype("V16")), h5py.h5s.create_simple((tall,))
    with h5py.File(BytesIO(), "w") as memory:
        for row in range(begin, rows.stop, tall):
            skipped, chunk = dataset.id.read_direct_chunk((row, *[0] * (dataset.ndim - 1)))
            made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            made.set_chunk((tall,))
            for i in range(filters.get_nfilters()):
                if not skipped >> i & 1:
                    made.set_filter(*filters.get_filter(i)[:3])
            copy = h5py.h5d.create(memory.id, str(row).encode(), bytes_of, space, made)
            copy.write_direct_chunk((0,), chunk)
            parts.append(h5py.Dataset(copy)[:])
    return np.concatenate(parts)[rows.start - begin : rows.stop - begin].view(_VALUE)


def _heap(raw: RawIOBase, address: int, most: int) -> bytes:
    raw.seek(address)
    magic, _, size = _HEAP.unpack((raw.read(_HEAP.size) or b"").ljust(_HEAP.size))
    if magic != b"GCOL" or size > most:
        raise OSError("a damaged heap of texts")
    return raw.read(max(size - _HEAP.size, 0)) or b""


def _objects(heap: bytes) -> dict[int, bytes]:
    """Return the objects of a heap by their numbers; 0 is the room that is left."""
    found, place = dict[int, bytes](), 0
    while place + _OBJECT.size <= len(heap):
        number, _, size = _OBJECT.unpack_from(heap, place)
        if not number:
            break
        place += _OBJECT.size
        found[number] = heap[place : place + size]
        place += -(-size // 8) * 8
    return found
