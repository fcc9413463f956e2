"""Shards: ranges of rows, cut between storage chunks, and named by errors of their tasks."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from streamkern.errors import DataError, OverflowedError, WorkersLostError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streamkern.sources.base import Source

# As soon as no more than so many shards are left, these become smaller.
_LAST_SHARDS = 4


@dataclass(frozen=True)
class Shard:
    """A contiguous range of rows, start to stop, that one Dask task accumulates."""

    index: int
    start: int
    stop: int

    @property
    def n_rows(self) -> int:
        return self.stop - self.start


class Segment(NamedTuple):
    """Consecutive rows that are stored in equal chunks, and may be cut only between chunks."""

    start: int
    stop: int
    chunk_rows: int


def cut_at_chunks(segments: list[Segment], n_rows: int, fewest: int | None) -> tuple[Shard, ...]:
    """Return shards of about `n_rows`, the last ones smaller, for workers to end together."""
    step = n_rows if fewest is None else min(fewest, n_rows)
    shards: list[Shard] = []
    start, n_samples = 0, segments[-1].stop
    for segment in segments:
        while True:
            left = n_samples - start
            size = min(n_rows, max(left // (_LAST_SHARDS * step), 1) * step)
            if segment.stop - start < size:
                break
            chunks = (start + size - segment.start) // segment.chunk_rows
            stop = segment.start + chunks * segment.chunk_rows
            if stop <= start:
                stop = max(segment.start, start) + segment.chunk_rows
            stop = min(stop, segment.stop)
            shards.append(Shard(len(shards), start, stop))
            start = stop
    if start < n_samples:
        shards.append(Shard(len(shards), start, n_samples))
    return tuple(shards)


@contextmanager
def naming_rows(source: Source, shards: Sequence[Shard], name: str) -> Iterator[None]:
    """Say where the rows are that workers died at, whose sums overflowed, or that are refused."""
    try:
        yield
    except OverflowedError as error:
        if error.rows is None:
            raise
        raise OverflowedError(f"{source.locate(error.rows[0])}: {error}") from error
    except DataError as error:
        if error.row is None:
            raise
        raise DataError(f"{source.locate(error.row)} {error}") from error
    except WorkersLostError as error:
        ours = [task for task in error.tasks if task.startswith(f"{name}-")]
        if not ours:
            raise
        shard = shards[int(ours[0].rpartition("-")[2])]
        what = (
            f"shard {shard.index + 1} of {len(shards)}, from {source.locate(shard.start)}, to "
            f"{source.locate(shard.stop - 1)}, or one beside it,"
        )
        raise WorkersLostError(error.tasks, error.times, what) from error
