"""Some columns of a map that cannot be evaluated without the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from streamkern.features.made import MadeFeatures
from streamkern.runtime.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streamkern._typing import Array
    from streamkern.features.base import FeatureMap


class Chosen(MadeFeatures):
    """Some features of another map, which makes all of them.

    Parameters
    ----------
    inner : FeatureMap
        Drawn.
    indices : ndarray of shape (K,), int
        Columns of its features, each once.
    """

    name: ClassVar[str] = "chosen"

    def __init__(self, inner: FeatureMap, indices: Array) -> None:
        self.indices = inner.checked_subset(indices)
        self.inner = inner
        self.n_features, self.n_components = inner.n_features, len(self.indices)
        self.scale = inner.scale

    def evaluated(
        self, X: Array, out: Array, shift: Array | float = 0.0, scratch: Scratch | None = None
    ) -> Iterator[slice]:
        """Write the chosen features, less `shift`, into `out`."""
        scratch = scratch or Scratch()
        every = scratch.array("all features", (len(out), self.inner.n_components), out.dtype)
        for rows in self.inner.evaluated(X, every, scratch=scratch):
            np.subtract(every[rows][:, self.indices], shift, out=out[rows])
            yield rows

    def subset(self, indices: Array) -> Chosen:
        """Return fewer of the same features."""
        return Chosen(self.inner, self.indices[self.checked_subset(indices)])

    def parameters(self) -> dict[str, Any]:
        """Return the inner map's name and parameters."""
        return {"inner": self.inner.name, "inner_parameters": self.inner.parameters()}

    def arrays(self) -> dict[str, Array]:
        """Return the inner map's arrays, and the indices (K,)."""
        inner = {f"inner_{name}": array for name, array in self.inner.arrays().items()}
        return {"indices": self.indices, **inner}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        """Rebuild the map from its file form."""
        from streamkern.features import MAPS  # noqa: PLC0415  the table lists this class too

        inner = {k.removeprefix("inner_"): v for k, v in arrays.items() if "inner_" in k}
        return cls(
            MAPS[parameters["inner"]].restore(parameters["inner_parameters"], inner),
            arrays["indices"],
        )
