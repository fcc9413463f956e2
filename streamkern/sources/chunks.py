"""Index of storage chunks: which bytes of a file hold which rows, read once in a process."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    import h5py

    from streamkern._typing import Array

# Datasets whose index a process keeps.
_KEPT = 32


class ByteRange(NamedTuple):
    """Bytes start to stop of a file, which hold rows first to last of a dataset, or parts of them.

    The row and the byte at the end are those after it.
    """

    first: int
    last: int
    start: int
    stop: int


class StoredRows(NamedTuple):
    """Where the rows of a dataset are stored."""

    tall: int
    rows: Array
    starts: Array
    sizes: Array
    origin: int = 0
    row_bytes: int = 0

    @classmethod
    def of(cls, dataset: h5py.Dataset) -> StoredRows:
        """Read the index of a dataset, from its beginning to its end."""
        found: list[tuple[int, int, int]] = []
        row_bytes = dataset.dtype.itemsize * math.prod(dataset.shape[1:])
        if dataset.chunks is None:
            origin = dataset.id.get_offset()
            none = np.empty(0, dtype=np.int64)
            return cls(1, none, none, none, origin or 0, row_bytes if origin else 0)
        # A damaged file can claim any size.
        most = 2 * math.prod(dataset.chunks) * dataset.dtype.itemsize
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
    open_: ByteRange | None = None
    for piece in sorted(pieces, key=lambda piece: piece.start):
        if open_ is not None:
            if 0 <= piece.start - open_.stop <= gap and piece.stop - open_.start <= most:
                ends = min(open_.first, piece.first), max(open_.last, piece.last)
                open_ = ByteRange(*ends, open_.start, piece.stop)
                continue
            yield open_
            open_ = None
        for start in range(piece.start, piece.stop - most, most):
            yield piece._replace(start=start, stop=start + most)
        left = (piece.stop - piece.start - 1) % most + 1
        open_ = piece._replace(start=piece.stop - left)
    if open_ is not None:
        yield open_
