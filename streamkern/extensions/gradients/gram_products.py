"""Products of the Gram matrix with some vectors, made without the matrix."""

from collections.abc import Iterable, Iterator

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
# They are multiplied by so many features at once, which stay in cache.
_FEATURES = 1024


class GramProducts(Statistic):
    """Sums of s f (f^T v) over rows of weight s, for vectors v and f = phi / scale - shift.

    Products are made in double, so that residuals fall below what rounding makes of products in
    single; the features are in their precision.
    """

    feature_map: FeatureMap  # drawn, of D features
    vectors: Floats  # (D, b)
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
        return Work(4.0 * D * b, D, "<f8")

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

        The shift is taken off the sums in the end, by those of f^T v, which are returned: features
        of single precision less the shift would have lost digits.
        """
        along = np.zeros((len(features), self.n_vectors)) - self.feature_shift @ self.vectors
        wide = scratch.array("wide features", (len(features), _FEATURES), np.float64)
        made = scratch.array("products", (self.n_vectors, _FEATURES), np.float64)

        def parts() -> Iterator[tuple[slice, Array]]:
            for some in slices(len(self.vectors), _FEATURES):
                part = wide[:, : some.stop - some.start]
                np.copyto(part, features[:, some])
                yield some, part

        for some, part in parts():
            along += part @ self.vectors[some]
        if weights is not None:
            along *= weights[:, None]
        for some, part in parts():
            self.sums[:, some] += np.matmul(along.T, part, out=made[:, : part.shape[1]])
        return along.sum(axis=0)
