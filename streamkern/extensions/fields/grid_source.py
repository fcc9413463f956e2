"""Points of a grid as rows, which are made where they are read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.sources.base import Block, Reader, Segment, Shard, Source


@dataclass(frozen=True, eq=False, repr=False)
class GridSource(Source):
    """All points of a grid, the last axis varying fastest; shards are whole slabs of the first.

    Parameters
    ----------
    axes : tuple of array
        The coordinates (n_j,) along every input.
    """

    axes: tuple[Floats, ...]
    n_targets = 0
    target_ndim = 2
    dtype = np.dtype(float)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.axes))

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        return prod(self.shape)

    @property
    def n_features(self) -> int:  # type: ignore[override]
        return len(self.axes)

    def segments(self) -> list[Segment]:
        return [Segment(0, self.n_samples, prod(self.shape[1:]))]

    def reader(self, shard: Shard) -> Reader:
        # Of the first axis, what the shard needs.
        slab = prod(self.shape[1:])
        first, last = shard.start // slab, -(-shard.stop // slab)
        return _GridReader((self.axes[0][first:last], *self.axes[1:]), shard, first * slab)

    def locate(self, row: int) -> str:
        return f"point {tuple(map(int, np.unravel_index(row, self.shape)))} of the grid"

    def describe(self) -> dict[str, Any]:
        return {"kind": "grid", "rows": self.n_samples}


@dataclass(frozen=True)
class _GridReader(Reader):
    axes: Sequence[Array]
    shard: Shard
    origin: int  # the place of the first point of these axes

    def blocks(self, n_rows: int) -> Iterator[Block]:
        shape, stop = tuple(map(len, self.axes)), self.shard.stop
        for start in range(self.shard.start, stop, n_rows):
            rows = np.arange(start, min(start + n_rows, stop)) - self.origin
            places = np.unravel_index(rows, shape)
            X = np.stack([axis[at] for axis, at in zip(self.axes, places, strict=True)], axis=1)
            yield Block(X, np.empty((len(X), 0)), start)
