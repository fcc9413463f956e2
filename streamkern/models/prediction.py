"""Predictions and features of every row: of an array, lazily, or of a source, shard by shard."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.engine.scheduler import delayed, persist
from streamkern.engine.task_stream import map_shards
from streamkern.features import FeatureMap
from streamkern.parameters.chunking import chunk_sizes
from streamkern.predict.intervals import Interval
from streamkern.predict.predictor import RowFunction
from streamkern.predict.support import SupportRows
from streamkern.runtime.scratch import Scratch
from streamkern.runtime.sparse_rows import is_sparse
from streamkern.sources import Block, Shard, Source
from streamkern.sources.arrays import as_rows
from streamkern.sources.containers import as_table, is_dask_array, is_lazy, once

# What the predictions of one shard may take on their way to the writer.
_SHARD_BYTES = 32 << 20


def by_rows(
    function: Callable[..., Any],
    rows: Any,
    n_columns: int | None,
    dtype: Any = np.float64,
    **model: Any,
) -> Any:
    """Return what a function makes of rows, lazily of a Dask array."""
    if not is_dask_array(rows):
        return function(rows, **model)
    columns = () if n_columns is None else (n_columns,)
    rows = rows.rechunk({1: -1}) if rows.ndim == 2 else rows
    return rows.map_blocks(
        function,
        dtype=dtype,
        drop_axis=1 if rows.ndim == 2 and not columns else None,
        new_axis=1 if rows.ndim == 1 and columns else None,
        chunks=(rows.chunks[0], *((q,) for q in columns)),
        meta=np.empty((0,) * (1 + len(columns)), dtype=dtype),
        **{name: once(value) for name, value in model.items()},
    )


def applied(X: Any, model: Any, method: str, **options: Any) -> Any:
    """Return what a method of a model makes of rows, which may be a sparse chunk."""
    return getattr(model, method)(as_table("X", X) if is_sparse(X) else X, **options)


def features_of(feature_map: FeatureMap, X: Any, dtype: type[np.floating[Any]] = np.float64) -> Any:
    """Return the features (n, D) of rows (n, p), lazily of a Dask collection."""
    if not is_lazy(X):
        return feature_map.transform(as_table("X", X), dtype)
    rows = as_rows(X)
    feature_map.check(rows.shape)
    function = partial(applied, method="transform", dtype=dtype)
    return by_rows(function, rows, feature_map.n_components, dtype, model=feature_map)


@dataclass(frozen=True)
class _PredictShard:
    predictor: RowFunction
    block_rows: int
    deviation: Any = None  # what has `standard_deviations` of rows
    support: SupportRows | None = None
    every: int = 1  # row that support is told of
    interval: Interval | None = None

    def __call__(self, blocks: Iterator[Block], n_rows: int, scratch: Scratch) -> dict[str, Floats]:
        q = self.predictor.n_targets
        names = ["y_pred"] + ["y_std"] * (self.deviation is not None)
        names += ["y_lower", "y_upper"] * (self.interval is not None)
        made = {name: np.empty((n_rows, q)) for name in names}
        write = self.predictor.buffered(min(n_rows, self.block_rows), scratch)
        done, supports = 0, []
        for block in blocks:
            rows = slice(done, done + len(block))
            write(block.X, made["y_pred"][rows])
            if self.deviation is not None:
                deviations = self.deviation.standard_deviations(block.X)
                made["y_std"][rows] = deviations.reshape(len(block), q)
            if self.support is not None:
                chosen = block.places() % self.every == 0
                supports.append(self.support.support(block.X[chosen]))
            if self.interval is not None:
                ends = self.interval.bounds(block.X, made["y_pred"][rows])
                made["y_lower"][rows], made["y_upper"][rows], _ = ends
            done = rows.stop
        of_rows: Any = (slice(done), 0) if self.predictor.flat else slice(done)
        more = {"support": np.concatenate(supports)} if supports else {}
        return {name: values[of_rows] for name, values in made.items()} | more


def predicted_shards(
    predictor: RowFunction,
    source: Source,
    deviation: Any = None,
    *,
    support: SupportRows | None = None,
    every: int = 1,
    interval: Interval | None = None,
) -> Iterator[tuple[Shard, dict[str, Floats]]]:
    """Yield every shard of a source with its predictions, in order.

    They are `y_pred` (rows,) or (rows, q) and, with a task of what tells them, the standard
    deviations `y_std` of the same shape; with an interval its ends, `y_lower` and `y_upper`; and
    the `support` of every k-th row of the source, (m,).
    """
    predictor.check((source.n_samples, source.n_features))
    if support is not None:
        support.reference  # noqa: B018  once, and not by every task
    n_arrays = 1 + (deviation is not None) + 2 * (interval is not None)
    made_bytes = 8 * predictor.n_targets * n_arrays + 8
    most_rows = max(_SHARD_BYTES // made_bytes, 1)
    # Blocks of 2 MiB, if that is not too few rows: two are held, one of them to be read ahead.
    shard_rows, block_rows = (min(n, most_rows) for n in chunk_sizes(source, 64 * source.row_bytes))
    function: Any = _PredictShard(predictor, block_rows, None, support, every, interval)
    if deviation is not None:
        how = predictor, block_rows, deviation, support, every, interval
        function = persist(delayed(_PredictShard, *how, name="predict"))
    sizes = {"shard_rows": shard_rows, "block_rows": block_rows, "most_rows": most_rows}
    return map_shards(source, function, **sizes, label="predict")


def predicted_rows(predictor: RowFunction, X: Any) -> Any:
    """Return predictions (n,) or (n, q) of an array, a source, or lazily of a Dask array."""
    if isinstance(X, Source):
        return np.concatenate([made["y_pred"] for _, made in predicted_shards(predictor, X)])
    rows = as_rows(X)
    predictor.check(rows.shape)
    n_columns = None if predictor.flat else predictor.n_targets
    return by_rows(partial(applied, method="predict"), rows, n_columns, model=predictor)
