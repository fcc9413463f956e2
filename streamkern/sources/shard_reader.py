"""The rows of one shard, read from its files where it runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streamkern.errors import DataError
from streamkern.runtime.timing import timed
from streamkern.sources.base import Block, Reader
from streamkern.sources.dataset_checks import Tables, is_encoded
from streamkern.sources.headers import OUTAGES, opened, patiently, undamaged
from streamkern.sources.object_stores import StoredFile
from streamkern.sources.prefetch import Prefetch
from streamkern.sources.range_file import Fetch, RangeFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import h5py

    from streamkern._typing import Array, Floats


class Piece(NamedTuple):
    """Rows start to stop of one file."""

    path: str
    start: int
    stop: int


class _Held(NamedTuple):
    """Memory for the rows of a block; weights are a column."""

    X: Array
    y: Floats
    weights: Floats | None

    @property
    def parts(self) -> list[Array]:
        """What there is to be read."""
        return [part for part in self if part is not None and part.shape[1]]

    def block(self, n_rows: int, place: int) -> Block:
        """Return the first rows."""
        weights = None if self.weights is None else self.weights[:n_rows, 0]
        return Block(self.X[:n_rows], self.y[:n_rows], place, weights)


@dataclass(frozen=True)
class HDF5Reader(Reader):
    """Opens the files of one shard where it runs, and reads its rows in blocks."""

    pieces: tuple[Piece, ...]
    x: str
    y: str | None
    weights: str | None
    start: int
    dtype: str
    n_features: int
    n_targets: int
    cache_bytes: int
    is_tolerant: bool = False

    def blocks(self, n_rows: int) -> Iterator[Block]:
        """Yield the shard's rows in order, every other block in the same memory."""
        most = min(n_rows, sum(piece.stop - piece.start for piece in self.pieces))
        memory = cycle([self._held(most) for _ in range(2)])
        place, filled = self.start, 0
        held = next(memory)
        for piece in self.pieces:
            where = RangeFile(piece.path) if isinstance(piece.path, StoredFile) else piece.path
            with (
                opened(where, self.cache_bytes) as file,
                _coming(where, self._tables(file, piece), piece, n_rows) as coming,
            ):
                datasets = [
                    (each, "decoding" if is_encoded(each) else "reading")
                    for each in coming.datasets
                ]
                row = piece.start
                while row < piece.stop:
                    stop = min(row + n_rows - filled, coming.until(row), piece.stop)
                    part = slice(filled, filled + stop - row)
                    coming.ready(row, stop)
                    for (dataset, activity), into in zip(datasets, held.parts, strict=True):
                        with timed(activity):
                            self._read(dataset, piece, slice(row, stop), into[part])
                    row, filled = stop, part.stop
                    if filled == n_rows:
                        with coming.left_alone():
                            yield held.block(filled, place)
                        place, filled = place + filled, 0
                        held = next(memory)
        if filled:
            yield held.block(filled, place)

    def _held(self, n_rows: int) -> _Held:
        return _Held(
            np.empty((n_rows, self.n_features), self.dtype),
            np.empty((n_rows, self.n_targets)),
            np.empty((n_rows, 1)) if self.weights else None,
        )

    def _tables(self, file: h5py.File, piece: Piece) -> list[h5py.Dataset]:
        """Return the datasets that are read, in the order of `_Held.parts`."""
        columns = (self.x, self.n_features), (self.y, self.n_targets), (self.weights, 1)
        tables = Tables(file, piece.path, (piece.start, piece.stop))
        return [_table(tables, piece, name, n_columns) for name, n_columns in columns if name]

    def _read(self, dataset: h5py.Dataset, piece: Piece, rows: slice, out: Array) -> None:
        out = out if dataset.ndim == 2 else out[:, 0]
        try:
            dataset.read_direct(out, rows)
        except OSError:
            # Chunk by chunk, for the error to name the one that is damaged and no others.
            tall = dataset.chunks[0] if dataset.chunks else rows.stop - rows.start
            for start in range(rows.start - rows.start % tall, rows.stop, tall):
                part = slice(max(start, rows.start), min(start + tall, rows.stop))
                into = out[part.start - rows.start : part.stop - rows.start]
                try:
                    patiently(partial(dataset.read_direct, into, part), lambda _: True)
                except OSError as error:
                    if not self.is_tolerant or error.errno in OUTAGES:
                        raise DataError(
                            f"{piece.path}: rows {part.start:,} to {part.stop:,} of "
                            f"{dataset.name} cannot be read ({error}); copy the file again, or "
                            f"give on_bad_rows 'skip' (--on-bad-rows skip) to leave them out."
                        ) from error
                    into[...] = np.nan


def _coming(
    where: str | RangeFile, datasets: Sequence[h5py.Dataset], piece: Piece, n_ahead: int
) -> Prefetch | Fetch:
    if isinstance(where, RangeFile):
        return Fetch(where, datasets, piece.start, piece.stop)
    return Prefetch(where, datasets, piece.stop, n_ahead)


def _table(tables: Tables, piece: Piece, name: str, n_columns: int) -> h5py.Dataset:
    with undamaged(piece.path):
        found = tables.numbers(name)
    # Beyond the end h5py would repeat a single row as often as needed.
    if len(found) < piece.stop or math.prod(found.shape[1:]) != n_columns:
        raise DataError(f"{piece.path} changed while it was in use; start again.")
    return found
