"""What is made of rows in memory, or of the blocks of a Dask collection, which stay lazy."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.sources.arrays import as_rows
from streamkern.sources.lazy import is_dask_array, is_lazy

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamkern.features import FeatureMap


def by_rows(
    function: Callable[..., Any],
    rows: Any,
    n_columns: int | None,
    dtype: type[np.floating[Any]] = np.float64,
    **named: Any,
) -> Any:
    """Return what a function makes of rows, lazily of a Dask array.

    Parameters
    ----------
    function : callable
        Returns (n,) or (n, q) for rows (n, p), and takes what is named.
    rows : ndarray or dask.array.Array, of shape (n, p)
    n_columns : int, optional
        q, None where it returns (n,).
    dtype : {float64, float32}
        Of what it returns.
    """
    if not is_dask_array(rows):
        return function(rows, **named)
    columns = () if n_columns is None else (n_columns,)
    return rows.rechunk({1: -1}).map_blocks(
        function,
        dtype=dtype,
        drop_axis=None if columns else 1,
        chunks=(rows.chunks[0], *((q,) for q in columns)),
        meta=np.empty((0,) * (1 + len(columns)), dtype=dtype),
        **named,
    )


def features_of(feature_map: FeatureMap, X: Any, dtype: type[np.floating[Any]] = np.float64) -> Any:
    """Return the features (n, D) of rows (n, p), lazily of a Dask collection.

    Parameters
    ----------
    feature_map : FeatureMap
        Drawn.
    X : array_like or Dask collection, of shape (n, p)
    dtype : {float64, float32}
        The precision of the features.

    Raises
    ------
    DataError
        If rows are of another number of inputs.
    """
    if not is_lazy(X):
        return feature_map.transform(X, dtype)
    rows = as_rows(X)
    feature_map.check(rows.shape)
    return by_rows(
        partial(feature_map.transform, dtype=dtype), rows, feature_map.n_components, dtype
    )
