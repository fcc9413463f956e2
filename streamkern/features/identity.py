"""The identity map: features that someone else already computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from streamkern.features.base import FeatureMap, cached_slices
from streamkern.features.standardized import Standardized, Standardizer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streamkern._typing import Array
    from streamkern.runtime.scratch import Scratch


class Identity(FeatureMap):
    """The inputs as features, so that the model is linear ridge; its kernel is x^T x'."""

    name = "identity"
    families: ClassVar = {"identity": ("the inputs as features", {})}
    no_part = (
        "the identity map has no part of {} features that stands for the whole; select columns "
        "instead."
    )
    scale = 1.0
    exact_rows = True

    def draw(self, n_features: int, rows: Array | None = None) -> Self:  # noqa: ARG002  nothing is drawn
        """Note the number of inputs, which is the number of features."""
        self.n_features = self.n_components = n_features
        return self

    def evaluated(
        self,
        X: Array,
        out: Array,
        shift: Array | float = 0.0,
        scratch: Scratch | None = None,  # noqa: ARG002  nothing is in between
    ) -> Iterator[slice]:
        """Write the inputs, less `shift`, into `out`."""
        for rows in cached_slices(len(out), self.n_components):
            np.subtract(X[rows], shift, out=out[rows], casting="same_kind")
            yield rows

    def subset(self, indices: Array) -> Standardized:
        """Return some of the inputs, as they are: a mean of 0, a deviation of 1."""
        chosen = self.checked_subset(indices)
        K = len(chosen)
        columns = Standardizer(chosen, np.zeros(K), np.ones(K), self.n_features)
        return Standardized(columns, Identity().draw(K))

    def parameters(self) -> dict[str, Any]:
        """Return the number of inputs."""
        return {"n_features": self.n_features}

    def arrays(self) -> dict[str, Array]:
        """Return nothing: nothing was drawn."""
        return {}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:  # noqa: ARG003
        """Rebuild the map from the number of inputs."""
        return cls().draw(int(parameters["n_features"]))
