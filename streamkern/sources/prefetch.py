"""Prefetching: coming bytes are requested in parallel where storage answers slowly.

HDF5 reads one chunk after the other, and one at a time in a process.  Bytes that were read before
are where the operating system keeps them, so that it need not wait for each.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Self

from streamkern.sources.chunks import stored_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        self._version: tuple[int, ...] = ()
        self._pool: ThreadPoolExecutor | None = None
        self._submitted_to: dict[str, int] = {}

    def __enter__(self) -> Self:
        """Open the file."""
        if hasattr(os, "pread"):
            with suppress(OSError):  # HDF5 says what is wrong with it
                self._file = os.open(self.path, os.O_RDONLY)
                status = os.fstat(self._file)
                self._version = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
        return self

    def __exit__(self, *_: object) -> None:
        """Forget what is not yet read."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        if self._file >= 0:
            os.close(self._file)

    def idle(self) -> nullcontext[None]:
        """Do nothing while HDF5 reads nothing."""
        return nullcontext()

    def until(self, row: int) -> int:  # noqa: ARG002  others read in steps
        """Return the end of the rows that may be read together with this one."""
        return self.last_row

    def ready(self, first: int, last: int) -> None:
        """Ask for what is stored of the rows after first to last, and wait for nothing."""
        for dataset in self.datasets:
            self._submit(dataset, first, last + self.n_ahead)

    def _submit(self, dataset: h5py.Dataset, start: int, stop: int) -> None:
        """Ask for the stored bytes of rows of a dataset, once each and in order."""
        start = max(start, self._submitted_to.get(dataset.name, start))
        stop = min(stop, self.last_row)
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
