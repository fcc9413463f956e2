"""Features of rows in memory, or of the blocks of a Dask array, which stay lazy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.sources.arrays import is_dask_array

if TYPE_CHECKING:
    from streamkern.features import FeatureMap


def features_of(feature_map: FeatureMap, X: Any, dtype: type[np.floating[Any]] = np.float64) -> Any:
    """Return the features (n, D) of rows (n, p), lazily of a Dask array.

    Parameters
    ----------
    feature_map : FeatureMap
        Drawn.
    X : array_like or dask.array.Array, of shape (n, p)
    dtype : {float64, float32}
        The precision of the features.

    Raises
    ------
    DataError
        If rows are of another number of inputs.
    """
    if not is_dask_array(X):
        return feature_map.transform(X, dtype)
    feature_map.check(X.shape)
    return X.rechunk({1: -1}).map_blocks(
        feature_map.transform,
        dtype,
        dtype=dtype,
        chunks=(X.chunks[0], (feature_map.n_components,)),
        meta=np.empty((0, 0), dtype=dtype),
    )
