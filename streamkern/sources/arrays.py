"""What is taken as rows: arrays, data frames, and Dask collections, which stay lazy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.errors import DataError
from streamkern.sources.array_source import (
    ArrayReader,
    Arrays,
    ArraySource,
    check_lengths,
    one_label,
)
from streamkern.sources.base import Segment, Shard, Source
from streamkern.sources.containers import (
    as_numbers,
    column_names,
    is_lazy,
    lazy_array,
    lazy_values,
    unwrapped,
    with_known_chunks,
)
from streamkern.sources.labelled_source import ArrayLabels, tasks_of

if TYPE_CHECKING:
    from streamkern.sources.labelled_source import LabelColumn


def as_source(X: Any, y: Any = None, sample_weight: Any = None) -> Source:
    """Return `X` if it is a source, else a source of its rows."""
    if isinstance(X, Source):
        if y is not None or sample_weight is not None:
            raise DataError(
                "a source brings its own targets and weights (`open_hdf5` takes the names of "
                "both); pass it without y or sample_weight."
            )
        return X
    X, y = unwrapped("X", X), unwrapped("y", y)
    return (DaskSource if is_lazy(X) else ArraySource)(X, y, sample_weight)


def as_rows(X: Any) -> Any:
    """Return rows to predict: a Dask array of what is lazy, which it stays, else an array."""
    return as_numbers(lazy_array("X", X)) if is_lazy(X) else ArraySource(X).X


def labelled_rows(X: Any, y: Any = None, sample_weight: Any = None) -> tuple[Source, LabelColumn]:
    if isinstance(X, Source) or y is None:
        return as_source(X, y, sample_weight).labelled()
    rows: Any = as_source(X, None, sample_weight)
    labels = one_label(lazy_values(y) if isinstance(rows, DaskSource) else np.asarray(y))
    _, labels, _ = rows.aligned(rows.X, labels, None)
    return rows, ArrayLabels(labels)


class DaskSource(Arrays):
    """Rows of Dask arrays, a shard being whole row chunks."""

    kind = "dask array"
    loads_whole_shards = True

    def _description(self, X: Any, y: Any) -> dict[str, Any]:
        named = {"feature_names": column_names(X), "target_names": column_names(y)}
        return {what: names for what, names in named.items() if names}

    def _array(self, name: str, values: Any) -> Any:
        return lazy_array(name, values)

    def aligned(self, X: Any, y: Any, weights: Any) -> tuple[Any, Any, Any]:
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
