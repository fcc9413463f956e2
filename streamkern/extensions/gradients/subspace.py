"""The ridge systems of all rows and of folds, in a growing subspace of the features.

With W (D, r) orthonormal and the products G_k W of the Gram matrices of all folds known, the best
solutions w = W z in the subspace are those of r x r systems, at every penalty, of all rows and
without each fold, and their residuals follow.  In the preconditioned residuals the subspace grows:
these are conjugate gradients for all systems at once, each of which gains by the others' vectors.

Saad (2003), "Iterative methods for sparse linear systems", chapters 5 and 6.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.features import FeatureMap
from streamkern.runtime.lapack import triangular_solution
from streamkern.runtime.matrix_products import product
from streamkern.runtime.memory import usable_cores
from streamkern.statistics import FeatureSums, Triangle

# New vectors that others leave less of are none.
_DEPENDENT = 1e-5


def orthonormal(vectors: Floats) -> Floats:
    """Return an orthonormal basis (D, k) of vectors that are far from dependent, for less than QR.

    Fukaya et al. (2014), "CholeskyQR2: a simple and communication-avoiding algorithm for computing
    a tall-skinny QR factorization on a large-scale parallel system".
    """
    for _ in range(2):
        factor = np.linalg.cholesky(product(vectors.T, vectors))
        vectors = triangular_solution(factor, vectors.T, n_threads=usable_cores()).T
    return vectors


class Subspace:
    """Sums of folds without Gram matrices, the vectors W, and the products of these with W.

    Features are as they are summed: f = phi / scale - shift.
    """

    def __init__(self, sums: Mapping[int, FeatureSums], *, intercept: bool) -> None:
        self.sums, self.intercept = sums, intercept
        first = next(iter(sums.values()))
        self.feature_map, D = first.feature_map, first.feature_map.n_components
        dtype = np.float64 if first.precision == "double" else np.float32
        self.vectors = np.zeros((D, 0), dtype)
        self.products = {fold: np.zeros((D, 0), dtype) for fold in sums}
        self._grams = {fold: np.zeros((0, 0)) for fold in sums}

    def independent(self, vectors: Iterable[Floats]) -> Array:
        """Return orthonormal vectors (D, b) of what the subspace leaves of others, b maybe 0."""
        new = np.column_stack(list(vectors))
        new = new / np.maximum(np.linalg.norm(new, axis=0), np.finfo(float).tiny)
        known = self.vectors.astype(float, copy=False)
        for _ in range(2):
            new -= product(known, product(known.T, new))
        values, turns = np.linalg.eigh(new.T @ new)
        kept = values > _DEPENDENT**2
        new = new @ (turns[:, kept] / np.sqrt(values[kept]))
        new -= product(known, product(known.T, new))
        return orthonormal(new).astype(self.vectors.dtype)

    def extend(self, vectors: Array, products: Mapping[int, Floats], *, keep: bool = True) -> None:
        """Add vectors (D, b) and the products of every fold's sums of f f^T with them.

        Only residuals need the products later, so that others do not `keep` them.
        """
        before = self.vectors.astype(float, copy=False)
        self.vectors = np.column_stack([self.vectors, vectors])
        for fold, new in products.items():
            across, square = product(before.T, new), vectors.T @ new
            gram = np.block([[self._grams[fold], across], [across.T, (square + square.T) / 2]])
            self._grams[fold] = gram
            if not keep:
                continue
            self.products[fold] = np.column_stack([self.products[fold], new.astype(vectors.dtype)])

    def moments(self, combined: FeatureMap) -> dict[int, FeatureSums]:
        """Return the moments of a map of the features W^T phi, by fold."""
        vectors, made = self.vectors.astype(float), {}
        for fold, sums in self.sums.items():
            shift, cross = vectors.T @ sums.feature_shift, vectors.T @ sums.cross
            made[fold] = sums.of_features(combined, shift, cross)
            made[fold].gram = Triangle.of(self._grams[fold])
        return made

    @property
    def n_vectors(self) -> int:
        return int(self.vectors.shape[1])

    def cross(self, left_out: int | None) -> Floats:
        """Return C of all rows or without a fold, (D, q), about the means and in units of y."""
        found: Floats = sum(s.cross[:, :-1] for k, s in self.sums.items() if k != left_out)
        for factor, mean, target in self._means(left_out):
            found = found + factor * np.outer(mean, target)
        return found * (self.feature_map.scale * self._one.target_unit)

    def residuals(
        self, left_out: Sequence[int | None], alphas: Floats, coefs: Sequence[Floats]
    ) -> list[Floats]:
        """Return C - (G + alpha I) W z of each solution z (r, q), of all rows or without a fold."""
        every, n_targets = np.column_stack(coefs), coefs[0].shape[1]
        products = np.zeros((len(self.vectors), every.shape[1]))
        for fold, own in self.products.items():
            counted = np.repeat([k != fold for k in left_out], n_targets)
            products[:, counted] += product(own, every[:, counted])
        crosses = {k: self.cross(k) for k in set(left_out)}
        vectors = product(self.vectors, every)
        several = [np.split(each, len(coefs), axis=1) for each in (products, vectors)]
        return [
            crosses[k] - self.about_means(image, along, k) - alpha * along
            for k, alpha, image, along in zip(left_out, alphas, *several, strict=True)
        ]

    def about_means(self, products: Floats, vectors: Floats, left_out: int | None) -> Floats:
        """Return G v of vectors (D, k), of all rows or without a fold, from sums of f (f^T v)."""
        for factor, mean, _ in self._means(left_out):
            products = products + factor * np.outer(mean, mean @ vectors)
        return products * self.feature_map.scale**2

    @property
    def left_out(self) -> list[int | None]:
        """What the systems are without: nothing (None), and each fold where there are several."""
        return [None, *self.sums] if len(self.sums) > 1 else [None]

    @property
    def feature_mean(self) -> Floats:
        """The mean of phi / scale over all rows, (D,)."""
        (_, mean, _), *_ = self._means(None)
        return self._one.feature_shift + mean

    @property
    def _one(self) -> FeatureSums:
        return next(iter(self.sums.values()))

    def _means(self, left_out: int | None) -> list[tuple[float, Floats, Floats]]:
        """Return the outer products, as factors and means, that sums about means differ by."""
        left = [sums for fold, sums in self.sums.items() if fold != left_out]
        N = sum(sums.weight for sums in left)
        features: Floats = sum(sums.cross[:, -1] for sums in left) / N
        targets: Floats = sum(sums.target_sum for sums in left) / N
        means = [(-N, features, targets)]
        if not self.intercept:
            one = self._one
            shift = one.target_shift / one.target_unit
            means.append((N, one.feature_shift + features, shift + targets))
        return means
