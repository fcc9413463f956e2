"""Bytes that are soon read, asked for side by side, where storage takes long to answer.

HDF5 reads one chunk after the other, and one at a time in a process.  Bytes that were read before
are where the operating system keeps them, so that it need not wait for each.
"""

from __future__ import annotations

import math
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import h5py

# An answer that takes longer than this comes from slow storage.
_SLOW_SECONDS = 0.002
# Requests under way, and their bytes at most.
_AT_ONCE, _MOST_BYTES = 16, 1 << 20


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
        self._pool: ThreadPoolExecutor | None = None
        self._wanted: dict[str, int] = {}

    def __enter__(self) -> Self:
        """Open the file."""
        if hasattr(os, "pread"):
            with suppress(OSError):  # HDF5 says what is wrong with it
                self._file = os.open(self.path, os.O_RDONLY)
        return self

    def __exit__(self, *_: object) -> None:
        """Forget what is not yet read."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        if self._file >= 0:
            os.close(self._file)

    def left_alone(self) -> nullcontext[None]:
        """Do nothing while HDF5 reads nothing."""
        return nullcontext()

    def until(self, row: int) -> int:  # noqa: ARG002  others read in steps
        """Return the end of the rows that may be read together with this one."""
        return self.last_row

    def ready(self, first: int, last: int) -> None:
        """Ask for what is stored of the rows after first to last, and wait for nothing."""
        for dataset in self.datasets:
            self._want(dataset, first, last + self.n_ahead)

    def _want(self, dataset: h5py.Dataset, start: int, stop: int) -> None:
        """Ask for the stored bytes of rows of a dataset, once each and in order."""
        start = max(start, self._wanted.get(dataset.name, start))
        stop = min(stop, self.last_row)
        if self._file < 0 or start >= stop:
            return
        with suppress(OSError, RuntimeError, ValueError):  # from a damaged index
            for offset, size in byte_ranges(dataset, start, stop):
                if self._pool is not None:
                    self._pool.submit(self._read, offset, size)
                    continue
                begun = time.perf_counter()
                self._read(offset, size)
                if time.perf_counter() - begun < _SLOW_SECONDS:
                    return  # and look again at the next rows
                self._pool = ThreadPoolExecutor(_AT_ONCE, "prefetch")
        self._wanted[dataset.name] = stop

    def _read(self, offset: int, size: int) -> None:
        with suppress(OSError, OverflowError):  # HDF5 will meet it too, and say which rows it was
            os.pread(self._file, size, offset)


def byte_ranges(dataset: h5py.Dataset, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield offsets and sizes, none of more than 1 MiB, of the stored bytes of rows.

    There are none where the rows are not in this file, and for chunks that were never written.
    """
    n_columns = math.prod(dataset.shape[1:])
    if dataset.chunks is None:
        first = None if dataset.is_virtual or dataset.external else dataset.id.get_offset()
        if first is not None:
            row_bytes = dataset.dtype.itemsize * n_columns
            yield from _cut(first + start * row_bytes, (stop - start) * row_bytes)
        return
    tall, *wide = dataset.chunks
    decoded = math.prod(dataset.chunks) * dataset.dtype.itemsize
    for row in range(start - start % tall, stop, tall):
        for column in range(0, n_columns, wide[0]) if wide else (None,):
            place = (row,) if column is None else (row, column)
            stored = dataset.id.get_chunk_info_by_coord(place)
            if stored.byte_offset is not None:
                # A damaged file can claim any size.
                yield from _cut(stored.byte_offset, min(stored.size, 2 * decoded))


def _cut(offset: int, size: int) -> Iterator[tuple[int, int]]:
    for begun in range(0, size, _MOST_BYTES):
        yield offset + begun, min(_MOST_BYTES, size - begun)
