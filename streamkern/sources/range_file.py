"""Range reads: HDF5 reads files in stores from bytes requested before, and from pages.

HDF5 locks all files of the process while it waits for bytes.  So the bytes of rows are fetched
without it, side by side and ahead of their use.  What else it reads (headers, indexes of chunks)
comes in pages, which the process keeps.
"""

from __future__ import annotations

import io
import math
from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

from streamkern.errors import DataError
from streamkern.runtime import garbage_collector
from streamkern.sources.chunks import ByteRange, StoredRows, requests, stored_rows
from streamkern.sources.object_stores import (
    AT_ONCE,
    StoredFile,
    StoreError,
    Target,
    in_threads,
    read,
)

if TYPE_CHECKING:
    import h5py


_PAGE_BYTES, _PAGES = 256 << 10, 64
# So many first pages leave room for others.
FRONTS = _PAGES // 2
# Rows that are asked for, and read, together; and what one request brings.
_STEP_BYTES, _REQUEST_BYTES = 8 << 20, 4 << 20
# So many bytes between two pieces are rather read than left out.
_GAP_BYTES = 16 << 10
# What is asked for ahead of the rows in use.
_AHEAD_BYTES = 16 << 20
# At most held for a reader, besides what it would for a local file and one row of chunks.
HELD_BYTES = _AHEAD_BYTES + _STEP_BYTES + _PAGES * _PAGE_BYTES


@lru_cache(_PAGES)
def _page(target: Target, size: int, number: int) -> bytes:
    return read(target, number * _PAGE_BYTES, min((number + 1) * _PAGE_BYTES, size))


def fetch_fronts(files: Sequence[StoredFile]) -> None:
    """Have the first pages of up to `FRONTS` files at hand, where most headers are."""

    def front(file: StoredFile) -> None:
        with suppress(StoreError):  # whoever reads the file will meet it too
            _page(file.target, file.size, 0)

    in_threads(front, [(file,) for file in files])


class RangeFile(io.RawIOBase):
    """A file in a store, to be read by one thread."""

    def __init__(self, file: StoredFile) -> None:
        self.file = file
        self.requested: dict[int, tuple[ByteRange, Future[bytes]]] = {}  # by their first byte
        self._starts: list[int] = []  # of these, in order
        self._position = 0
        self._failure: StoreError | None = None

    def __repr__(self) -> str:
        """Return what may be shown; HDF5 takes it for the name of the file."""
        return str(self.file)

    def __enter__(self) -> Self:
        """Let HDF5 read the file, for which the garbage collector is paused."""
        try:
            garbage_collector.pause()
        except BaseException:  # Ctrl-C, while it waits
            garbage_collector.resume()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Raise DataError if the store failed, whatever HDF5 made of that."""
        failure = self._failure
        garbage_collector.resume()
        self.close()
        if failure is not None:
            raise DataError(f"{self.file} {failure}") from None

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position}.get(whence, self.file.size)
        self._position = begin + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, with zeros beyond the end, because HDF5 does not look how much it got."""
        view = memoryview(buffer).cast("B")
        done, there = 0, min(len(view), max(self.file.size - self._position, 0))
        while done < there:
            piece = self._piece(self._position + done, there - done)
            view[done : done + len(piece)] = piece
            done += len(piece)
        view[done:] = bytes(len(view) - done)
        self._position += len(view)
        return len(view)

    def _piece(self, offset: int, size: int) -> memoryview:
        """Return some bytes from a place on, one at least."""
        if self._failure is not None:  # HDF5 may try once more
            raise self._failure
        try:
            return self._found(offset, size)
        except StoreError as error:
            self._failure = error
            raise

    def _found(self, offset: int, size: int) -> memoryview:
        place = bisect_right(self._starts, offset)
        if place:
            start = self._starts[place - 1]
            found = memoryview(self.requested[start][1].result())[offset - start :][:size]
            if found:
                return found
        if place < len(self._starts):
            size = min(size, self._starts[place] - offset)
        if size >= _PAGE_BYTES:
            return memoryview(read(self.file.target, offset, offset + size))
        number, within = divmod(offset, _PAGE_BYTES)
        page = _page(self.file.target, self.file.size, number)
        return memoryview(page)[within : within + size]

    def request(self, pool: ThreadPoolExecutor, piece: ByteRange) -> int:
        """Begin to fetch some bytes, keep them until they are released, and return how many."""
        start, stop = piece.start, min(piece.stop, self.file.size)
        if start in self.requested or start >= stop:
            return 0
        insort(self._starts, start)
        self.requested[start] = piece, pool.submit(read, self.file.target, start, stop)
        return stop - start

    def release(self, row: int) -> int:
        """Forget the bytes of rows before this one, and return how many others are held."""
        old = [start for start, (piece, _) in self.requested.items() if piece.last <= row]
        for start in old:
            del self.requested[start]
            self._starts.remove(start)
        return sum(piece.stop - piece.start for piece, _ in self.requested.values())


class Fetch:
    """Fetches the stored bytes of coming rows, and waits for those of the next."""

    def __init__(
        self, raw: RangeFile, datasets: Sequence[h5py.Dataset], first: int, last: int
    ) -> None:
        self.datasets = datasets
        self._raw = raw
        self._next, self._last = first, last
        self._tables: list[StoredRows] = []
        for dataset in datasets:
            with suppress(OSError, RuntimeError, ValueError):  # HDF5 says what is damaged
                self._tables.append(stored_rows(raw.file.target, dataset))
        self._requested_to = [first] * len(self._tables)
        row_bytes = sum(d.dtype.itemsize * math.prod(d.shape[1:]) for d in datasets)
        tall = datasets[0].chunks[0] if datasets[0].chunks else 1
        self._step: int = max(_STEP_BYTES // (tall * row_bytes), 1) * tall
        self._pool = ThreadPoolExecutor(AT_ONCE, "fetch")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    @contextmanager
    def idle(self) -> Iterator[None]:
        """Let the garbage collector work while HDF5 does not."""
        garbage_collector.resume()
        try:
            yield
        finally:
            garbage_collector.pause()

    def until(self, row: int) -> int:
        return row + self._step - row % self._step

    def ready(self, first: int, last: int) -> None:
        """Wait until rows first to last are in memory, let go of those before, ask for more."""
        held = self._raw.release(first)
        while self._next < min(self._last, last) or (
            self._next < self._last and held < _AHEAD_BYTES
        ):
            held += self._request(self._next, min(self.until(self._next), self._last))
        for piece, coming in self._raw.requested.values():
            if piece.first < last:
                try:
                    coming.result()
                except StoreError as error:
                    what = f"rows {first:,} to {last:,}"
                    raise DataError(f"{self._raw.file}, {what}, {error}") from error

    def _request(self, first: int, last: int) -> int:
        """Request what is stored of some rows and was not requested, and return how many bytes."""
        requested = 0
        for i, table in enumerate(self._tables):
            begin = max(first, self._requested_to[i])
            if begin < last:
                self._requested_to[i] = table.ends(last)
                pieces = requests(table.between(begin, last), _REQUEST_BYTES, _GAP_BYTES)
                requested += sum(self._raw.request(self._pool, piece) for piece in pieces)
        self._next = last
        return requested
