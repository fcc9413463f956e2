"""The rows and the labels of one shard, read from its files where it runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from streamkern._typing import Array
from streamkern.errors import DataError
from streamkern.runtime.timing import timed
from streamkern.sources.base import Block, Reader, Shard
from streamkern.sources.dataset_checks import Tables, filters_of, is_text
from streamkern.sources.hdf5_opening import OUTAGES, opened, undamaged, with_retries
from streamkern.sources.label_columns import LABELS_AT_ONCE, LabelColumn
from streamkern.sources.missing_values import MissingValues, missing_values_of
from streamkern.sources.stored_files import StoredFile, StoreError

if TYPE_CHECKING:
    import h5py

T = TypeVar("T")


class Piece(NamedTuple):
    path: str
    start: int
    stop: int


class Column(NamedTuple):
    """A dataset (n, *shape) that is read into a part of every block."""

    part: str
    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class HDF5Reader(Reader):
    """Opens the files of one shard where it runs, and reads its rows in blocks."""

    pieces: tuple[Piece, ...]
    columns: tuple[Column, ...]
    start: int
    cache_bytes: int
    is_tolerant: bool = False

    def blocks(self, n_rows: int) -> Iterator[Block]:
        most = min(n_rows, sum(piece.stop - piece.start for piece in self.pieces))
        held, spare = (
            {c.part: np.empty((most, *c.shape), c.dtype) for c in self.columns} for _ in range(2)
        )
        place, filled = self.start, 0
        for piece in self.pieces:
            with opened(piece.path, self.cache_bytes) as file:
                datasets = [
                    (each, missing_values_of(each, each.name), filters_of(each))
                    for each in self._tables(file, piece)
                ]
                row = piece.start
                while row < piece.stop:
                    stop = min(row + n_rows - filled, piece.stop)
                    part = slice(filled, filled + stop - row)
                    for (dataset, missing, filters), into in zip(
                        datasets, held.values(), strict=True
                    ):
                        with timed("decoding" if filters else "reading"):
                            self._read(dataset, piece, slice(row, stop), into[part])
                        if missing is not None:
                            missing.mark(into[part])
                    row, filled = stop, part.stop
                    if filled == n_rows:
                        path = piece.path
                        with path.in_use() if isinstance(path, StoredFile) else nullcontext():
                            yield _block(held, filled, place)
                        place, filled = place + filled, 0
                        held, spare = spare, held
        if filled:
            yield _block(held, filled, place)

    def _tables(self, file: h5py.File, piece: Piece) -> list[h5py.Dataset]:
        tables = Tables(file, piece.path, whole=False)
        with undamaged(piece.path):
            found = [tables.numbers(column.name) for column in self.columns]
        for dataset, column in zip(found, self.columns, strict=True):
            _check_unchanged(dataset, piece, math.prod(column.shape))
        return found

    def _read(self, dataset: h5py.Dataset, piece: Piece, rows: slice, out: Array) -> None:
        out = out.reshape(len(out), *dataset.shape[1:])

        def read(part: slice) -> None:
            dataset.read_direct(out[part.start - rows.start : part.stop - rows.start], part)

        def leave_out(part: slice) -> None:
            out[part.start - rows.start : part.stop - rows.start] = np.nan

        _read_rows(dataset, piece, rows, read, leave_out if self.is_tolerant else None)


def _block(held: dict[str, Array], n_rows: int, place: int) -> Block:
    parts = {name: part[:n_rows] for name, part in held.items()}
    return Block(**{"y": np.empty((n_rows, 0)), **parts}, start=place)


def _check_unchanged(dataset: h5py.Dataset, piece: Piece, n_columns: int = 1) -> None:
    # Beyond the end h5py would repeat a single row as often as needed.
    if len(dataset) < piece.stop or math.prod(dataset.shape[1:]) != n_columns:
        raise DataError(f"{piece.path} changed while it was in use; start again.")


def _read_rows(  # noqa: PLR0917
    dataset: h5py.Dataset,
    piece: Piece,
    rows: slice,
    read: Callable[[slice], T],
    leave_out: Callable[[slice], T] | None,
    what: str = "rows",
    remedy: str = "copy",
) -> list[T]:
    """Return what `read` gives, and `leave_out`, if there is one, for chunks that are damaged."""
    try:
        return [read(rows)]
    except StoreError as error:
        what = f"{piece.path}, {what} {rows.start:,} to {rows.stop:,}"
        raise DataError(f"{what}, {error}") from error
    except (OSError, UnicodeDecodeError):
        pass
    # Chunk by chunk, for the error to name the one that is damaged and no others.
    found = []
    tall = dataset.chunks[0] if dataset.chunks else rows.stop - rows.start
    for start in range(rows.start - rows.start % tall, rows.stop, tall):
        part = slice(max(start, rows.start), min(start + tall, rows.stop))
        try:
            found.append(with_retries(partial(read, part), lambda _: True))
        except (OSError, UnicodeDecodeError) as error:
            if leave_out is None or getattr(error, "errno", None) in OUTAGES:
                is_coded = isinstance(error, UnicodeDecodeError)
                why = "are no text in UTF-8" if is_coded else f"cannot be read ({error})"
                raise DataError(
                    f"{piece.path}: {what} {part.start:,} to {part.stop:,} of {dataset.name} "
                    f"{why}; {remedy} the file again, or give on_bad_rows 'skip' (--on-bad-rows "
                    f"skip) to leave them out."
                ) from error
            found.append(leave_out(part))
    return found


@dataclass(frozen=True)
class HDF5LabelReader:
    """Opens the files of one shard where it runs, and reads its labels."""

    pieces: tuple[Piece, ...]
    name: str
    is_tolerant: bool = False

    def __iter__(self) -> Iterator[Array]:
        for piece in self.pieces:
            with opened(piece.path) as file:
                with undamaged(piece.path):
                    tables = Tables(file, piece.path, whole=False)
                    dataset = tables.labels(self.name)
                _check_unchanged(dataset, piece)
                read = partial(_labels, dataset, missing_values_of(dataset, self.name))
                leave_out = _no_labels if self.is_tolerant else None
                for start in range(piece.start, piece.stop, LABELS_AT_ONCE):
                    rows = slice(start, min(start + LABELS_AT_ONCE, piece.stop))
                    yield from _read_rows(dataset, piece, rows, read, leave_out, "labels", "write")


def _labels(dataset: h5py.Dataset, missing: MissingValues | None, rows: slice) -> Array:
    """Read some labels, texts of fixed or variable length as such."""
    found: Array = np.asarray(dataset[rows]).reshape(rows.stop - rows.start)
    if found.dtype.kind == "S":
        return np.char.decode(found, "utf-8")
    if is_text(dataset):
        return np.array([label.decode() for label in found.tolist()], dtype=object)
    return found if missing is None else missing.marked_labels(found)


def _no_labels(rows: slice) -> Array:
    return np.full(rows.stop - rows.start, None)


@dataclass(frozen=True)
class HDF5Labels(LabelColumn):
    """Labels in a dataset (n,) or (n, 1) of the files of an `HDF5Source`."""

    rows: Any
    name: str

    def reader(self, shard: Shard) -> HDF5LabelReader:
        return HDF5LabelReader(self.rows.pieces_of(shard), self.name, self.rows.is_tolerant)

    def skip_invalid(self) -> HDF5Labels:
        return HDF5Labels(self.rows.skip_invalid(), self.name)

    def describe(self) -> dict[str, Any]:
        return {"y": self.name}
