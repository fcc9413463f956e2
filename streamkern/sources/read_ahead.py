"""Reading ahead: the next block by another thread, and stored bytes from slow disks before HDF5.

HDF5 reads one chunk at a time, and finds what was read before in the cache of the system.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from streamkern.runtime.timing import timed
from streamkern.sources.chunks import stored_rows

if TYPE_CHECKING:
    import h5py

    from streamkern.sources.base import Block

# An answer that takes longer than this comes from slow storage.
_SLOW_SECONDS = 0.002
# Requests under way, and their bytes at most.
_AT_ONCE, _MOST_BYTES = 16, 1 << 20


@contextmanager
def reading_ahead(blocks: Iterable[Block]) -> Iterator[Iterator[Block]]:
    """Give the same blocks in order, each read by another thread while the one before is in use.

    The first is read at once.  What reading raises is raised where the block is asked for.
    """
    source, context = iter(blocks), copy_context()
    # A generator is closed, and with it the files it reads from, however it was left.
    end = closing(source) if isinstance(source, Generator) else nullcontext()

    def read() -> Block | None:
        with timed("reading"):
            return next(source, None)

    with end, ThreadPoolExecutor(1, "read-ahead") as reader:
        first = reader.submit(context.run, read)

        def handed_over() -> Iterator[Block]:
            coming = first
            while (block := coming.result()) is not None:
                coming = reader.submit(context.run, read)
                yield block

        yield handed_over()


@dataclass
class Prefetch:
    """Reads rows of the datasets of one file before HDF5 does, from when one of them came late."""

    path: str
    datasets: Sequence[h5py.Dataset]
    last_row: int
    n_ahead: int
    _file: int = field(default=-1, init=False)
    _version: tuple[int, ...] = field(default=(), init=False)
    _pool: ThreadPoolExecutor | None = field(default=None, init=False)
    _submitted_to: dict[str, int] = field(default_factory=dict, init=False)

    def __enter__(self) -> Self:
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
