"""Rows in errors: which rows an error of a pass is about."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from streamkern.errors import DataError, OverflowedError, WorkersLostError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streamkern.sources import Shard, Source


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
