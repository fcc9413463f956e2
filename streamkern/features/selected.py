"""Some columns of a map that cannot be evaluated without the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from streamkern.features.base import inner_arrays, restored_inner
from streamkern.features.written import ChosenFeatures

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamkern._typing import Array
    from streamkern.features.base import FeatureMap
    from streamkern.runtime.scratch import Scratch


class Chosen(ChosenFeatures):
    """Some features of another drawn map, which makes all of them."""

    name = "chosen"

    def __init__(self, inner: FeatureMap, indices: Array) -> None:
        self.indices = inner.checked_subset(indices)
        self.inner = inner
        self.n_features, self.n_components = inner.n_features, len(self.indices)
        self.scale = inner.scale

    @property
    def width(self) -> int:
        """Numbers a row that are to stay in cache: all features of the other map."""
        return self.inner.n_components

    def prepared(self, dtype: Any, scratch: Scratch) -> Callable[[Array, Array], None]:
        """Return a function that writes the features of the other map, and takes those chosen."""

        def write(X: Array, features: Array) -> None:
            every = scratch.array("all features", (len(X), self.inner.n_components), dtype)
            for rows in self.inner.evaluated(X, every, scratch=scratch):
                features[rows] = every[rows][:, self.indices]

        return write

    def subset(self, indices: Array) -> Chosen:
        """Return fewer of the same features."""
        return Chosen(self.inner, self.indices[self.checked_subset(indices)])

    def parameters(self) -> dict[str, Any]:
        """Return the inner map's name and parameters."""
        return {"inner": self.inner.name, "inner_parameters": self.inner.parameters()}

    def arrays(self) -> dict[str, Array]:
        """Return the inner map's arrays, and the indices (K,)."""
        return {"indices": self.indices, **inner_arrays(self.inner)}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        """Rebuild the map from its file form."""
        return cls(restored_inner(parameters, arrays), arrays["indices"])
