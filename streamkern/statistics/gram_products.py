"""Products of the Gram matrix with some vectors, made without the matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamkern.runtime.scratch import Scratch
from streamkern.runtime.timing import timed
from streamkern.statistics.base import Statistic
from streamkern.statistics.centred_moments import dtype_of_features
from streamkern.statistics.declared_sums import total
from streamkern.statistics.work import Work

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamkern._typing import Array, Floats
    from streamkern.features import FeatureMap
    from streamkern.sources import Block

# Rows of features that are multiplied at once, or as many as there are vectors, if that is more.
_ROWS = 64


class GramProducts(Statistic):
    """Sums of s f (f^T v) over rows of weight s, for vectors v and f = phi / scale - shift.

    Products are made in the precision of the vectors, which may be double where that of the
    features is single, and summed in double.
    """

    feature_map: FeatureMap  # drawn, of D features
    vectors: Array  # (D, b)
    feature_shift: Floats  # (D,)
    precision: str = "single"  # of the features
    products: Floats = total("feature_map.n_components", "n_vectors")

    @property
    def n_vectors(self) -> int:
        return int(self.vectors.shape[1])

    @property
    def work(self) -> Work:
        D, b = self.vectors.shape
        return Work(4.0 * D * b, D, self.vectors.dtype.str)

    def update(self, blocks: Iterable[Block]) -> None:
        scratch, vectors, dtype = self.scratch or Scratch(), self.vectors, self.vectors.dtype
        made, step = scratch.array("products", vectors.shape, dtype), max(_ROWS, self.n_vectors)
        for block in blocks:
            self.feature_map.check(block.X.shape)
            shape, of_features = (len(block), len(vectors)), dtype_of_features(self.precision)
            features = scratch.array("features", shape, of_features)
            shift = self.feature_shift.astype(of_features)
            weights = None if block.weights is None else block.weights.astype(dtype)[:, None]
            begun, evaluated = 0, self.feature_map.evaluated(block.X, features, shift, scratch)
            if scratch.store is not None:
                places = block.places()[[0, -1]]
                key = *places.tolist(), len(block)
                evaluated = scratch.store.evaluated(key, features, evaluated)
            for rows in evaluated:
                if rows.stop - begun < step and rows.stop < len(block):
                    continue
                with timed("products"):
                    some = features[begun : rows.stop]
                    if dtype != of_features:
                        some = scratch.array("wide features", some.shape, dtype)
                        np.copyto(some, features[begun : rows.stop])
                    along = some @ vectors
                    if weights is not None:
                        along *= weights[begun : rows.stop]
                    self.products += np.matmul(some.T, along, out=made)
                begun = rows.stop
