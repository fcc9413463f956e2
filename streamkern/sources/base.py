"""Sources of rows: the interface, and the shards and blocks that rows are read in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamkern._docstrings import described
from streamkern._typing import Array, Floats
from streamkern.errors import DataError, OverflowedError, ParameterError, WorkersLostError
from streamkern.sources.stored_files import in_threads, is_unchanged

if TYPE_CHECKING:
    from streamkern.sources.label_columns import LabelColumn

# As soon as no more than so many shards are left, these become smaller.
_LAST_SHARDS = 4
# While there would be more than so many, they are larger, up to so many times: a scheduler has work
# with each, and a worker that is lost costs as much.
_MANY_SHARDS, _MOST_TIMES = 4096, 64
# What methods of sources and readers take and return.
_PROTOCOL = """
n_rows : int
    Of a block; of `shards` about those of a shard.
fewest : int, optional
    About how many rows the last shards are multiples of.
shard : Shard
row : int
    Its place in the source, from 0.
noted : mapping of object to int
    How often readers met it.
name : str
targets : ndarray of shape (q,)
blocks() : iterator of Block
    Rows (n, p) and targets (n, q), weights (n,) where rows have some.
segments() : list of Segment
reader() : Reader, or Dask task of one
locate() : str
describe() : dict of plain JSON values
labelled() : tuple of Source and LabelColumn
column() : LabelColumn
shards() : tuple of Shard
"""


def rounding_of(dtype: np.dtype[Any]) -> float:
    """Return the relative rounding of a dtype, 0 for integers."""
    return float(np.finfo(dtype).eps) if dtype.kind == "f" else 0.0


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


@dataclass(frozen=True)
class Block:
    """Rows held in memory at once.

    They may be overwritten once the block after the next is asked for: the next is read meanwhile.
    """

    X: Any  # (rows, p), an array, or `SparseRows`
    y: Floats  # (rows, q)
    start: int  # of the source
    weights: Floats | None = None  # (rows,), None for all 1
    rows: Array | None = None  # (rows,), their places in the source where some were left out
    left_out: Array | None = None  # (rows,), true of rows that do not count

    def __len__(self) -> int:
        return len(self.X)

    def places(self) -> Array:
        """Return the place of every row in the source, (rows,), int64."""
        if self.rows is not None:
            return self.rows
        return np.arange(self.start, self.start + len(self), dtype=np.int64)

    def each_weight(self) -> Floats:
        """Return the weight of every row, (rows,): 1 where none are given."""
        return np.ones(len(self)) if self.weights is None else self.weights

    def counting(self) -> Block:
        """Return the rows that count: all but those left out or of weight 0, whatever they hold."""
        if self.left_out is not None:
            return self.where(~self.left_out).counting()
        if self.weights is None:
            return self
        negative = np.flatnonzero(self.weights < 0)
        if len(negative):
            raise negative_weight(self.weights[negative[0]], int(self.places()[negative[0]]))
        return self.where(self.weights != 0)

    def where(self, kept: Array) -> Block:
        """Return the rows where `kept` (rows,) is true."""
        if kept.all():
            return self
        weights = None if self.weights is None else self.weights[kept]
        return Block(self.X[kept], self.y[kept], self.start, weights, self.places()[kept])


def negative_weight(weight: float, place: int) -> DataError:
    error = DataError(
        f"has the weight {weight:g}, but a weight is how often a row counts; give numbers of at "
        f"least 0."
    )
    error.row = place
    return error


@described(_PROTOCOL)
class Reader(ABC):
    """Reads one shard; small enough to be sent to a worker, and opened there."""

    noted: Any = None  # counts of what was met in the rows, a `Counter`, where there are any

    @abstractmethod
    def blocks(self, n_rows: int) -> Iterator[Block]:
        """Yield the shard's rows in order, in blocks of `n_rows`; the last may be shorter.

        How rows are cut decides how sums round, so blocks are full across the files of a shard.
        """


def in_full_blocks(blocks: Iterator[Block], shard: Shard, n_rows: int) -> Iterator[Block]:
    """Yield the blocks of a reader, or raise DataError unless they are as `Reader.blocks` says."""
    place = shard.start
    for block in blocks:
        n_expected = min(n_rows, shard.stop - place)
        found = {(block.start, len(each)) for each in (block.X, block.y)}
        if block.rows is None and found != {(place, n_expected)}:
            raise DataError(
                f"a reader must give rows {place:,} to {place + n_expected:,} in its next block, "
                f"but gave {len(block.y):,} rows from {block.start:,} on; let `Reader.blocks` "
                f"yield the rows of the shard in order, in blocks of n_rows but for the last."
            )
        place += n_expected
        yield block


@described(_PROTOCOL)
class Source(ABC):
    """Rows of inputs and targets, too many to hold at once."""

    n_samples: int
    n_features: int
    n_targets: int  # 0 where there is no target
    target_ndim: int  # 1 where the target is stored as (n,), else 2
    dtype: np.dtype[Any]  # of X in a block
    loads_whole_shards: bool = False  # before their first block
    comes_with_tasks: bool = False  # from this process, where tasks run elsewhere
    chunk_bytes: int = 0  # that a reader keeps of the storage chunks it is in the middle of
    weighted_by: str | None = None  # the name of the weights, None where all rows count once
    encoding: Any = None  # a `TargetEncoding`, where targets stand for labels
    missing_labels: str = ""  # what bad rows are there
    sparse_row_bytes: int = 0  # of a row on average, where X in a block is sparse
    paths: Sequence[str] = ()  # of all files here that rows are read from
    ids: Sequence[str] = ()  # names of what says which row it is, and goes with its prediction

    def __repr__(self) -> str:
        p, q = self.n_features, self.n_targets
        columns = f"{p:,} input{'s' * (p != 1)}, {q:,} target{'s' * (q != 1)}"
        return f"{type(self).__name__}({self.n_samples:,} rows, {columns}, {self.dtype})"

    @cached_property
    def rounding(self) -> float:
        """The relative rounding of the values of X as they are stored; 0 for integers."""
        return rounding_of(self.dtype)

    @property
    def is_weighted(self) -> bool:
        return self.weighted_by is not None

    @abstractmethod
    def segments(self) -> list[Segment]:
        """Return where the rows may be cut, in order."""

    @abstractmethod
    def reader(self, shard: Shard) -> Any:
        """Return what reads a shard."""

    def check_unchanged(self) -> None:  # noqa: B027  rows in memory are trusted
        """Raise DataError if the rows are known not to be what they were."""

    def take_note(self, noted: Mapping[Any, int]) -> None:  # noqa: B027
        """Hear of what readers `noted` in a pass over all rows."""

    @abstractmethod
    def locate(self, row: int) -> str:
        """Say in words where a row is."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return where the rows are, as plain JSON values."""

    def token(self) -> str | None:
        """Return what stands for all values, or None where reading them all takes too long."""
        return None

    def labelled(self) -> tuple[Source, LabelColumn]:
        """Return the inputs without targets, and the targets as labels of classes."""
        raise DataError(
            "a classifier needs labels, but these rows have none; give them with y, or open files "
            "with labels=True."
        )

    def column(self, name: str) -> LabelColumn:
        """Return a column that folds go by."""
        raise ParameterError(
            f"folds are to go by {name!r}, a column that these rows do not have; give its values "
            f"to fit as groups or times, or name a dataset of the files."
        )

    def skip_invalid(self) -> Source:
        """Return the same rows, with NaN in the place of what is stored but cannot be read."""
        return self

    @property
    def row_bytes(self) -> int:
        return self.sparse_row_bytes or self.n_features * self.dtype.itemsize

    def constant_targets_error(self, targets: Floats) -> DataError:
        """Return the error that says that every row has these targets (q,)."""
        return DataError(
            f"every y equals {targets[0]:g}, so there is nothing to learn; check which dataset "
            f"holds the target."
        )

    def shards(self, n_rows: int, fewest: int | None = None) -> tuple[Shard, ...]:
        """Cut all rows into shards of about `n_rows`, between storage chunks.

        The last are smaller, for all workers to end together, and of very many rows the first are
        larger.  Without `fewest` all are of about `n_rows`.
        """
        step = n_rows if fewest is None else min(fewest, n_rows)
        grows = fewest is not None and not self.loads_whole_shards
        shards: list[Shard] = []
        start, n_samples = 0, self.n_samples
        for segment in self.segments():
            while True:
                left = n_samples - start
                times = min(max(left // (_MANY_SHARDS * n_rows), 1), _MOST_TIMES) if grows else 1
                size = min(times * n_rows, max(left // (_LAST_SHARDS * step), 1) * step)
                if segment.stop - start < size:
                    break
                chunks = (start + size - segment.start) // segment.chunk_rows
                stop = segment.start + chunks * segment.chunk_rows
                if stop <= start:
                    stop = start + segment.chunk_rows
                stop = min(stop, segment.stop)
                shards.append(Shard(len(shards), start, stop))
                start = stop
        if start < n_samples:
            shards.append(Shard(len(shards), start, n_samples))
        return tuple(shards)


class RowsOfFiles(Source):
    """Rows of files, one file after the other."""

    files: tuple[Any, ...]  # with `path`, `n_rows` and `version`

    @cached_property
    def _ends(self) -> list[int]:
        return np.cumsum([file.n_rows for file in self.files]).tolist()

    def parts_of(self, start: int, stop: int) -> Iterator[tuple[Any, int, int]]:
        """Yield the files that have some rows, and which of theirs these are."""
        some = slice(bisect_right(self._ends, start), bisect_left(self._ends, stop) + 1)
        for file, end in zip(self.files[some], self._ends[some], strict=True):
            begin = end - file.n_rows
            if file.n_rows:
                yield file, max(start - begin, 0), min(stop, end) - begin

    def locate(self, row: int) -> str:
        for file, place, _ in self.parts_of(row, row + 1):
            return f"{file.path}, row {place:,}"
        return f"row {row:,}"

    def check_unchanged(self) -> None:
        same = in_threads(is_unchanged, [(file.path, file.version) for file in self.files])
        for file, is_same in zip(self.files, same, strict=True):
            if not is_same:
                raise DataError(f"{file.path} changed while it was in use; start again.")


class Opened(NamedTuple):
    """Rows of files, and how many of them have no label."""

    source: Any
    unlabelled: int = 0
    tally: Any = None  # after a pass: counts of cells not expected there, with `as_dict`

    @property
    def unexpected(self) -> dict[str, int]:
        return {} if self.tally is None else self.tally.as_dict()


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
