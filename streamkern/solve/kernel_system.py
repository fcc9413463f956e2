"""Ridge regression on the n x n kernel matrix: at one penalty, or at many.

(K + alpha I) a + mu 1 = y and, with an intercept, 1^T a = 0.  The matrix M that takes y to a is
(K + alpha I)^-1, bordered by the ones where there is an intercept; the error at row i of a model
fitted without it is a_i / M_ii.

With weights s of the rows it is K + alpha S^-1 instead.  It is solved in the variables a / r, with
the roots r of the weights: there the matrix is R K R + alpha I, the targets are r y, and r takes
the place of the ones.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import lapack

from streamkern._typing import Floats
from streamkern.errors import SingularSystemError
from streamkern.features.base import slices
from streamkern.solve.penalty_grid import even_grid

_ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class DualSolution:
    """Dual coefficients, and what leave-one-out needs besides."""

    coef: Floats  # a (n, q)
    intercept: Floats  # mu (q,)
    diagonal: Floats | None = None  # of M, (n,)

    @property
    def loo_residuals(self) -> Floats | None:
        """y_i minus the prediction for row i of a model fitted without it, (n, q)."""
        return None if self.diagonal is None else self.coef / self.diagonal[:, None]


def solve_dual(
    K: Floats,
    y: Floats,
    alpha: float,
    weights: Floats | None = None,
    *,
    intercept: bool,
    leave_one_out: bool = False,
) -> DualSolution:
    """Solve at one penalty, by a Cholesky factorisation in the memory of K.

    The weights are positive.  The diagonal of M, for `leave_one_out`, takes twice as much work
    again.  SingularSystemError is raised if K + alpha I has no Cholesky factor.

    Saunders, Gammerman and Vovk (1998), "Ridge regression learning algorithm in dual variables".
    """
    n, q = y.shape
    roots, y = _rooted(K, y, weights)
    factor = K.T  # symmetric, and now in the order that LAPACK works in place
    factor[np.diag_indices(n)] += alpha
    factor, failed = lapack.dpotrf(factor, lower=1, overwrite_a=1, clean=0)
    if failed:
        raise SingularSystemError(
            f"K + alpha I is singular at alpha {alpha:g}; give a larger alpha, or remove rows "
            f"that occur twice."
        )
    coef, _ = lapack.dpotrs(factor, np.asfortranarray(y), lower=1)
    mu, along = np.zeros(q), np.zeros(n)
    if intercept:
        # The stationary mu: r^T (R K R + alpha I)^-1 (r y - r mu) = 0.
        along, _ = lapack.dpotrs(factor, roots, lower=1)
        mu = roots @ coef / (roots @ along)
        coef -= np.outer(along, mu)
    coef *= roots[:, None]
    if not leave_one_out:
        return DualSolution(coef, mu)
    inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    diagonal = np.diagonal(inverse).copy()
    if intercept:
        diagonal -= along**2 / (roots @ along)
    return DualSolution(coef, mu, diagonal * roots**2)


def _rooted(K: Floats, y: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """Turn K into R K R in place, and return the roots of the weights and R y."""
    if weights is None:
        return np.ones(len(y)), y
    roots = np.sqrt(weights)
    K *= roots[:, None]
    K *= roots
    return roots, roots[:, None] * y


@dataclass(frozen=True)
class KernelBasis:
    """The eigenvectors of the centred kernel matrix, which give the solution at any penalty.

    With an intercept, a sums to nought, so R K R is decomposed on the n - 1 dimensions of such
    vectors; M is then R V diag(1 / (d + alpha)) V^T R, without the 1 / alpha that the direction of
    the roots has in the inverse of the matrix that is centred in place.
    """

    values: Floats  # d (m,), ascending, not negative; m = n - 1 with an intercept, else n
    vectors: Floats  # V (n, m), in columns
    projections: Floats  # z = V^T R y, (m, q)
    kernel_mean: Floats  # weighted, of every column of K; zero without an intercept
    target_mean: Floats  # weighted, (q,); zero without an intercept
    roots: Floats  # of the weights, (n,)

    @classmethod
    def of(cls, K: Floats, y: Floats, weights: Floats | None = None, *, intercept: bool) -> Self:
        """Decompose K (n, n), which is overwritten: about 9 n^3 operations."""
        n, q = y.shape
        if not intercept:
            roots, y = _rooted(K, y, weights)
            values, vectors = np.linalg.eigh(K)
            values = np.maximum(values, 0.0)
            return cls(values, vectors, vectors.T @ y, np.zeros(n), np.zeros(q), roots)
        shares = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
        kernel_mean, target_mean = shares @ K, shares @ y
        roots, y = _rooted(K, y - target_mean, weights)
        # Householder's reflection I - 2 v v^T, which takes the roots to the first axis.
        v = np.sqrt(shares)
        v[0] += 1.0
        v /= np.linalg.norm(v)
        product = K @ v
        w = 2.0 * (product - (v @ product) * v)
        for rows in slices(n, _ROWS_AT_ONCE):
            K[rows] -= np.outer(v[rows], w) + np.outer(w[rows], v)
        values, inner = np.linalg.eigh(K[1:, 1:])
        vectors = K[:, 1:]
        vectors[0], vectors[1:] = 0.0, inner
        along = 2.0 * (v[1:] @ inner)
        for rows in slices(n, _ROWS_AT_ONCE):
            vectors[rows] -= np.outer(v[rows], along)
        values, projections = np.maximum(values, 0.0), vectors.T @ y
        return cls(values, vectors, projections, kernel_mean, target_mean, roots)

    def grid(self, n_alphas: int) -> Floats:
        """Return penalties from the rounding of K to its largest eigenvalue, evenly in logs."""
        n, largest = len(self.vectors), float(self.values[-1])
        return even_grid(4.0 * n * np.finfo(float).eps * largest, largest, n_alphas)

    def loo_mean_squares(self, alphas: Floats) -> Floats:
        """Return the weighted mean squared leave-one-out error at every penalty, (A, q)."""
        inverse = 1.0 / (self.values[:, None] + alphas)
        diagonals = self._diagonals(inverse)
        squares = [  # times the roots, as all in these variables
            np.square(self.vectors @ (z[:, None] * inverse) / diagonals).sum(axis=0)
            for z in self.projections.T
        ]
        return np.stack(squares, axis=1) / (self.roots @ self.roots)

    def solve(self, alpha: float) -> DualSolution:
        """Return the solution at one penalty, which must be positive."""
        inverse = 1.0 / (self.values[:, None] + alpha)
        coef = self.roots[:, None] * (self.vectors @ (self.projections * inverse))
        intercept = self.target_mean - self.kernel_mean @ coef
        return DualSolution(coef, intercept, self.roots**2 * self._diagonals(inverse)[:, 0])

    def _diagonals(self, inverse: Floats) -> Floats:
        """Return the diagonal of V diag(1 / (d + alpha)) V^T for every penalty, (n, A)."""
        panels = slices(len(self.vectors), _ROWS_AT_ONCE)
        return np.concatenate([self.vectors[rows] ** 2 @ inverse for rows in panels])
