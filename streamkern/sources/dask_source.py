"""Rows of Dask arrays and data frames, whose chunks stay lazy."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamkern.sources.array_source import ArrayReader, Arrays, check_lengths
from streamkern.sources.labelled_source import tasks_of
from streamkern.sources.lazy import as_numbers, column_names, lazy_array, with_known_chunks
from streamkern.sources.shards import Segment, Shard


class DaskSource(Arrays):
    """Rows of Dask arrays, a shard being whole row chunks."""

    kind = "dask array"
    loads_whole_shards = True

    def _description(self, X: Any, y: Any) -> dict[str, Any]:
        named = {"feature_names": column_names(X), "target_names": column_names(y)}
        return {what: names for what, names in named.items() if names}

    def _array(self, name: str, values: Any) -> Any:
        return lazy_array(name, values)

    def _aligned(self, X: Any, y: Any, weights: Any) -> tuple[Any, Any, Any]:
        X, y, weights = with_known_chunks(X, y, weights)
        check_lengths(X, y, weights)
        X, rows = as_numbers(X).rechunk({1: -1}), {0: X.chunks[0]}
        y = y if y is None else y.rechunk(rows | ({1: -1} if y.ndim == 2 else {}))
        return X, y, weights if weights is None else weights.rechunk(rows)

    @property
    def chunk_bytes(self) -> int:  # type: ignore[override]
        return int(max(self.X.chunks[0])) * self.row_bytes

    def segments(self) -> list[Segment]:
        sizes = self.X.chunks[0]
        stops = np.cumsum(sizes).tolist()
        return [Segment(b - n, b, n) for b, n in zip(stops, sizes, strict=True) if n]

    def reader(self, shard: Shard) -> Any:
        from dask import delayed  # noqa: PLC0415  slow, and X has already imported it

        arrays = (self.X, self.y, self.weights)
        parts = ([] if array is None else tasks_of(array, shard) for array in arrays)
        return delayed(ArrayReader)(*parts, shard.start)
