"""Features of rows in memory, or of the blocks of a Dask collection, which stay lazy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.sources.arrays import as_rows
from streamkern.sources.lazy import is_lazy

if TYPE_CHECKING:
    from streamkern.features import FeatureMap


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
    return rows.rechunk({1: -1}).map_blocks(
        feature_map.transform,
        dtype,
        dtype=dtype,
        chunks=(rows.chunks[0], (feature_map.n_components,)),
        meta=np.empty((0, 0), dtype=dtype),
    )
