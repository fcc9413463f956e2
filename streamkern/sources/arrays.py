"""Rows of arrays: in memory, which data frames become too, and of Dask, which stay lazy."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from streamkern._typing import Array
from streamkern.errors import DataError
from streamkern.runtime.resources import dask
from streamkern.runtime.sparse_rows import SparseRows, is_sparse
from streamkern.sources.base import Block, Reader, Segment, Shard, Source, negative_weight
from streamkern.sources.containers import (
    as_numbers,
    as_table,
    check_files,
    column_names,
    is_lazy,
    lazy_array,
    lazy_values,
    unwrapped,
    with_known_chunks,
)
from streamkern.sources.label_columns import ArrayLabels, LabelColumn, tasks_of


def as_source(
    X: Any, y: Any = None, sample_weight: Any = None, beside: Mapping[str, Any] | None = None
) -> Source:
    """Return `X` if it is a source, else a source of its rows, and of columns beside them."""
    if isinstance(X, Source):
        if y is not None or sample_weight is not None:
            raise DataError(
                "a source brings its own targets and weights (`open_hdf5` takes the names of "
                "both); pass it without y or sample_weight."
            )
        return X
    X, y = unwrapped("X", X), unwrapped("y", y)
    sample_weight = unwrapped("sample_weight", sample_weight)
    lazily = is_lazy(X.X if isinstance(X, NamedRows) else X)
    source = (DaskSource if lazily else ArraySource)(X, y, sample_weight)
    source.beside = {name: source.label_column(name, each) for name, each in (beside or {}).items()}
    return source


def as_rows(X: Any) -> Any:
    """Return rows to predict: a Dask array of what is lazy, which it stays, else an array."""
    if type(X) is np.ndarray and X.dtype.kind == "f" and X.ndim == 2 and X.size:
        return X
    return as_numbers(lazy_array("X", X)) if is_lazy(X) else ArraySource(X).X


def labelled_rows(
    X: Any, y: Any = None, sample_weight: Any = None, beside: Mapping[str, Any] | None = None
) -> tuple[Source, LabelColumn]:
    if isinstance(X, Source) or y is None:
        return as_source(X, y, sample_weight, beside).labelled()
    rows: Any = as_source(X, None, sample_weight, beside)
    return rows, rows.label_column("y", unwrapped("y", y))


def one_label(y: Any, name: str = "y") -> Any:
    """Return targets or others of shape (n,) or (n, 1) as (n,), or raise DataError."""
    if y.ndim == 2 and y.shape[1] == 1:
        return y[:, 0]
    if y.ndim != 1:
        kind = "label" if name == "y" else "value"
        raise DataError(
            f"{kind}s must have shape (n,), but {name} has shape {y.shape}; give one {kind} a row."
        )
    return y


def _checked(name: str, array: Any, ndims: tuple[int, ...]) -> Any:
    if array.dtype.kind not in "fiub":
        kind = "text" if array.dtype.kind in "SU" else array.dtype
        raise DataError(
            f"{name} must hold floats or integers, but its type is {kind}; convert it to "
            f"numbers first."
        )
    if array.ndim not in ndims:
        raise DataError(
            f"{name} must have {' or '.join(map(str, ndims))} dimensions, but has shape "
            f"{array.shape}; reshape it."
        )
    return array


def check_lengths(X: Any, y: Any, weights: Any) -> None:
    for name, array in (("y", y), ("sample_weight", weights)):
        if array is not None and len(array) != len(X):
            raise DataError(
                f"X has {len(X):,} rows but {name} has {len(array):,}; they must be equally long."
            )
    if y is not None and 0 in y.shape[1:]:
        raise DataError(f"y has shape {y.shape}; at least one target is needed, or no y at all.")
    if not len(X) or not X.shape[1]:
        raise DataError(f"X has shape {X.shape}; at least one row and one column are needed.")


@dataclass(frozen=True)
class NamedRows:
    """Rows, with what a source of them says of their columns."""

    X: Any
    described: dict[str, Any]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.X, dtype=dtype, copy=copy)


class Arrays(Source):
    """Rows of NumPy or of Dask arrays; parameters as in `as_source`."""

    kind: str
    beside: Mapping[str, LabelColumn] = MappingProxyType({})  # columns that folds go by

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None) -> None:
        self.described = X.described if isinstance(X, NamedRows) else dict[str, Any]()
        X = X.X if isinstance(X, NamedRows) else X
        if is_lazy(X):  # tables in memory have become rows
            found = {"feature_names": column_names(X), "target_names": column_names(y)}
            self.described = {
                what: names for what, names in found.items() if names
            } | self.described
        given = {"X": (X, (2,)), "y": (y, (1, 2)), "sample_weight": (sample_weight, (1,))}
        arrays = (
            None if values is None else _checked(name, self._array(name, values), ndims)
            for name, (values, ndims) in given.items()
        )
        self.X, self.y, weights = self.aligned(*arrays)
        self.weights = None if weights is None else weights.astype(float)
        self.weighted_by = None if weights is None else "sample_weight"
        self.n_samples, self.n_features = map(int, self.X.shape)
        self.n_targets = 0 if self.y is None else int(np.prod(self.y.shape[1:], dtype=int))
        self.target_ndim = 1 if self.y is None else self.y.ndim
        self.dtype = self.X.dtype
        self.sparse_row_bytes = self.X.row_bytes if isinstance(self.X, SparseRows) else 0

    @abstractmethod
    def _array(self, name: str, values: Any) -> Any:
        """Return values as an array."""

    @abstractmethod
    def aligned(self, X: Any, y: Any, weights: Any) -> tuple[Any, Any, Any]:
        """Return arrays with numbers in the same rows, or raise DataError."""

    def labelled(self) -> tuple[Source, LabelColumn]:
        if self.y is None:
            return super().labelled()
        rows = type(self)(self.X, None, self.weights)
        rows.beside = self.beside
        return rows, ArrayLabels(one_label(self.y))

    def label_column(self, name: str, values: Any) -> LabelColumn:
        """Return values of any kind, one a row, in the chunks of the rows."""
        lazily = isinstance(self, DaskSource)
        labels = one_label(lazy_values(values) if lazily else np.asarray(values), name)
        if not lazily and len(labels) != self.n_samples:
            raise DataError(
                f"X has {self.n_samples:,} rows but {name} has {len(labels):,}; they must be "
                f"equally long."
            )
        return ArrayLabels(self.aligned(self.X, labels, None)[1])

    def column(self, name: str) -> LabelColumn:
        return self.beside.get(name) or super().column(name)

    def locate(self, row: int) -> str:
        return f"row {row:,}"

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "rows": self.n_samples, **self.described}

    def token(self) -> str:
        return str(dask.base.tokenize(self.X, self.y, self.weights))


class ArraySource(Arrays):
    kind = "array"
    comes_with_tasks = True

    def _array(self, name: str, values: Any) -> Any:
        return as_table(name, values) if name == "X" else np.asarray(values)

    def aligned(self, X: Any, y: Any, weights: Any) -> tuple[Any, Any, Any]:
        check_lengths(X, y, weights)
        if weights is not None and (weights < 0).any():
            place = int((weights < 0).argmax())
            raise DataError(f"{self.locate(place)} {negative_weight(weights[place], place)}")
        return X, y, weights

    def segments(self) -> list[Segment]:
        return [Segment(0, self.n_samples, 1)]

    def reader(self, shard: Shard) -> "ArrayReader":
        rows = slice(shard.start, shard.stop)
        arrays = (self.X, self.y, self.weights)
        X, y, weights = (() if array is None else (array[rows],) for array in arrays)
        return ArrayReader(X, y, weights, shard.start)


class DaskSource(Arrays):
    """Rows of Dask arrays, a shard being whole row chunks."""

    kind = "dask array"
    loads_whole_shards = True

    def _array(self, name: str, values: Any) -> Any:
        return lazy_array(name, values)

    def aligned(self, X: Any, y: Any, weights: Any) -> tuple[Any, Any, Any]:
        check_files(X, y, weights)
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
        arrays = (self.X, self.y, self.weights)
        parts = ([] if array is None else tasks_of(array, shard) for array in arrays)
        return dask.delayed(ArrayReader)(*parts, shard.start)


@dataclass(frozen=True)
class ArrayReader(Reader):
    """Cuts arrays that are already in memory into blocks."""

    X: Sequence[Array]
    y: Sequence[Array]
    weights: Sequence[Array]
    start: int

    def blocks(self, n_rows: int) -> Iterator[Block]:
        parts = [
            SparseRows.of(part) if is_sparse(part) else unwrapped("X", part) for part in self.X
        ]
        # Chunks may have masks that nothing told of before.
        targets = [unwrapped("y", part) for part in self.y]
        weighed = [unwrapped("sample_weight", part) for part in self.weights]
        total = sum(map(len, parts))
        for start in range(0, total, n_rows):
            stop = min(start + n_rows, total)
            X = _rows(parts, start, stop)
            y = _rows(targets, start, stop).astype(float) if targets else np.empty((len(X), 0))
            weights = _rows(weighed, start, stop) if weighed else None
            yield Block(X, y.reshape(len(X), -1), self.start + start, weights)


def _rows(parts: Sequence[Any], start: int, stop: int) -> Any:
    """Return rows of arrays that follow each other, a view where they are in one of them."""
    found = []
    for part in parts:
        if start < len(part) and stop > 0:
            found.append(part[max(start, 0) : stop])
        start, stop = start - len(part), stop - len(part)
    if len(found) > 1 and isinstance(found[0], SparseRows):
        return SparseRows.stacked(found)
    return found[0] if len(found) == 1 else np.concatenate(found)
