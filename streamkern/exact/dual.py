"""Ridge regression on the n x n kernel matrix: at one penalty, or at many.

(K + alpha I) a + mu 1 = y and, with an intercept, 1^T a = 0.  The matrix M that takes y to a is
(K + alpha I)^-1, bordered by the ones where there is an intercept; the error at row i of a model
fitted without it is a_i / M_ii.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import lapack

from streamkern.errors import SingularSystemError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamkern._typing import Floats

_ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class DualSolution:
    """Dual coefficients, and what leave-one-out needs besides.

    Parameters
    ----------
    coef : ndarray of shape (n, q)
        a.
    intercept : ndarray of shape (q,)
        mu.
    diagonal : ndarray of shape (n,), optional
        The diagonal of M.
    """

    coef: Floats
    intercept: Floats
    diagonal: Floats | None = None

    @property
    def loo_residuals(self) -> Floats | None:
        """y_i less the prediction for row i of a model fitted without it, (n, q)."""
        return None if self.diagonal is None else self.coef / self.diagonal[:, None]


def solve_dual(
    K: Floats, y: Floats, alpha: float, *, intercept: bool, leave_one_out: bool = False
) -> DualSolution:
    """Solve at one penalty, by a Cholesky factorisation in the memory of K.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Is overwritten.
    y : ndarray of shape (n, q)
    alpha : float
    intercept : bool
    leave_one_out : bool
        Compute the diagonal of M too, for twice as much work again.

    Raises
    ------
    SingularSystemError
        If K + alpha I has no Cholesky factor.

    References
    ----------
    Saunders, Gammerman and Vovk (1998), "Ridge regression learning algorithm in dual variables".
    """
    n, q = y.shape
    factor = K.T  # symmetric, and now in the order that LAPACK works in place
    factor[np.diag_indices(n)] += alpha
    factor, failed = lapack.dpotrf(factor, lower=1, overwrite_a=1, clean=0)
    if failed:
        raise SingularSystemError(
            f"K + alpha I is singular at alpha {alpha:g}; give a larger alpha, or remove rows "
            f"that occur twice."
        )
    coef, _ = lapack.dpotrs(factor, np.asfortranarray(y), lower=1)
    mu, ones = np.zeros(q), np.zeros(n)
    if intercept:
        # The stationary mu: 1^T (K + alpha I)^-1 (y - mu) = 0.
        ones, _ = lapack.dpotrs(factor, np.ones(n), lower=1)
        mu = coef.sum(axis=0) / ones.sum()
        coef -= np.outer(ones, mu)
    if not leave_one_out:
        return DualSolution(coef, mu)
    inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    diagonal = np.diagonal(inverse).copy()
    if intercept:
        diagonal -= ones**2 / ones.sum()
    return DualSolution(coef, mu, diagonal)


@dataclass(frozen=True)
class KernelBasis:
    """The eigenvectors of the centred kernel matrix, which give the solution at any penalty.

    With an intercept, a sums to nought, so K is decomposed on the n - 1 dimensions of such vectors;
    M is then V diag(1 / (d + alpha)) V^T, without the 1 / alpha that the direction of the ones has
    in the inverse of the matrix that is centred in place.

    Parameters
    ----------
    values : ndarray of shape (m,)
        d, ascending, not negative; m = n - 1 with an intercept, else n.
    vectors : ndarray of shape (n, m)
        V, in columns.
    projections : ndarray of shape (m, q)
        z = V^T y.
    kernel_mean : ndarray of shape (n,)
        The mean of every column of K; zero without an intercept.
    target_mean : ndarray of shape (q,)
        Zero without an intercept.
    """

    values: Floats
    vectors: Floats
    projections: Floats
    kernel_mean: Floats
    target_mean: Floats

    @classmethod
    def of(cls, K: Floats, y: Floats, *, intercept: bool) -> KernelBasis:
        """Decompose K, which is overwritten: about 9 n^3 operations.

        Parameters
        ----------
        K : ndarray of shape (n, n)
        y : ndarray of shape (n, q)
        intercept : bool
        """
        n, q = y.shape
        if not intercept:
            values, vectors = np.linalg.eigh(K)
            values = np.maximum(values, 0.0)
            return cls(values, vectors, vectors.T @ y, np.zeros(n), np.zeros(q))
        kernel_mean, target_mean = K.mean(axis=0), y.mean(axis=0)
        # Householder's reflection I - 2 v v^T, which takes the ones to the first axis.
        v = np.full(n, n**-0.5)
        v[0] += 1.0
        v /= np.linalg.norm(v)
        product = K @ v
        w = 2.0 * (product - (v @ product) * v)
        for rows in _panels(n):
            K[rows] -= np.outer(v[rows], w) + np.outer(w[rows], v)
        values, inner = np.linalg.eigh(K[1:, 1:])
        vectors = K[:, 1:]
        vectors[0], vectors[1:] = 0.0, inner
        along = 2.0 * (v[1:] @ inner)
        for rows in _panels(n):
            vectors[rows] -= np.outer(v[rows], along)
        projections = vectors.T @ (y - target_mean)
        return cls(np.maximum(values, 0.0), vectors, projections, kernel_mean, target_mean)

    def grid(self, n_alphas: int) -> Floats:
        """Return penalties from the rounding of K to its largest eigenvalue, evenly in logs."""
        n, largest = len(self.vectors), float(self.values[-1])
        if not largest > 0:
            return np.ones(1)
        grid: Floats = np.geomspace(4.0 * n * np.finfo(float).eps * largest, largest, n_alphas)
        return grid

    def loo_mean_squares(self, alphas: Floats) -> Floats:
        """Return the mean squared leave-one-out error at every penalty (A,), per target: (A, q).

        Costs n m A (1 + q) multiply-adds, which is little beside the decomposition.
        """
        inverse = 1.0 / (self.values[:, None] + alphas)
        diagonals = self._diagonals(inverse)
        squares = [
            np.square(self.vectors @ (z[:, None] * inverse) / diagonals).mean(axis=0)
            for z in self.projections.T
        ]
        return np.stack(squares, axis=1)

    def solve(self, alpha: float) -> DualSolution:
        """Return the solution at one penalty, which must be positive."""
        inverse = 1.0 / (self.values[:, None] + alpha)
        coef = self.vectors @ (self.projections * inverse)
        intercept = self.target_mean - self.kernel_mean @ coef
        return DualSolution(coef, intercept, self._diagonals(inverse)[:, 0])

    def _diagonals(self, inverse: Floats) -> Floats:
        """Return the diagonal of M for every column of 1 / (d + alpha), (n, A)."""
        panels = [self.vectors[rows] ** 2 @ inverse for rows in _panels(len(self.vectors))]
        return np.concatenate(panels)


def _panels(n_rows: int) -> Iterator[slice]:
    for start in range(0, n_rows, _ROWS_AT_ONCE):
        yield slice(start, start + _ROWS_AT_ONCE)
