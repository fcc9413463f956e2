"""The ridge systems of all rows and without each fold, in a subspace of the features that grows.

With W (D, r) orthonormal and the products G_k W of all folds known, the best solutions w = W z are
those of r x r systems, at every penalty, of all rows and without each fold, and their residuals
follow.  In preconditioned residuals the subspace grows: these are conjugate gradients for all
systems at once, each of which gains by the others' vectors.

Saad (2003), "Iterative methods for sparse linear systems", chapters 5 and 6.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.extensions.gradients.gram import Gram
from streamkern.extensions.gradients.preconditioner import NystroemPreconditioner
from streamkern.features import FeatureMap, innermost
from streamkern.features.kernel_map import Combinations
from streamkern.parameters.penalty_options import PenaltyOptions
from streamkern.runtime.matrix_products import product
from streamkern.runtime.memory import usable_cores
from streamkern.runtime.threads import blas_threads
from streamkern.solve import Eigenbasis
from streamkern.solve.cross_validation import held_out_errors
from streamkern.solve.eigendecomposition import SMALL
from streamkern.solve.penalty_curve import PenaltyCurve
from streamkern.solve.penalty_grid import even_grid
from streamkern.solve.solution import relative_floor
from streamkern.statistics import FeatureSums, Split, Triangle, dtype_of_features

# New vectors that others leave less of are none.
_DEPENDENT = 1e-5
# Of the squares of targets, what is rounding about their means.
_ROUNDING = 1e-12


class Subspace:
    """The vectors W, and the products of the Gram matrices of folds with these."""

    def __init__(self, gram: Gram) -> None:
        self.gram, D = gram, gram.feature_map.n_components
        self.vectors = np.zeros((D, 0), dtype_of_features(gram.one.precision))
        self._products = dict.fromkeys(gram.sums, self.vectors)
        self._squares = dict.fromkeys(gram.sums, np.zeros((0, 0)))  # W^T G_k W

    @property
    def n_vectors(self) -> int:
        return int(self.vectors.shape[1])

    def grow(self, directions: Iterable[Floats]) -> bool:
        """Add directions, and their products by folds; say whether there were new ones."""
        new = self.independent(directions)
        self.extend(new, "vectors")
        return new.shape[1] > 0

    @blas_threads(1)  # as all that is computed here, so that the number of cores does not matter
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
        return np.linalg.qr(new)[0].astype(self.vectors.dtype)

    def extend(self, new: Array, what: str, *, keep: bool = True) -> None:
        """Multiply vectors (D, b), and add them with their products by folds.

        Only residuals need the products later, so that others do not `keep` them.
        """
        if not new.shape[1]:
            return
        products = self.gram.products(new, f"{what}-{self.n_vectors + new.shape[1]}")
        with blas_threads(1):
            before = self.vectors.astype(float, copy=False)
            self.vectors = np.column_stack([self.vectors, new])
            for fold, made in products.items():
                across, square = product(before.T, made), new.T @ made
                parts = [[self._squares[fold], across], [across.T, (square + square.T) / 2]]
                self._squares[fold] = np.block(parts)
                if keep:
                    known = self._products[fold], made.astype(new.dtype)
                    self._products[fold] = np.column_stack(known)

    def moments(self, combined: FeatureMap) -> dict[int, FeatureSums]:
        """Return the moments of a map of the features W^T phi, by fold."""
        vectors, made = self.vectors.astype(float), {}
        for fold, sums in self.gram.sums.items():
            turned = vectors.T @ sums.feature_shift, vectors.T @ sums.cross
            made[fold] = sums.of_features(combined, *turned)
            made[fold].gram = Triangle.of(self._squares[fold])
        return made

    def residuals(self, alpha: float, coefs: Sequence[Floats]) -> list[Floats]:
        """Return C - (G + alpha I) W z of the solution z (r, q) of every system at a penalty."""
        every, (left_out, q) = np.column_stack(coefs), (self.gram.left_out, coefs[0].shape[1])
        products = np.zeros((len(self.vectors), every.shape[1]))
        for fold, own in self._products.items():
            counted = np.repeat([k != fold for k in left_out], q)
            products[:, counted] += product(own, every[:, counted])
        vectors = product(self.vectors, every)
        several = [np.split(each, len(coefs), axis=1) for each in (products, vectors)]
        return [
            self.gram.cross(k) - self.gram.about_means(image, along, k) - alpha * along
            for k, image, along in zip(left_out, *several, strict=True)
        ]


class RidgeSystems:
    """All ridge systems in a subspace as it stands.

    Attributes
    ----------
    alphas : Floats
        The grid of penalties.
    largest, floor : float
        The largest eigenvalue that is `known` or there, and the size below which all are rounding.
    """

    @blas_threads(1)
    def __init__(self, subspace: Subspace, penalty: PenaltyOptions, known: float) -> None:
        self.subspace, self.penalty = subspace, penalty
        self.gram, feature_map = subspace.gram, subspace.gram.feature_map
        self._parts = subspace.moments(Combinations(feature_map, subspace.vectors))
        self._total: Any = reduce(FeatureSums.merge, self._parts.values())

        def basis(k: int | None) -> Eigenbasis:
            rest = self._total if k is None else self._total.without(self._parts[k])
            return Eigenbasis.of(rest.centred(intercept=self.gram.intercept))

        # Of many vectors each decomposition has all cores, and memory for itself.
        with ThreadPoolExecutor(usable_cores() if subspace.n_vectors <= SMALL else 1) as pool:
            every = self.gram.left_out
            self._bases = dict(zip(every, pool.map(basis, every), strict=True))
        self.spectrum = self._bases[None].spectrum
        self.largest, D = max(self.spectrum.largest, known), feature_map.n_components
        self.floor = relative_floor(self.spectrum.precision, D) * self.largest
        noise = innermost(feature_map).left_out * self._total.weight / self._total.n_rows
        grid = (penalty.alpha,) if penalty.is_fixed else penalty.grid
        usual = even_grid(self.floor, self.largest, left_out=noise)
        self.alphas = usual if grid is None else np.array(grid)

    def errors(self) -> Floats:
        """Return cross-validated errors (penalties, targets or 1), over the targets' deviations.

        Of all targets together where they share a penalty; one that is constant has none.
        """
        curve = self._curve(0)
        relative, varies = curve.scores / curve.scale, self.spectrum.target > 0
        is_each = self.penalty.per_target and varies.any()
        return np.sqrt(relative[:, varies] if is_each else relative.mean(axis=1, keepdims=True))

    def best(self, first: int) -> list[int]:
        """Return the places of the penalties that are chosen, from a first one on."""
        return sorted({first + int(i) for i in self.penalty.chosen(self._curve(first))})

    @blas_threads(1)
    def residuals(self, place: int, sketch: NystroemPreconditioner) -> tuple[Floats, list[Floats]]:
        """Return bounds on what is left to move predictions by, and the directions of that.

        They are of all systems at one place of the grid, (systems,) and a (D, q) for each.
        """
        alpha, bases = float(self.alphas[place]), self._bases.values()
        coefs = [
            each.vectors @ (each.spectrum.projections / (each.spectrum.values + alpha)[:, None])
            for each in bases
        ]
        every = np.column_stack(self.subspace.residuals(alpha, coefs))
        # Of all rows it is at least the inverse in all directions, and without a fold near it;
        # a leading block is only near it.
        directions = above = sketch.solve(every, alpha)
        squares = np.einsum("dq,dq->q", every, above).reshape(len(coefs), -1)
        if self.gram.way.leading is not None:
            directions = self.gram.way.leading.preconditioner.solve(every, alpha)
        about_zero = np.array([each.spectrum.target for each in bases])
        units = np.array([self.gram.variation(k) for k in self._bases])
        # Without an intercept a constant target is solved for, too.
        units = np.where(units > _ROUNDING * about_zero, units, about_zero)
        bounds = np.maximum(squares, 0.0) / np.where(units > 0, units, np.inf)
        return np.sqrt(bounds.max(axis=1)), np.split(directions, len(coefs), axis=1)

    @blas_threads(1)
    def _curve(self, first: int) -> PenaltyCurve:
        basis, alphas = self._bases[None], self.alphas[first:]
        errors = [
            held_out_errors(basis, self._total, Split(part), alphas)
            for part in self._parts.values()
        ]
        return PenaltyCurve.of_folds(alphas, errors, basis.spectrum.target / basis.spectrum.weight)
