"""Linear combinations of the features of another map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.errors import ParameterError
from streamkern.features.base import cached_slices
from streamkern.features.families import inner_arrays, restored_inner
from streamkern.features.kernel_map import ChosenFeatures

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamkern._typing import Array, Floats
    from streamkern.features.base import FeatureMap
    from streamkern.runtime.scratch import Scratch


class Combinations(ChosenFeatures):
    """The features psi(x) = W^T phi(x) of a drawn map phi, by weights W (D, r)."""

    name = "combinations"
    no_part = "combinations of features have no part of {} that stands for the whole."

    def __init__(self, inner: FeatureMap, weights: Floats) -> None:
        if weights.ndim != 2 or len(weights) != inner.n_components or not weights.size:
            raise ParameterError(
                f"expected weights of {inner.n_components} features, found shape {weights.shape}; "
                f"give one row a feature."
            )
        self.inner, self.weights = inner, weights
        self.n_features, self.n_components = inner.n_features, weights.shape[1]
        self.scale, self.width = inner.scale, inner.n_components
        self.exact_rows = inner.exact_rows  # type: ignore[misc]
        self.has_gradients = inner.has_gradients

    def prepared(self, dtype: Any, scratch: Scratch) -> Callable[[Array, Array], None]:
        weights = scratch.array("combined by", self.weights.shape, dtype)
        weights[...] = self.weights

        def write(X: Array, features: Array) -> None:
            every = scratch.array("all features", (len(X), self.width), dtype)
            for rows in self.inner.evaluated(X, every, scratch=scratch):
                np.matmul(every[rows], weights, out=features[rows])

        return write

    def subset(self, indices: Array) -> Combinations:
        return Combinations(self.inner, self.weights[:, self.checked_subset(indices)])

    def kernel_diagonal(self, X: Array) -> Floats:
        """Return k(x, x), which is |phi(x)|^2 where the map leaves nothing else out."""
        known = self.inner.kernel_diagonal(X)
        if known is not None:
            return known
        squares = np.empty(len(X))
        for rows in cached_slices(len(X), self.width):
            squares[rows] = np.square(self.inner.transform(X[rows])).sum(axis=1)
        return squares

    def condensed(self, coef: Floats, *, alike: bool = False) -> tuple[FeatureMap, Floats]:
        return self.inner.condensed(self.weights @ coef, alike=alike)

    def gradients(self, X: Array, coef: Floats, scratch: Scratch | None = None) -> Array:
        return self.inner.gradients(X, self.weights @ coef, scratch)

    def parameters(self) -> dict[str, Any]:
        return {"inner": self.inner.name, "inner_parameters": self.inner.parameters()}

    def arrays(self) -> dict[str, Array]:
        return {"weights": self.weights, **inner_arrays(self.inner)}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> Combinations:
        return cls(restored_inner(parameters, arrays), arrays["weights"])
