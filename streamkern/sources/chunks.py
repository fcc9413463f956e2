"""Storage chunks: an index of which bytes hold which rows, and prefetching of coming ones.

HDF5 reads one chunk at a time in a process.  It finds bytes that were read before in the cache of
the operating system.
"""

from __future__ import annotations

import math
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    import h5py

    from streamkern._typing import Array

# Datasets whose index a process keeps.
_KEPT = 32
# An answer that takes longer than this comes from slow storage.
_SLOW_SECONDS = 0.002
# Requests under way, and their bytes at most.
_AT_ONCE, _MOST_BYTES = 16, 1 << 20


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
            row_bytes = dataset.dtype.itemsize * math.prod(dataset.shape[1:])
            none = np.empty(0, dtype=np.int64)
            return cls(1, none, none, none, origin, row_bytes if origin else 0)
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


class Prefetch:
    """Reads rows of the datasets of one file before HDF5 does, from when one of them came late."""

    def __init__(
        self, path: str, datasets: Sequence[h5py.Dataset], last_row: int, n_ahead: int
    ) -> None:
        self.path = path
        self.datasets = datasets
        self.last_row = last_row
        self.n_ahead = n_ahead
        self._file = -1
        self._version: tuple[int, ...] = ()
        self._pool: ThreadPoolExecutor | None = None
        self._submitted_to: dict[str, int] = {}

    def __enter__(self) -> Self:
        if hasattr(os, "pread"):
            with suppress(OSError):  # HDF5 says what is wrong with it
                self._file = os.open(self.path, os.O_RDONLY)
                status = os.fstat(self._file)
                self._version = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        if self._file >= 0:
            os.close(self._file)

    def idle(self) -> nullcontext[None]:
        return nullcontext()

    def until(self, row: int) -> int:  # noqa: ARG002  others read in steps
        """Return the end of the rows that may be read together with this one."""
        return self.last_row

    def ready(self, first: int, last: int) -> None:
        """Ask for what is stored of the rows after first to last, and wait for nothing."""
        for dataset in self.datasets:
            self._submit(dataset, first, min(last + self.n_ahead, self.last_row))

    def _submit(self, dataset: h5py.Dataset, start: int, stop: int) -> None:
        """Ask for the stored bytes of rows of a dataset, once each and in order."""
        start = max(start, self._submitted_to.get(dataset.name, start))
        if self._file < 0 or start >= stop:
            return
        with suppress(OSError, RuntimeError, ValueError):  # from a damaged index
            table = stored_rows(self._version, dataset)
            for piece in table.between(start, stop):
                for offset in range(piece.start, piece.stop, _MOST_BYTES):
                    size = min(_MOST_BYTES, piece.stop - offset)
                    if self._pool is not None:
                        self._pool.submit(self._read, offset, size)
                        continue
                    begun = time.perf_counter()
                    self._read(offset, size)
                    if time.perf_counter() - begun < _SLOW_SECONDS:
                        return  # and look again at the next rows
                    self._pool = ThreadPoolExecutor(_AT_ONCE, "prefetch")
        self._submitted_to[dataset.name] = stop

    def _read(self, offset: int, size: int) -> None:
        with suppress(OSError, OverflowError):  # HDF5 will meet it too, and say which rows it was
            os.pread(self._file, size, offset)
