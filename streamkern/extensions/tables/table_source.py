"""Rows of tables: cut along groups of rows, read on the workers, and made inputs there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamkern._typing import Array
from streamkern.errors import DataError
from streamkern.errors.formatting import listed, unknown
from streamkern.errors.urls import is_url
from streamkern.extensions.tables.column_encoders import Tally
from streamkern.runtime.timing import timed, timed_each
from streamkern.sources.base import Block, Reader, RowsOfFiles, Segment, Shard, Source
from streamkern.sources.label_columns import LabelColumn

if TYPE_CHECKING:
    from streamkern.extensions.tables.recipe import Recipe
    from streamkern.extensions.tables.stored_tables import StoredTable

# Of inputs that are made at once.
_ENCODED_BYTES = 8 << 20


class Piece(NamedTuple):
    """Rows of one table."""

    table: StoredTable
    start: int
    stop: int

    def read(self, names: Sequence[str]) -> Iterator[Any]:
        return timed_each("decoding", self.table.read(names, self.start, self.stop))


@dataclass(frozen=True, repr=False)
class TableSource(RowsOfFiles):
    """Rows of tables in files, and the recipe that makes inputs and targets of them."""

    files: tuple[StoredTable, ...]
    recipe: Recipe
    reads_targets: bool = True
    reads_weights: bool = True
    unlabelled: int = 0  # rows without a label, which are left out
    ids: tuple[str, ...] = ()
    told: set[str] | None = None  # kinds of cells that were warned of already; None for no warning
    tally: Tally = field(default_factory=Tally, compare=False)

    def __post_init__(self) -> None:
        recipe, targets = self.recipe, self.recipe.targets
        weighted_by = recipe.weights if self.reads_weights else None
        vars(self).update(  # frozen for all others
            n_samples=sum(table.n_rows for table in self.files),
            n_features=len(recipe.feature_names),
            n_targets=len(targets) * self.reads_targets,
            target_ndim=2 if len(targets) > 1 or not self.reads_targets else 1,
            dtype=recipe.dtype,
            weighted_by=weighted_by,
            chunk_bytes=max(t.kept_bytes + getattr(t.path, "kept_bytes", 0) for t in self.files),
            paths=[table.path for table in self.files if not is_url(table.path)],
        )

    @cached_property
    def _segments(self) -> list[Segment]:
        found, start = [], 0
        for table in self.files:
            for n_rows, part in table.segments():
                found.append(Segment(start, start + n_rows, part))
                start += n_rows
        return found

    def segments(self) -> list[Segment]:
        return self._segments

    def pieces_of(self, shard: Shard) -> tuple[Piece, ...]:
        parts = self.parts_of(shard.start, shard.stop)
        return tuple(Piece(*table.part(start, stop)) for table, start, stop in parts)

    def reader(self, shard: Shard) -> TableReader:
        how = self.reads_targets, self.reads_weights, bool(self.unlabelled)
        return TableReader(self.pieces_of(shard), self.recipe, *how, shard.start)

    def labelled(self) -> tuple[Source, LabelColumn]:
        targets = self.recipe.targets
        if len(targets) != 1:
            raise DataError(
                f"labels are in one column, not in {listed(targets) or 'none'}; name one."
            )
        rows = replace(self, reads_targets=False)
        return rows, TableColumn(rows, targets[0])

    def column(self, name: str) -> TableColumn:
        for table in self.files:
            if name not in (present := table.schema.names):
                raise DataError(
                    f"{table.path} has no column {unknown(name, present)}; its columns are "
                    f"{listed(present)}."
                )
        return TableColumn(self, name)

    def take_note(self, noted: Mapping[Any, int]) -> None:
        self.tally.clear()
        self.tally.update(noted)
        if self.told is not None:
            self.tally.warn(self.told)

    def describe(self) -> dict[str, Any]:
        files = [
            {
                "path": t.path if is_url(t.path) else str(Path(t.path).resolve()),
                "n_rows": t.n_rows,
                "file_bytes": t.version[0],
                "modified": t.version[1],
            }
            for t in self.files
        ]
        return {
            "kind": "table",
            "weights": self.recipe.weights if self.reads_weights else None,
            "rows": self.n_samples,
            "files": files,
            "recipe": self.recipe.as_dict(),
        }


@dataclass(frozen=True)
class TableReader(Reader):
    """Opens the tables of one shard where it runs, and makes inputs of their rows in blocks."""

    pieces: tuple[Piece, ...]
    recipe: Recipe
    reads_targets: bool
    reads_weights: bool
    leaves_unlabelled: bool
    start: int
    noted: Tally = field(default_factory=Tally)

    def blocks(self, n_rows: int) -> Iterator[Block]:
        self.noted.clear()
        # Several short blocks become inputs at once.
        row_bytes = max(self.recipe.dtype.itemsize * len(self.recipe.feature_names), 1)
        most = n_rows * max(_ENCODED_BYTES // row_bytes // n_rows, 1)
        most = min(most, sum(piece.stop - piece.start for piece in self.pieces))
        held, spare = self._empty(most), self._empty(most)
        place, filled = self.start, 0
        for piece in self.pieces:
            for batch in piece.read(self._names):
                done = 0
                while done < len(batch):
                    part = batch.slice(done, most - filled)
                    rows = slice(filled, filled + len(part))
                    with timed("decoding"), piece.table.naming():
                        self._encode(part, {name: each[rows] for name, each in held.items()})
                    done, filled = done + len(part), rows.stop
                    if filled == most:
                        yield from _blocks(held, filled, place, n_rows)
                        place, filled = place + filled, 0
                        held, spare = spare, held
        yield from _blocks(held, filled, place, n_rows)

    @property
    def _names(self) -> list[str]:
        recipe = self.recipe
        names = [column.name for column in recipe.columns]
        names += recipe.targets if self.reads_targets or self.leaves_unlabelled else ()
        names += [recipe.weights] if self.reads_weights and recipe.weights else []
        return list(dict.fromkeys(names))

    def _empty(self, n_rows: int) -> dict[str, Array]:
        q, is_weighted = len(self.recipe.targets), self.reads_weights and self.recipe.weights
        return {
            "X": np.empty((n_rows, len(self.recipe.feature_names)), self.recipe.dtype),
            "y": np.empty((n_rows, q * self.reads_targets)),
            **({"weights": np.empty(n_rows)} if is_weighted else {}),
            **({"left_out": np.empty(n_rows, bool)} if self.leaves_unlabelled else {}),
        }

    def _encode(self, batch: Any, out: dict[str, Array]) -> None:
        self.recipe.transform(batch, self.noted, out["X"])
        if self.reads_targets:
            targets: Any = self.recipe.read_targets(batch)
            out["y"][:] = targets.reshape(out["y"].shape)
        if self.reads_weights and self.recipe.weights:
            out["weights"][:] = self.recipe.read_weights(batch)
        if self.leaves_unlabelled:
            out["left_out"][:] = self.recipe.read_targets(batch) == b""


def _blocks(held: dict[str, Array], filled: int, place: int, n_rows: int) -> Iterator[Block]:
    for start in range(0, filled, n_rows):
        rows = slice(start, min(start + n_rows, filled))
        yield Block(**{name: each[rows] for name, each in held.items()}, start=place + start)


@dataclass(frozen=True)
class TableColumn(LabelColumn):
    """A column of tables: labels of classes, or what folds go by, or names of rows."""

    rows: TableSource
    name: str

    def reader(self, shard: Shard) -> ColumnReader:
        return ColumnReader(self.rows.pieces_of(shard), self.rows.recipe, self.name)

    def describe(self) -> dict[str, Any]:
        return {"y": self.name}


@dataclass(frozen=True)
class ColumnReader:
    """Reads one column of the tables of a shard where it runs."""

    pieces: tuple[Piece, ...]
    recipe: Recipe
    name: str

    def __iter__(self) -> Iterator[Array]:
        for piece in self.pieces:
            for batch in piece.read([self.name]):
                with piece.table.naming():
                    if self.recipe.targets != (self.name,):
                        yield from self.recipe.read_beside(batch, [self.name]).values()
                        continue
                    found: Any = self.recipe.read_targets(batch)
                yield np.char.decode(found, "utf-8") if found.dtype.kind == "S" else found
