"""Products of the Gram matrix with some vectors, made without the matrix."""

from collections.abc import Iterable

import numpy as np

from streamkern._typing import Array, Block, Floats
from streamkern.features.base import FeatureMap, slices
from streamkern.runtime.scratch import Scratch
from streamkern.runtime.timing import timed, timed_each
from streamkern.statistics.base import Statistic
from streamkern.statistics.centred_moments import dtype_of_features
from streamkern.statistics.declared_sums import total
from streamkern.statistics.work import Work

# Rows of features that are multiplied at once, or as many as there are vectors, if that is more.
_ROWS = 64
# They are multiplied by so many features at once: with up to a dozen vectors few, which stay in
# cache; with more vectors many, since large products take less time in all.
_FEW, _FEATURES = 12, (1024, 8192)


class GramProducts(Statistic):
    """Sums of s f (f^T v) over rows of weight s, for vectors v and f = phi / scale - shift.

    Products are made in the precision of the vectors, which may be double where that of the
    features is single, and summed in double.
    """

    feature_map: FeatureMap  # drawn, of D features
    vectors: Array  # (D, b)
    feature_shift: Floats  # (D,)
    precision: str = "single"  # of the features
    sums: Floats = total("n_vectors", "feature_map.n_components")

    @property
    def products(self) -> Floats:
        """The sums (D, b)."""
        return self.sums.T

    @property
    def n_vectors(self) -> int:
        return int(self.vectors.shape[1])

    @property
    def work(self) -> Work:
        D, b = self.vectors.shape
        return Work(4.0 * D * b, D, self.vectors.dtype.str)

    def update(self, blocks: Iterable[Block]) -> None:
        scratch, step = self.scratch or Scratch(), max(_ROWS, self.n_vectors)
        along = np.zeros(self.n_vectors)  # sums of f^T v
        for block in blocks:
            self.feature_map.check(block.X.shape)
            shape, of_features = (len(block), len(self.vectors)), dtype_of_features(self.precision)
            features = scratch.array("features", shape, of_features)
            begun, evaluated = 0, self.feature_map.evaluated(block.X, features, scratch=scratch)
            if scratch.store is not None:
                key = *block.places()[[0, -1]].tolist(), len(block)
                evaluated = scratch.store.evaluated(key, features, evaluated)
            for rows in timed_each("features", evaluated):
                if rows.stop - begun >= step or rows.stop == len(block):
                    ready = slice(begun, rows.stop)
                    weights = None if block.weights is None else block.weights[ready]
                    with timed("products"):
                        along += self._multiply(features[ready], weights, scratch)
                    begun = rows.stop
        self.sums -= np.outer(along, self.feature_shift)

    def _multiply(self, features: Array, weights: Floats | None, scratch: Scratch) -> Floats:
        """Add products of some rows, by parts of their features that stay in cache.

        In double the shift is taken off the sums in the end, by those of f^T v, which are returned:
        features less the shift would have digits of single precision.
        """
        (n, D), dtype = features.shape, self.vectors.dtype
        wide = features.dtype != dtype
        along = np.zeros((n, self.n_vectors), dtype)
        if dtype == np.float64:
            along -= self.feature_shift @ self.vectors
        else:
            features -= self.feature_shift.astype(dtype)
        width = _FEATURES[self.n_vectors > _FEW]
        made = scratch.array("products", (self.n_vectors, min(D, width)), dtype)

        def part_of(some: slice) -> Array:
            part = features[:, some]
            if wide:
                part = scratch.array("wide features", part.shape, dtype)
                np.copyto(part, features[:, some])
            return part

        for some in slices(D, width):
            along += part_of(some) @ self.vectors[some]
        if weights is not None:
            along *= weights.astype(dtype)[:, None]
        for some in slices(D, width):
            part = part_of(some)
            self.sums[:, some] += np.matmul(along.T, part, out=made[:, : part.shape[1]])
        return along.sum(axis=0) if dtype == np.float64 else np.zeros(self.n_vectors)
