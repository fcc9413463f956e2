"""What only some maps can do: a protocol each, and a function that asks a map for it.

A map has an ability by its methods alone.  The functions see through `Standardized`, whose inner
map they give standardised rows, and through `Combinations`, whose weights they apply.
"""

from typing import Protocol, runtime_checkable

from streamkern._typing import Array, Floats
from streamkern.errors import ParameterError
from streamkern.features.base import FeatureMap
from streamkern.features.kernel_map import Combinations
from streamkern.features.standardized import Standardized
from streamkern.runtime.scratch import Scratch


@runtime_checkable
class Differentiable(Protocol):
    """A map whose functions have gradients, for all kernels or for some."""

    has_gradients: bool

    def gradients(self, X: Array, coef: Floats, scratch: Scratch | None = None) -> Array:
        """Return the gradients (n, p) of (phi(x) / scale)^T coef, in the precision of the rows.

        They are held in `scratch`, where the next call overwrites them.
        """


def has_gradients(feature_map: FeatureMap) -> bool:
    if isinstance(feature_map, (Standardized, Combinations)):
        return has_gradients(feature_map.inner)
    return isinstance(feature_map, Differentiable) and feature_map.has_gradients


def gradients(
    feature_map: FeatureMap, X: Array, coef: Floats, scratch: Scratch | None = None
) -> Array:
    """Return gradients as of `Differentiable`, or refuse a map without."""
    scratch = scratch or Scratch()
    if isinstance(feature_map, Standardized):
        rows, inner = feature_map.standardised(X, X.dtype, scratch), feature_map.inner
        pulled = scratch.array(f"gradients about {inner.name}", X.shape, X.dtype)
        feature_map.standardizer.pull_back(gradients(inner, rows, coef, scratch), X, pulled)
        return pulled
    if isinstance(feature_map, Combinations):
        return gradients(feature_map.inner, X, feature_map.weights @ coef, scratch)
    if isinstance(feature_map, Differentiable) and feature_map.has_gradients:
        feature_map.check(X.shape)
        return feature_map.gradients(X, coef, scratch)
    raise ParameterError(
        f"the features of the map {feature_map.name!r} have no gradients; take a map of Fourier "
        f"features or landmarks."
    )
