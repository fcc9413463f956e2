"""Labels as they are stored, shard by shard: in memory, lazy, or in HDF5 files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.base import tokenize

from streamkern.errors import DataError
from streamkern.sources.dataset_checks import Tables, is_text
from streamkern.sources.headers import OUTAGES, opened, patiently, undamaged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import h5py

    from streamkern._typing import Array
    from streamkern.sources.base import Shard
    from streamkern.sources.shard_reader import Piece

# Labels that are held at a time before they are codes.
_AT_ONCE = 1 << 15


class LabelReader(ABC):
    """Reads the labels of one shard; small enough to be sent to a worker, and opened there."""

    @abstractmethod
    def parts(self) -> Iterator[Array]:
        """Yield the shard's labels in order, some at a time."""


class LabelColumn(ABC):
    """One label a row, of any kind."""

    @abstractmethod
    def reader(self, shard: Shard) -> Any:
        """Return a `LabelReader` of the shard, or a Dask task that makes one."""

    def tolerant(self) -> LabelColumn:
        """Return the same labels, with None for those that are stored but cannot be read."""
        return self

    def token(self) -> str | None:
        """Return what stands for all values, or None where reading them all takes too long."""
        return None

    def describe(self) -> dict[str, Any]:
        """Return where the labels are, as plain JSON values."""
        return {}


@dataclass(frozen=True)
class LabelsInMemory(LabelReader):
    """Labels of one shard that are already in memory."""

    arrays: Sequence[Any]

    def parts(self) -> Iterator[Array]:
        """Yield them some at a time."""
        for array in self.arrays:
            for start in range(0, len(array), _AT_ONCE):
                yield np.asarray(array[start : start + _AT_ONCE])


class ArrayLabels(LabelColumn):
    """Labels (n,) in memory."""

    def __init__(self, labels: Array) -> None:
        self.labels = labels

    def reader(self, shard: Shard) -> LabelsInMemory:
        """Return the shard's labels themselves."""
        return LabelsInMemory((self.labels[shard.start : shard.stop],))

    def token(self) -> str:
        """Return a hash of all labels."""
        return str(tokenize(self.labels))


class DaskLabels(LabelColumn):
    """Labels of a Dask array with the chunks of its rows."""

    def __init__(self, labels: Any) -> None:
        self.labels = labels

    def reader(self, shard: Shard) -> Any:
        """Return a Dask task that makes a reader of the shard's chunks."""
        from dask import delayed  # noqa: PLC0415  slow, and the array has already imported it

        starts = np.cumsum((0, *self.labels.chunks[0]))[:-1]
        inside = np.flatnonzero((starts >= shard.start) & (starts < shard.stop))
        chunks = self.labels.blocks[int(inside[0]) : int(inside[-1]) + 1]
        return delayed(LabelsInMemory)(chunks.to_delayed(optimize_graph=False).ravel().tolist())

    def token(self) -> str:
        """Return what Dask calls the array."""
        return str(tokenize(self.labels))


@dataclass(frozen=True)
class HDF5LabelReader(LabelReader):
    """Opens the files of one shard where it runs, and reads its labels."""

    pieces: tuple[Piece, ...]
    name: str
    is_tolerant: bool = False

    def parts(self) -> Iterator[Array]:
        """Yield them some at a time."""
        for piece in self.pieces:
            with opened(piece.path) as file:
                with undamaged(piece.path):
                    tables = Tables(file, piece.path, (piece.start, piece.stop))
                    dataset = tables.labels(self.name)
                if len(dataset) < piece.stop:
                    raise DataError(f"{piece.path} changed while it was in use; start again.")
                for start in range(piece.start, piece.stop, _AT_ONCE):
                    rows = slice(start, min(start + _AT_ONCE, piece.stop))
                    try:
                        found = [_labels(dataset, rows)]
                    except (OSError, UnicodeDecodeError):
                        found = self._by_chunk(dataset, piece, rows)
                    yield from found

    def _by_chunk(self, dataset: h5py.Dataset, piece: Piece, rows: slice) -> list[Array]:
        """Read chunk by chunk, for the error to name the one that is damaged and no others."""
        found = []
        tall = dataset.chunks[0] if dataset.chunks else rows.stop - rows.start
        for start in range(rows.start - rows.start % tall, rows.stop, tall):
            part = slice(max(start, rows.start), min(start + tall, rows.stop))
            try:
                labels = patiently(partial(_labels, dataset, part), lambda _: True)
            except (OSError, UnicodeDecodeError) as error:
                if not self.is_tolerant or getattr(error, "errno", None) in OUTAGES:
                    not_text = isinstance(error, UnicodeDecodeError)
                    why = "are no text in UTF-8" if not_text else f"cannot be read ({error})"
                    raise DataError(
                        f"{piece.path}: labels {part.start:,} to {part.stop:,} of {dataset.name} "
                        f"{why}; write the file again, or give on_bad_rows 'skip' (--on-bad-rows "
                        f"skip) to leave them out."
                    ) from error
                labels = np.full(part.stop - part.start, None)
            found.append(labels)
        return found


def _labels(dataset: h5py.Dataset, rows: slice) -> Array:
    """Read some labels, texts as such."""
    found: Array = np.asarray(dataset[rows]).reshape(rows.stop - rows.start)
    return _decoded(found) if is_text(dataset) else found


def _decoded(labels: Array) -> Array:
    """Return texts for what HDF5 stores of them, of fixed or variable length."""
    if labels.dtype.kind == "S":
        return np.char.decode(labels, "utf-8")
    return np.array([label.decode() for label in labels.tolist()], dtype=object)


@dataclass(frozen=True)
class HDF5Labels(LabelColumn):
    """Labels in a dataset of HDF5 files."""

    rows: Any
    name: str
    is_tolerant: bool = False

    def reader(self, shard: Shard) -> HDF5LabelReader:
        """Return the places of the shard's labels in the files."""
        return HDF5LabelReader(self.rows.pieces_of(shard), self.name, self.is_tolerant)

    def tolerant(self) -> HDF5Labels:
        """Return the same labels, with None for those that are stored but cannot be read."""
        return replace(self, is_tolerant=True)

    def describe(self) -> dict[str, Any]:
        """Return the name of the dataset."""
        return {"y": self.name}
