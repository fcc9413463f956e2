"""Rows in HDF5 files: checked from their headers, cut along storage chunks, read on the worker."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamkern.errors import DataError
from streamkern.sources.base import (
    Block,
    Reader,
    Segment,
    Shard,
    Source,
    rounding_of,
)
from streamkern.sources.headers import (
    CHUNK_CACHE_BYTES,
    OUTAGES,
    FileRows,
    describe_rows,
    matching,
    opened,
    patiently,
    undamaged,
)
from streamkern.sources.prefetch import Prefetch
from streamkern.sources.wholeness import numbers_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import h5py

    from streamkern._typing import Array

_SINGLE_EXACT = {"f2", "f4", "i1", "u1", "i2", "u2"}


class Piece(NamedTuple):
    """Rows start to stop of one file."""

    path: str
    start: int
    stop: int


def open_hdf5(
    paths: str | Path | Sequence[str | Path], x: str = "X", y: str | None = "y"
) -> HDF5Source:
    """Describe rows stored in HDF5 files, without reading any.

    Parameters
    ----------
    paths : path, glob pattern, or sequence of these
        Several files are the rows of one data set: in the order given, a pattern sorted by name.
    x, y : str
        Names of the datasets of inputs (n, p) and of targets (n,) or (n, q); `y` None for inputs
        without targets.

    Returns
    -------
    HDF5Source

    Raises
    ------
    DataError
        If a file is missing or not HDF5, a dataset is absent or has a shape or dtype that is not
        a table of numbers, there are no rows, or files differ in their number of columns.
    """
    given = [paths] if isinstance(paths, (str, Path)) else list(paths)
    names = [name for path in given for name in matching(str(path))]
    if not names:
        raise DataError("no files are named; give at least one.")
    files = tuple(describe_rows(name, x, y) for name in names)
    seen: set[str] = set()
    for file in files:
        if file.path in seen:
            raise DataError(f"{file.path} is named twice, but its rows count once; name it once.")
        seen.add(file.path)
    first = files[0]
    for file in files[1:]:
        if (file.n_features, file.target_shape) != (first.n_features, first.target_shape):
            raise DataError(
                f"files of one data set must have the same columns, but {first.path} has "
                f"{first.columns} and {file.path} has {file.columns}; fit them separately."
            )
    if not sum(file.n_rows for file in files):
        raise DataError(f"{first.path} has zero rows; at least one is needed.")
    return HDF5Source(files, x, y)


@dataclass(frozen=True)
class HDF5Source(Source):
    """Rows in HDF5 files; made by `open_hdf5`.

    Parameters
    ----------
    files : tuple of FileRows
    x : str
    y : str, optional
    is_tolerant : bool
        Whether rows that cannot be read are NaN.
    """

    files: tuple[FileRows, ...]
    x: str
    y: str | None
    is_tolerant: bool = False

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        """The number of rows in all files."""
        return sum(file.n_rows for file in self.files)

    @property
    def n_features(self) -> int:  # type: ignore[override]
        """The number of columns of X."""
        return self.files[0].n_features

    @property
    def n_targets(self) -> int:  # type: ignore[override]
        """The number of columns of y, 0 without y."""
        return sum(self.files[0].target_shape) if self.files[0].target_shape else 1

    @property
    def target_ndim(self) -> int:  # type: ignore[override]
        """The number of dimensions of y as stored."""
        return 1 + len(self.files[0].target_shape)

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        """The dtype that blocks of X have: single where that holds every stored value exactly."""
        single = all(file.dtype in _SINGLE_EXACT for file in self.files)
        return np.dtype(np.float32 if single else np.float64)

    @property
    def chunk_bytes(self) -> int:  # type: ignore[override]
        """The decoded size of the largest row of storage chunks."""
        return max(file.chunk_bytes for file in self.files)

    @property
    def rounding(self) -> float:  # type: ignore[override]
        """The relative rounding of the coarsest file."""
        return max(rounding_of(np.dtype(file.dtype)) for file in self.files)

    def tolerant(self) -> HDF5Source:
        """Return the same rows, with NaN in the place of what is stored but cannot be read."""
        return replace(self, is_tolerant=True)

    def segments(self) -> list[Segment]:
        """Return one segment a file."""
        stops = np.cumsum([file.n_rows for file in self.files]).tolist()
        return [
            Segment(stop - file.n_rows, stop, file.chunk_rows)
            for file, stop in zip(self.files, stops, strict=True)
        ]

    def reader(self, shard: Shard) -> HDF5Reader:
        """Return the places of the shard's rows in the files."""
        pieces = [
            Piece(
                file.path,
                max(shard.start, segment.start) - segment.start,
                min(shard.stop, segment.stop) - segment.start,
            )
            for file, segment in zip(self.files, self.segments(), strict=True)
            if segment.start < shard.stop and shard.start < segment.stop
        ]
        cache_bytes = max(CHUNK_CACHE_BYTES, self.chunk_bytes)
        return HDF5Reader(
            tuple(pieces),
            self.x,
            self.y,
            shard.start,
            self.dtype.str,
            self.n_features,
            self.n_targets,
            cache_bytes,
            self.is_tolerant,
        )

    def locate(self, row: int) -> str:
        """Say which file a row is in, and where."""
        for file, segment in zip(self.files, self.segments(), strict=True):
            if row < segment.stop:
                return f"{file.path}, row {row - segment.start:,}"
        return f"row {row:,}"

    def check_unchanged(self) -> None:
        """Raise DataError if a file is not what it was when it was described."""
        for file in self.files:
            if not file.is_unchanged():
                raise DataError(f"{file.path} changed while it was in use; start again.")

    def describe(self) -> dict[str, Any]:
        """Return paths, shapes and sizes."""
        return {
            "kind": "hdf5",
            "x": self.x,
            "y": self.y,
            "rows": self.n_samples,
            "files": [file._asdict() for file in self.files],
        }


@dataclass(frozen=True)
class HDF5Reader(Reader):
    """Opens the files of one shard where it runs, and reads its rows in blocks."""

    pieces: tuple[Piece, ...]
    x: str
    y: str | None
    start: int
    dtype: str
    n_features: int
    n_targets: int
    cache_bytes: int
    is_tolerant: bool = False

    def blocks(self, n_rows: int) -> Iterator[Block]:
        """Yield the shard's rows in order, every other block in the same memory."""
        most = min(n_rows, sum(piece.stop - piece.start for piece in self.pieces))
        shapes = (most, self.n_features), (most, self.n_targets)
        memory = cycle([(np.empty(shapes[0], self.dtype), np.empty(shapes[1])) for _ in range(2)])
        place, filled = self.start, 0
        X, y = next(memory)
        for piece in self.pieces:
            with (
                opened(piece.path, self.cache_bytes) as file,
                Prefetch(piece.path, piece.stop) as prefetch,
            ):
                inputs = _table(file, piece, self.x, self.n_features)
                targets = None
                if self.y:
                    targets = _table(file, piece, self.y, self.n_targets)
                row = piece.start
                while row < piece.stop:
                    stop = min(row + n_rows - filled, piece.stop)
                    part = slice(filled, filled + stop - row)
                    for dataset, into in ((inputs, X), (targets, y)):
                        if dataset is not None:
                            prefetch.want(dataset, row, stop + n_rows)
                            self._read(dataset, piece, slice(row, stop), into[part])
                    row, filled = stop, part.stop
                    if filled == n_rows:
                        yield Block(X[:filled], y[:filled], place)
                        place, filled = place + filled, 0
                        X, y = next(memory)
        if filled:
            yield Block(X[:filled], y[:filled], place)

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
                            f"give --on-bad-rows skip to leave them out."
                        ) from error
                    into[...] = np.nan


def _table(file: h5py.File, piece: Piece, name: str, n_columns: int) -> h5py.Dataset:
    with undamaged(piece.path):
        found = numbers_in(file, piece.path, name)
    # Beyond the end h5py would repeat a single row as often as needed.
    if len(found) < piece.stop or math.prod(found.shape[1:]) != n_columns:
        raise DataError(f"{piece.path} changed while it was in use; start again.")
    return found
