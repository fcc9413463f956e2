"""Maps whose features are whitened, and what takes the place of these where rows are passed over.

Features phi = R^T psi of features psi that take less need not be made for every row: sums and
products are of psi, and R is applied to these.
"""

from abc import ABC, abstractmethod

from streamkern._typing import Floats
from streamkern.features.base import FeatureMap
from streamkern.features.standardized import Standardized


class Whitened(ABC):
    """A map whose features are R^T psi."""

    @abstractmethod
    def gram_map(self) -> FeatureMap:
        """Return the map whose features a pass makes and sums, with as good digits as phi."""

    @abstractmethod
    def unwhitened(self) -> FeatureMap:
        """Return the map psi."""

    @abstractmethod
    def apply_r(self, vectors: Floats, *, back: bool = False) -> Floats:
        """Return R v of vectors (D, k), or R^T v."""


class SummedInPlace(ABC):
    """A map that `gram_map` returned in the place of another."""

    @abstractmethod
    def solve_map(self, n_components: int | None = None) -> tuple[FeatureMap, Floats]:
        """Return that other, or its first K features, as R^T psi of this one's, and R (D, K)."""


def gram_map(feature_map: FeatureMap) -> FeatureMap:
    """Return the map whose features a pass makes and sums: the same, unless they are whitened."""
    if isinstance(feature_map, Standardized):
        return feature_map.about(gram_map(feature_map.inner))
    return feature_map.gram_map() if isinstance(feature_map, Whitened) else feature_map


def unwhitened(feature_map: FeatureMap) -> FeatureMap:
    """Return the map psi, with phi = R^T psi: the same, unless features are whitened."""
    if isinstance(feature_map, Standardized):
        return feature_map.about(unwhitened(feature_map.inner))
    return feature_map.unwhitened() if isinstance(feature_map, Whitened) else feature_map


def apply_r(feature_map: FeatureMap, vectors: Floats, *, back: bool = False) -> Floats:
    """Return R v of vectors (D, k), or R^T v, with R as in `unwhitened`."""
    inner = feature_map.inner if isinstance(feature_map, Standardized) else feature_map
    return inner.apply_r(vectors, back=back) if isinstance(inner, Whitened) else vectors


def solve_map(
    feature_map: FeatureMap, n_components: int | None = None
) -> tuple[FeatureMap, Floats | None]:
    """Return the map whose features, or first K of them, are solved for, and R.

    R (D, K) is None where the features are those that were summed.
    """
    if isinstance(feature_map, Standardized):
        inner, turning = solve_map(feature_map.inner, n_components)
        return feature_map.about(inner), turning
    if isinstance(feature_map, SummedInPlace):
        return feature_map.solve_map(n_components)
    if n_components in (None, feature_map.n_components):
        return feature_map, None
    return feature_map.first(n_components), None
