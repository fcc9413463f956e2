"""Rows with a column that is read beside them, and becomes their targets, or changes these."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from streamkern._typing import Array
from streamkern.errors import DataError
from streamkern.runtime.resources import dask
from streamkern.sources.base import Block, Reader, Segment, Shard, Source
from streamkern.sources.label_columns import LabelColumn


class Joining(ABC):
    """What is made of rows and of a column beside them, where both are read."""

    @abstractmethod
    def values(self, part: Array, start: int) -> Array:
        """Return numbers for values of the column, (n,), from a row on."""

    @abstractmethod
    def joined(self, block: Block, values: Array) -> Block:
        """Return rows with what their numbers (n,) make of targets and weights."""


class RowsBeside(Source):
    """Rows of another source, joined with a column of the same rows."""

    joining: Joining

    def __init__(self, rows: Source, beside: LabelColumn) -> None:
        for name in Source.__annotations__:
            setattr(self, name, getattr(rows, name))
        self.rows, self.beside = rows, beside
        self.rounding = rows.rounding  # which need not be that of the dtype

    def segments(self) -> list[Segment]:
        return self.rows.segments()

    def reader(self, shard: Shard) -> Any:
        rows, beside = self.rows.reader(shard), self.beside.reader(shard)
        make: Any = JoinedReader
        if dask.base.is_dask_collection(rows) or dask.base.is_dask_collection(beside):
            make = dask.delayed(make, traverse=False)
        return make(rows, beside, self.joining, shard.start, shard.n_rows)

    def skip_invalid(self) -> Self:
        tolerant = copy(self)
        tolerant.rows, tolerant.beside = self.rows.skip_invalid(), self.beside.skip_invalid()
        return tolerant

    def check_unchanged(self) -> None:
        self.rows.check_unchanged()

    def column(self, name: str) -> LabelColumn:
        return self.rows.column(name)

    def take_note(self, noted: Mapping[Any, int]) -> None:
        self.rows.take_note(noted)

    def locate(self, row: int) -> str:
        return self.rows.locate(row)

    def token(self) -> str | None:
        tokens = self.rows.token(), self.beside.token()
        return None if None in tokens else " ".join(map(str, tokens))


@dataclass(frozen=True)
class JoinedReader(Reader):
    rows: Reader
    beside: Iterable[Any]
    joining: Joining
    start: int
    n_rows: int

    @property
    def noted(self) -> Any:
        return self.rows.noted

    def blocks(self, n_rows: int) -> Iterator[Block]:
        found, done = [], self.start
        for part in self.beside:
            found.append(self.joining.values(part, done))
            done += len(part)
        if done != self.start + self.n_rows:
            raise DataError(
                f"{self.n_rows:,} rows from {self.start:,} on have {done - self.start:,} values "
                f"beside them; give each row one."
            )
        values = np.concatenate(found)
        for block in self.rows.blocks(n_rows):
            yield self.joining.joined(block, values[block.places() - self.start])
