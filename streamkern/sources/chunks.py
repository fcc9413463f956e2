"""Storage chunks: an index of which bytes of a file hold which rows of a dataset."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streamkern._typing import Array

if TYPE_CHECKING:
    import h5py

# Datasets whose index a process keeps.
_KEPT = 32


def item_bytes(dataset: h5py.Dataset) -> int:
    """Return the bytes of a value in the file: those of bfloat16, say, are more in NumPy."""
    return int(dataset.id.get_type().get_size())


class ByteRange(NamedTuple):
    """Bytes start to stop of a file, which hold rows first to last of a dataset, or parts."""

    first: int
    last: int
    start: int
    stop: int


class StoredRows(NamedTuple):
    tall: int  # rows of a chunk
    rows: Array  # the first one of every chunk
    starts: Array
    sizes: Array
    origin: int = 0  # where there are no chunks
    row_bytes: int = 0

    @classmethod
    def of(cls, dataset: h5py.Dataset) -> StoredRows:
        found: list[tuple[int, int, int]] = []
        if dataset.chunks is None:
            origin = dataset.id.get_offset() or 0
            row_bytes = item_bytes(dataset) * math.prod(dataset.shape[1:])
            none = np.empty(0, dtype=np.int64)
            return cls(1, none, none, none, origin, row_bytes if origin else 0)
        # A damaged file can claim any size.
        most = 2 * math.prod(dataset.chunks) * item_bytes(dataset)
        dataset.id.chunk_iter(
            lambda chunk: found.append((chunk.chunk_offset[0], chunk.byte_offset, chunk.size))
        )
        rows, starts, sizes = np.array(sorted(found), dtype=np.int64).reshape(-1, 3).T
        return cls(dataset.chunks[0], rows, starts, np.minimum(sizes, most))

    def ends(self, row: int) -> int:
        """Return the end of the chunks that hold the row before this one."""
        return -(-row // self.tall) * self.tall

    def between(self, first: int, last: int) -> Iterator[ByteRange]:
        """Yield what is stored of rows first to last, in the order of rows."""
        if self.row_bytes:
            start, stop = (self.origin + row * self.row_bytes for row in (first, last))
            yield ByteRange(first, last, start, stop)
        begin, end = np.searchsorted(self.rows, (first - first % self.tall, last)).tolist()
        for i in range(begin, end):
            row, start, size = int(self.rows[i]), int(self.starts[i]), int(self.sizes[i])
            yield ByteRange(row, row + self.tall, start, start + size)


_known: dict[tuple[Hashable, str], StoredRows] = {}


def stored_rows(file: Hashable, dataset: h5py.Dataset) -> StoredRows:
    """Return where the rows of a dataset are stored, read once in a process for equal files."""
    key = file, dataset.name
    found = _known.get(key)
    if found is None:
        found = StoredRows.of(dataset)
        for old in [*_known][: len(_known) - _KEPT + 1]:
            _known.pop(old, None)
        _known[key] = found
    return found


def requests(pieces: Iterator[ByteRange], most: int, gap: int) -> Iterator[ByteRange]:
    """Yield the same bytes in pieces of at most so many, those close to each other together."""
    begun: ByteRange | None = None
    for piece in sorted(pieces, key=lambda piece: piece.start):
        if begun is not None:
            if 0 <= piece.start - begun.stop <= gap and piece.stop - begun.start <= most:
                rows = min(begun.first, piece.first), max(begun.last, piece.last)
                begun = ByteRange(*rows, begun.start, piece.stop)
                continue
            yield begun
        start = piece.start
        while piece.stop - start > most:
            yield piece._replace(start=start, stop=start + most)
            start += most
        begun = piece._replace(start=start)
    if begun is not None:
        yield begun
