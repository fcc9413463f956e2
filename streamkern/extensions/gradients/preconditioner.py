"""Preconditioners of a Gram matrix: by products with it, or by its leading block."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.features.base import slices, stream
from streamkern.runtime.matrix_products import product
from streamkern.solve.cholesky import Cholesky
from streamkern.solve.eigendecomposition import decomposed
from streamkern.statistics import Triangle

# Eigenvalues of a sketch below this share of the largest are rounding.
_ROUNDING = 1e-13
# Vectors of the first sketch and of the largest, and the bytes of that, of vectors of one pass and
# of the leading eigenvectors.
_FIRST, _MOST, _BYTES, _AT_ONCE, _LEADING_BYTES = 128, 2048, 1 << 30, 128 << 20, 256 << 20
# Rows of vectors that are multiplied at once where no copy of all is made.
_ROWS = 8192
# The order of a leading block, and factors of it that are kept.
LEADING, _FACTORS = 4096, 6
# Random vectors that tell what a subspace leaves in the end.
N_PROBES = 32
_STREAM = 5


@dataclass(frozen=True)
class NystroemPreconditioner:
    """(U diag(d) U^T + alpha I)^-1, with U diag(d) U^T <= G in all directions, and near to it.

    It follows from products G T (D, r) with orthonormal test vectors T (D, r).  Where r is a few
    times the effective degrees of freedom at alpha, gradients converge in a few iterations.

    Frangella, Tropp and Udell (2023), "Randomized Nystroem preconditioning".
    """

    tests: Floats  # T
    images: Floats  # G T
    values: Floats  # d, descending
    vectors: Floats  # U (D, r'), orthonormal

    @classmethod
    def none(cls, n_components: int) -> Self:
        """Return that of no test vectors."""
        nothing = np.zeros((n_components, 0))
        return cls(nothing, nothing, np.zeros(0), nothing)

    def extended(self, tests: Floats, images: Floats) -> Self:
        """Return the preconditioner with products of more vectors, orthonormal to the others."""
        tests = np.column_stack([self.tests, tests])
        images = np.column_stack([self.images, images])
        values, turns = _main(product(tests.T, images))
        vectors = product(images, turns / np.sqrt(values))
        values, turns = _main(product(vectors.T, vectors))
        turns /= np.sqrt(values)
        for some in slices(len(vectors), _ROWS):  # in place, since they are large
            vectors[some, : len(values)] = product(vectors[some], turns)
        return type(self)(tests, images, values, vectors[:, : len(values)])

    @property
    def n_vectors(self) -> int:
        return int(self.tests.shape[1])

    @property
    def largest_eigenvalue(self) -> float:
        return float(self.values.max(initial=0.0))

    @property
    def least_eigenvalue(self) -> float:
        """The least eigenvalue that is known, 0 where others are rounding."""
        return float(self.values[-1]) if len(self.values) == self.n_vectors else 0.0

    def leading(self, least: float) -> Floats:
        """Return the eigenvectors (D, r) of larger eigenvalues, as many as a subspace takes."""
        return self.vectors[
            :, : min(int((self.values > least).sum()), most_leading(len(self.tests)))
        ]

    def solve(self, columns: Floats, alpha: float) -> Floats:
        """Return the preconditioner at a penalty times columns (D, k)."""
        inside = product(self.vectors.T, columns)
        inside *= (1.0 / (self.values + alpha) - 1.0 / alpha)[:, None]
        return columns / alpha + product(self.vectors, inside)


def _main(matrix: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues that are no rounding, descending, and their vectors."""
    values, vectors = decomposed((matrix + matrix.T) / 2)
    kept = values > _ROUNDING * values.max(initial=0.0)
    return values[kept][::-1], vectors[:, kept][:, ::-1]


class BlockPreconditioner:
    """(G_11 + alpha I)^-1 of the leading features, and 1 / (d + alpha) of the others.

    It converges fast where features come by their weight, of which most have little; d is near
    their part of the diagonal of G.  Factors of the block are at powers of 4, which is as good.
    """

    def __init__(self, block: Triangle, diagonal: Floats) -> None:
        self.block, self.diagonal = block, diagonal
        self._factors: dict[int, Cholesky] = {}

    def solve(self, columns: Floats, alpha: float) -> Floats:
        """Return the preconditioner at a penalty times columns (D, k)."""
        order, factor = self.block.order, self._factor(round(math.log(alpha, 4.0)))
        others = columns[order:] / (self.diagonal + alpha)[:, None]
        return np.concatenate([factor.solve(columns[:order]), others])

    def _factor(self, power: int) -> Cholesky:
        if power not in self._factors:
            try:
                made = Cholesky.of_shifted(self.block, 4.0**power)
            except np.linalg.LinAlgError:  # rounding makes the block indefinite
                made = self._factor(power + 1)
            if len(self._factors) == _FACTORS:
                del self._factors[next(iter(self._factors))]
            self._factors[power] = made
        return self._factors[power]


def random_orthonormal(n_vectors: int, others: Array) -> Floats:
    """Return random orthonormal vectors (D, n), orthogonal to others, which are that too."""
    made = stream(others.shape[1], _STREAM).standard_normal((len(others), n_vectors))
    for _ in range(2):
        made -= product(others, product(others.T, made))
    return np.linalg.qr(made)[0]


def most_leading(n_components: int) -> int:
    """Return the most leading eigenvectors that a subspace gets in the end."""
    return min(_MOST // 2, max(_LEADING_BYTES // (8 * n_components), _FIRST))


def block_bytes(n_components: int) -> int:
    """Return what a leading block takes with its factors."""
    return 8 * (_FACTORS + 3) * Triangle.size(min(n_components, LEADING))


def sketch_size(n_components: int, n_rows: int, n_known: int = 0) -> int:
    """Return how many test vectors one pass adds to those that there are; 0 to the most."""
    left = largest_sketch(n_components, n_rows) - n_known
    return min(max(n_known, _FIRST), left, sketch_at_once(n_components, n_rows))


def largest_sketch(n_components: int, n_rows: int) -> int:
    """Return the most test vectors: half of the features, and no more than tell all of few rows."""
    most = min(-(-n_components // 2), n_rows)
    return min(most, _MOST, max(_BYTES // (8 * n_components), _FIRST))


def sketch_at_once(n_components: int, n_rows: int) -> int:
    """Return the most test vectors that one pass multiplies."""
    most = largest_sketch(n_components, n_rows)
    return min(max(-(-most // 2), _FIRST), most, max(_AT_ONCE // (8 * n_components), _FIRST))
