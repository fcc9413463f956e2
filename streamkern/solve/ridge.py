"""Ridge regression on the D x D system at one penalty."""

from collections.abc import Callable

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from streamkern._typing import Floats
from streamkern.runtime.memory import check_free
from streamkern.runtime.threads import blas_threads
from streamkern.solve.cholesky import Cholesky
from streamkern.solve.eigendecomposition import decomposition_bytes
from streamkern.solve.penalty_grid import checked_alpha
from streamkern.solve.solution import (
    RidgeSolution,
    are_below,
    check_finite,
    precision_floor,
    rss_rounding,
)
from streamkern.solve.spectrum import Eigenbasis
from streamkern.statistics import CentredMoments, Triangle


def solve_ridge(
    moments: CentredMoments, alpha: float, again: Callable[[], CentredMoments] | None = None
) -> RidgeSolution:
    """Minimise the penalised sum of squares that the moments describe.

    w = (G + alpha I)^-1 C by Cholesky factorisation, on all cores, in a copy of the triangle of G.
    With `again`, which computes the moments anew, the triangle itself is overwritten.  Where the
    factorisation fails, or alpha lies below the precision floor of G, by eigendecomposition without
    the eigenvalues below the floor; that raises SingularSystemError if alpha is 0, and
    InsufficientMemoryError if there is no memory for it.

    Hastie, Tibshirani and Friedman (2009), "The elements of statistical learning", section 3.4.
    """
    alpha = checked_alpha(alpha)
    check_finite(moments)
    with blas_threads(1):  # so that the number of cores does not matter
        floor = precision_floor(moments, largest_eigenvalue(moments.gram))
        if not are_below(floor, alpha):
            solution = _by_cholesky(moments, alpha, floor, overwrite=again is not None)
            if solution is not None:
                return solution
            moments = again() if again is not None else moments
        check_free(
            decomposition_bytes(moments.gram.order),
            f"decomposing G, as alpha {alpha:g} is near its precision floor {floor:.3g} or below,",
        )
        return Eigenbasis.of(moments).solve(alpha)


def solve_each(moments: CentredMoments, alpha: float | Floats) -> RidgeSolution:
    """Solve with one penalty for all targets, or with one for each (q,)."""
    if isinstance(alpha, float):
        return solve_ridge(moments, alpha)
    return Eigenbasis.of(moments).solve(alpha)


def largest_eigenvalue(gram: Triangle) -> float:
    D, norm = gram.order, gram.norm()
    if not norm:
        return 0.0
    if D < 64:
        return float(np.linalg.norm(gram.dense(), 2))
    operator = LinearOperator((D, D), matvec=gram.__matmul__, dtype=np.float64)
    try:
        start = np.ones(D) + np.arange(D) / D
        return float(eigsh(operator, k=1, v0=start, tol=1e-3, return_eigenvectors=False)[0])
    except ArpackNoConvergence:
        return norm


def _by_cholesky(
    moments: CentredMoments, alpha: float, floor: float, *, overwrite: bool = False
) -> RidgeSolution | None:
    diagonal = moments.gram.diagonal()
    shifted = moments.gram if overwrite else moments.gram.astype(np.float64)
    shifted.add_diagonal(alpha)
    norm = shifted.norm()
    try:
        factor = Cholesky.of(shifted)
    except np.linalg.LinAlgError:
        return None
    coef = factor.solve(moments.cross)
    # w^T (2 C - G w), where G w = C - alpha w.
    fitted = np.einsum("dq,dq->q", coef, moments.cross + alpha * coef)
    rounding = rss_rounding(moments.target, diagonal, coef, moments.precision)
    return RidgeSolution(
        coef=coef,
        intercept=moments.target_mean - moments.feature_mean @ coef,
        alpha=alpha,
        solver="cholesky",
        condition=factor.condition(norm),
        effective_dof=moments.gram.order - alpha * factor.inverse_trace() + moments.intercept,
        train_rss=np.maximum(moments.target - fitted, rounding),
        rss_rounding=rounding,
        floor=floor,
    )
