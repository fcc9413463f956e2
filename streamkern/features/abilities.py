"""What only some maps can do, and a function for each that asks a map for it.

A map of one's own has such an ability by the methods of its protocol.  Combinations at landmarks
are those of classes here.  The functions see through `Standardized`, whose inner map they give
standardised rows, and through `Combinations`.
"""

from typing import Any, Protocol, runtime_checkable

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import ParameterError
from streamkern.features.base import FeatureMap, cached_slices
from streamkern.features.kernel_map import Combinations
from streamkern.features.kernel_values import LandmarkFeatures
from streamkern.features.landmarks import diagonal
from streamkern.features.nystroem import Nystroem
from streamkern.features.standardized import StandardisedExactly, Standardized
from streamkern.runtime.scratch import Scratch


@runtime_checkable
class Differentiable(Protocol):
    """A map whose functions have gradients, of all kernels or of some."""

    has_gradients: bool

    def gradients(self, X: Array, coef: Floats, scratch: Scratch | None = None) -> Array:
        """Return the gradients (n, p) of (phi(x) / scale)^T coef, in the precision of the rows.

        They are held in `scratch`, where the next call overwrites them.
        """


@runtime_checkable
class Compressible(Protocol):
    """A map whose functions have a shorter form."""

    def compress(self, coef: Floats, *, alike: bool = False) -> tuple[FeatureMap, Floats]:
        """Return a map, and coefficients of its features, that make (phi / scale)^T coef for less.

        Where features hardly differ between rows (`alike`), a form must not need their digits.
        """


@runtime_checkable
class Whitened(Protocol):
    """A map whose features are R^T psi, of features psi that take less.

    They need not be made for every row: sums and products are of psi, and R is applied to these.
    """

    def gram_map(self) -> FeatureMap:
        """Return the map whose features a pass makes and sums, with as good digits as phi."""

    def unwhitened(self) -> FeatureMap:
        """Return the map psi."""

    def apply_r(self, vectors: Floats, *, back: bool = False) -> Floats:
        """Return R v of vectors (D, k), or R^T v."""


@runtime_checkable
class SummedInPlace(Protocol):
    """A map that `gram_map` returned in the place of another."""

    def solve_map(self, n_components: int | None = None) -> tuple[FeatureMap, Floats]:
        """Return that other, or its first K features, as R^T psi of this one's, and R (D, K)."""


@runtime_checkable
class FromRows(Protocol):
    """A map that is made from some rows: `rows_a_feature` of a spread sample, of its class."""

    def chosen(self, rows: Array, weights: Floats | None = None) -> Array:
        """Return the rows to `draw` it from, at every length scale, where rows count by weight."""


@runtime_checkable
class Bounded(Protocol):
    """A map whose features have bounds, so that they can be rounded to integers."""

    @property
    def bounds(self) -> Floats | float:
        """The largest sizes of phi(x) / scale, (D,) or one for all, known before it is drawn."""

    def round_into(self, X: Any, levels: int, out: Array, scratch: Scratch) -> None:
        """Write rint(levels phi(X) / (scale bounds)) to `out` (D, n), the same bits anywhere.

        Of an array, X has the length and slices, which are made as they are asked for.
        """


def innermost(feature_map: FeatureMap) -> Any:
    """Return the map that is neither one of standardised rows nor of combinations."""
    while isinstance(feature_map, (Standardized, Combinations)):
        feature_map = feature_map.inner
    return feature_map


def has_gradients(feature_map: FeatureMap) -> bool:
    inner = innermost(feature_map)
    return isinstance(inner, Differentiable) and inner.has_gradients


def gradients(
    feature_map: FeatureMap, X: Array, coef: Floats, scratch: Scratch | None = None
) -> Array:
    """Return the gradients of a function of features, or refuse a map without."""
    feature_map.check(X.shape)
    if isinstance(feature_map, Combinations):
        return gradients(feature_map.inner, X, feature_map.weights @ coef, scratch)
    if isinstance(feature_map, Standardized):
        inner, scratch = feature_map.inner, scratch or Scratch()
        rows = feature_map.standardised(X, X.dtype, scratch)
        pulled = scratch.array(f"gradients about {inner.name}", X.shape, X.dtype)
        feature_map.standardizer.pull_back(gradients(inner, rows, coef, scratch), X, pulled)
        return pulled
    if isinstance(feature_map, Differentiable) and feature_map.has_gradients:
        return feature_map.gradients(X, coef, scratch)
    raise ParameterError(
        f"the features of the map {feature_map.name!r} have no gradients; take a map of Fourier "
        f"features or landmarks."
    )


def compress(feature_map: Any, coef: Floats, *, alike: bool = False) -> tuple[FeatureMap, Floats]:
    """Return the shorter form of a function as of `Compressible`, or the function as it is."""
    if isinstance(feature_map, Combinations):
        return compress(feature_map.inner, feature_map.weights @ coef, alike=alike)
    if isinstance(feature_map, Standardized):
        inner, coef = compress(feature_map.inner, coef, alike=alike)
        return feature_map.about(inner), coef
    if isinstance(feature_map, Compressible):
        return feature_map.compress(coef, alike=alike)
    return feature_map, coef


def combined(feature_map: FeatureMap, weights: Floats) -> FeatureMap:
    """Return the map of the features W^T phi, of weights W (D, r)."""
    if isinstance(feature_map, Standardized):
        return feature_map.about(combined(feature_map.inner, weights))
    if isinstance(feature_map, Nystroem):
        return feature_map.combined(weights)
    return Combinations(feature_map, weights)


def uncombined(feature_map: FeatureMap) -> FeatureMap:
    """Return the map whose features those of a map are combinations of, or that map."""
    if isinstance(feature_map, Standardized):
        return feature_map.about(uncombined(feature_map.inner))
    return feature_map.inner if isinstance(feature_map, Combinations) else feature_map


def kernel_diagonal(feature_map: FeatureMap, X: Array) -> Floats | None:
    """Return k(x, x) of rows (n,), where phi(x)^T phi(x) is less, as at landmarks, or None."""
    if isinstance(feature_map, Standardized):
        return kernel_diagonal(feature_map.inner, feature_map.standardizer(X))
    if isinstance(feature_map, LandmarkFeatures):
        return diagonal(feature_map.similarities.kernel, X)
    if not isinstance(feature_map, Combinations):
        return None
    inner = feature_map.inner
    known = kernel_diagonal(inner, X)
    if known is None and inner.is_field and inner.n_components % 2 == inner.n_terms == 0:
        return np.full(len(X), 1.0 - inner.left_out)  # of whole pairs of waves
    if known is None:  # |phi(x)|^2, where the map leaves nothing else out
        known = np.empty(len(X))
        for rows in cached_slices(len(X), inner.n_components):
            known[rows] = np.square(inner.transform(X[rows])).sum(axis=1)
    return known


def trended(feature_map: FeatureMap) -> Any:
    """Return the map with its trend, which is much larger than the field, or None without any."""
    inner = innermost(feature_map)
    return inner if inner.n_terms else None


def bounds(feature_map: FeatureMap) -> Any:
    """Return the largest sizes of phi(x) / scale, (D,), or None where there is no bound."""
    if isinstance(feature_map, Standardized):
        return bounds(feature_map.inner)
    found = feature_map.bounds if isinstance(feature_map, Bounded) else None
    return None if found is None else np.broadcast_to(found, feature_map.n_components)


def round_into(feature_map: FeatureMap, X: Any, levels: int, out: Array, scratch: Scratch) -> None:
    """Write rounded features as of `Bounded`, or refuse a map without."""
    if isinstance(feature_map, Standardized):
        exactly = StandardisedExactly(feature_map, X, scratch)
        round_into(feature_map.inner, exactly, levels, out, scratch)
    elif isinstance(feature_map, Bounded):
        feature_map.round_into(X, levels, out, scratch)
    else:
        raise ParameterError(
            f"the features of the map {feature_map.name!r} have no bound to round them by; take "
            f"another precision, or a map of Fourier features."
        )


def drawn_from(feature_map: FeatureMap, rows: Array, weights: Floats | None = None) -> FeatureMap:
    """Draw a map for rows (n, p) that count by weight, where it is made from some of them."""
    rows = feature_map.chosen(rows, weights) if isinstance(feature_map, FromRows) else rows
    return feature_map.draw(rows.shape[1], rows)


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
