"""Preconditioners of a Gram matrix: by products with it, or by its leading block."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.features.base import slices
from streamkern.runtime.matrix_products import product
from streamkern.solve.cholesky import Cholesky
from streamkern.solve.eigendecomposition import decomposed
from streamkern.statistics import Triangle

# Eigenvalues of a sketch below this share of the largest are rounding.
_ROUNDING = {"single": 1e-6, "double": 1e-13}
# Vectors of the first sketch and of the largest, and the bytes of that, of vectors of one pass and
# of the leading eigenvectors.
_FIRST, _MOST, _BYTES, _AT_ONCE, _LEADING_BYTES = 128, 2048, 1 << 30, 128 << 20, 256 << 20
# Rows of vectors that are multiplied at once where no copy of all is made.
_ROWS = 8192
# Random vectors that tell what a subspace leaves in the end.
N_PROBES = 32
# The order of a leading block, and factors of it that are kept.
LEADING, _FACTORS = 4096, 6


@dataclass(frozen=True)
class NystroemPreconditioner:
    """(U diag(d) U^T + alpha I)^-1, with U diag(d) U^T <= G in all directions, and near to it.

    It follows from products G T (D, r) with orthonormal test vectors T (D, r).  Where r is a few
    times the effective degrees of freedom at alpha, gradients converge in a few iterations.

    Frangella, Tropp and Udell (2023), "Randomized Nystroem preconditioning".
    """

    tests: Array  # T
    images: Array  # G T
    values: Floats  # d, descending
    vectors: Floats  # U (D, r'), orthonormal

    @classmethod
    def none(cls, n_components: int) -> Self:
        """Return that of no test vectors."""
        nothing = np.zeros((n_components, 0), np.float32)  # other vectors keep their precision
        return cls(nothing, nothing, np.zeros(0), nothing.astype(float))

    @classmethod
    def of(cls, tests: Array, images: Array, precision: str = "single") -> Self:
        core = np.zeros((tests.shape[1], images.shape[1]))
        for some in slices(len(tests), _ROWS):
            core += product(tests[some].T.astype(float), images[some].astype(float))
        values, turns = decomposed((core + core.T) / 2)
        kept = values > _ROUNDING[precision] * values.max(initial=0.0)
        vectors = product(images, turns[:, kept] / np.sqrt(values[kept]))
        values, turns = decomposed(product(vectors.T, vectors))
        kept = values > _ROUNDING[precision] * values.max(initial=0.0)
        values, turns = values[kept][::-1], turns[:, kept][:, ::-1] / np.sqrt(values[kept][::-1])
        for some in slices(len(vectors), _ROWS):  # in place, since they are large
            vectors[some, : len(values)] = product(vectors[some], turns)
        return cls(tests, images, values, vectors[:, : len(values)])

    def extended(self, tests: Array, images: Array, precision: str) -> Self:
        """Return the preconditioner with products of more vectors, orthonormal to the others."""
        both = np.column_stack([self.tests, tests]), np.column_stack([self.images, images])
        return self.of(*both, precision)

    @property
    def n_vectors(self) -> int:
        return int(self.tests.shape[1])

    @property
    def least_eigenvalue(self) -> float:
        """The least eigenvalue that is known, 0 where others are rounding."""
        return float(self.values[-1]) if len(self.values) == self.n_vectors else 0.0

    def leading(self, least: float, most: int) -> Floats:
        """Return up to so many eigenvectors (D, r) of larger eigenvalues, the largest first."""
        return self.vectors[:, : min(int((self.values > least).sum()), most)]

    def solve(self, columns: Floats, alphas: float | Floats) -> Floats:
        """Return the preconditioner at a penalty, or at one each, times columns (D, k)."""
        inside = product(self.vectors.T, columns)
        inside *= 1.0 / (self.values[:, None] + alphas) - 1.0 / alphas
        return columns / alphas + product(self.vectors, inside)


class BlockPreconditioner:
    """(G_11 + alpha I)^-1 of the leading features, and 1 / (d + alpha) of the others.

    It converges fast where features come by their weight, of which most have little; d is near
    their part of the diagonal of G.  Factors of the block are at powers of 4, which is as good.
    """

    def __init__(self, block: Triangle, diagonal: Floats) -> None:
        self.block, self.diagonal = block, diagonal
        self._factors: dict[int, Cholesky] = {}

    @property
    def order(self) -> int:
        return self.block.order

    def solve(self, columns: Floats, alphas: Floats) -> Floats:
        """Return the preconditioner at a penalty each times columns (D, k)."""
        found = np.empty_like(columns)
        found[self.order :] = columns[self.order :] / (self.diagonal[:, None] + alphas)
        for alpha in np.unique(alphas):
            mine = np.flatnonzero(alphas == alpha)
            part = columns[: self.order, mine]
            found[: self.order, mine] = self._factor(float(alpha)).solve(part)
        return found

    def _factor(self, alpha: float) -> Cholesky:
        power = round(math.log(alpha, 4.0))
        if power not in self._factors:
            if len(self._factors) == _FACTORS:
                del self._factors[next(iter(self._factors))]
            self._factors[power] = self._factorised(power)
        return self._factors[power]

    def _factorised(self, power: int) -> Cholesky:
        try:
            return Cholesky.of_shifted(self.block, 4.0**power)
        except np.linalg.LinAlgError:  # rounding makes the block indefinite
            return self._factorised(power + 1)


def most_leading(n_components: int) -> int:
    """Return the most leading eigenvectors that a subspace gets in the end."""
    return min(_MOST // 2, max(_LEADING_BYTES // (8 * n_components), _FIRST))


def block_bytes(n_components: int) -> int:
    """Return what a leading block takes with its factors."""
    return 8 * (_FACTORS + 3) * Triangle.size(min(n_components, LEADING))


def sketch_size(n_components: int, n_rows: int, n_known: int) -> int:
    """Return how many test vectors are added to those that there are; 0 where they are the most."""
    return min(max(n_known, _FIRST), largest_sketch(n_components, n_rows) - n_known)


def largest_sketch(n_components: int, n_rows: int) -> int:
    """Return the most test vectors: half of the features, and no more than tell all of few rows."""
    most = min(-(-n_components // 2), n_rows)
    return min(most, _MOST, max(_BYTES // (8 * n_components), _FIRST))


def sketch_at_once(n_components: int, n_rows: int) -> int:
    """Return the most test vectors that one pass multiplies."""
    most = largest_sketch(n_components, n_rows)
    return min(max(-(-most // 2), _FIRST), most, max(_AT_ONCE // (8 * n_components), _FIRST))
