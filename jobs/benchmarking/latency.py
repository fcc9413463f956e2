"""Rows on storage that answers late: every chunk that is read takes so much longer."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarking.rows import opened
from streamkern.sources import Reader, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamkern.sources import Block, HDF5Source, Shard
    from streamkern.sources.base import Segment


class LateSource(Source):
    """The rows of one HDF5 file, every storage chunk of which comes late.

    Parameters
    ----------
    inner : HDF5Source
        Of one file.
    seconds : float
        For every chunk, of inputs or of targets, that a reader touches.
    """

    def __init__(self, inner: HDF5Source, seconds: float) -> None:
        self.inner = inner
        self.seconds = seconds
        for name in Source.__annotations__:
            setattr(self, name, getattr(inner, name))
        (described,) = inner.files
        with opened(described.path) as file:
            datasets = [file[name] for name in (inner.x, inner.y) if name is not None]
            self.chunk_rows = tuple(dataset.chunks[0] for dataset in datasets)

    def segments(self) -> list[Segment]:
        """Return where the rows may be cut."""
        return self.inner.segments()

    def reader(self, shard: Shard) -> LateReader:
        """Return a reader of the shard that waits."""
        return LateReader(self.inner.reader(shard), shard.start, self.chunk_rows, self.seconds)

    def check_unchanged(self) -> None:
        """Raise DataError if the file is not what it was."""
        self.inner.check_unchanged()

    def locate(self, row: int) -> str:
        """Say in words where a row is."""
        return self.inner.locate(row)

    def describe(self) -> dict[str, Any]:
        """Return where the rows are."""
        return self.inner.describe()


@dataclass(frozen=True)
class LateReader(Reader):
    """Reads as another reader does, and waits for every chunk that a block is the first to touch.

    Parameters
    ----------
    inner : Reader
    start : int
        The first row.
    chunk_rows : tuple of int
        Of every dataset that is read.
    seconds : float
    """

    inner: Reader
    start: int
    chunk_rows: tuple[int, ...]
    seconds: float

    def blocks(self, n_rows: int) -> Iterator[Block]:
        """Yield the blocks of the other reader, late."""
        # A chunk that an earlier block of this shard began is in the cache.
        unread = [self.start // rows for rows in self.chunk_rows]
        for block in self.inner.blocks(n_rows):
            stop = block.start + len(block)
            read = [-(-stop // rows) for rows in self.chunk_rows]
            time.sleep(self.seconds * (sum(read) - sum(unread)))
            unread = read
            yield block
