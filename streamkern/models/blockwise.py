"""What is made of rows in memory, or of the blocks of a Dask collection, which stay lazy."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.sources.arrays import as_rows
from streamkern.sources.lazy import as_table, is_dask_array, is_lazy, once

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamkern._typing import Array, Floats
    from streamkern.features import FeatureMap


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


def features_of(feature_map: FeatureMap, X: Any, dtype: type[np.floating[Any]] = np.float64) -> Any:
    """Return the features (n, D) of rows (n, p), lazily of a Dask collection."""
    if not is_lazy(X):
        return feature_map.transform(as_table("X", X), dtype)
    rows = as_rows(X)
    feature_map.check(rows.shape)
    function = partial(_features, dtype=dtype)
    return by_rows(function, rows, feature_map.n_components, dtype, feature_map=feature_map)


def _features(X: Array, feature_map: FeatureMap, dtype: type[np.floating[Any]]) -> Floats:
    return feature_map.transform(X, dtype)
