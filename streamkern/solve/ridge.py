"""Ridge regression on the D x D system at one penalty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import lapack
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from streamkern.errors import ParameterError
from streamkern.solve.solution import RidgeSolution, check_finite, precision_floor
from streamkern.solve.spectrum import Eigenbasis

if TYPE_CHECKING:
    from streamkern._typing import Floats
    from streamkern.statistics import CentredMoments


def checked_alpha(alpha: Any) -> float:
    """Return the penalty as a float, or raise ParameterError unless it is finite and >= 0."""
    try:
        value = float("nan") if isinstance(alpha, bool) else float(alpha)
    except (TypeError, ValueError):
        value = float("nan")
    if not (np.isfinite(value) and value >= 0):
        raise ParameterError(
            f"alpha must be a finite number of at least 0, not {alpha!r}; give the penalty in "
            f"units of the sum of squares."
        )
    return value


def solve_ridge(moments: CentredMoments, alpha: float) -> RidgeSolution:
    """Minimise the penalised sum of squares that the moments describe.

    w = (G + alpha I)^-1 C by Cholesky factorisation.  Where that fails, or alpha lies below the
    precision floor of G, by eigendecomposition without the eigenvalues below the floor.

    Parameters
    ----------
    moments : CentredMoments
    alpha : float
        The penalty, in the units of the sum of squares: not divided by n.

    Returns
    -------
    RidgeSolution

    Raises
    ------
    ParameterError
        If alpha is negative or not a number.
    SingularSystemError
        If alpha is 0 and some eigenvalue of G is below the floor.
    OverflowedError
        If the moments are not finite.

    References
    ----------
    Hastie, Tibshirani and Friedman (2009), "The elements of statistical learning", section 3.4.
    """
    alpha = checked_alpha(alpha)
    check_finite(moments)
    floor = precision_floor(moments, _largest_eigenvalue(moments.gram))
    if alpha > 0 and alpha >= floor:
        solution = _by_cholesky(moments, alpha, floor)
        if solution is not None:
            return solution
    return Eigenbasis.of(moments).solve(alpha)


def _largest_eigenvalue(gram: Floats) -> float:
    D = len(gram)
    if not gram.any():
        return 0.0
    if D < 64:
        return float(np.linalg.norm(gram, 2)) if D else 0.0
    try:
        start = np.ones(D) + np.arange(D) / D
        return float(eigsh(gram, k=1, v0=start, tol=1e-3, return_eigenvectors=False)[0])
    except ArpackNoConvergence:
        return float(np.abs(gram).sum(axis=1).max())


def _by_cholesky(moments: CentredMoments, alpha: float, floor: float) -> RidgeSolution | None:
    D = len(moments.gram)
    factor = np.array(moments.gram, order="F")
    factor[np.diag_indices(D)] += alpha
    norm = lapack.dlange("1", factor)
    factor, failed = lapack.dpotrf(factor, lower=1, overwrite_a=1, clean=1)
    if failed:
        return None
    coef, _ = lapack.dpotrs(factor, moments.cross, lower=1)
    reciprocal, _ = lapack.dpocon(factor, norm, uplo="L")
    # tr (G + alpha I)^-1 is the squared Frobenius norm of the inverse factor.
    inverse, _ = lapack.dtrtri(factor, lower=1, overwrite_c=1)
    effective = D - alpha * float(np.linalg.norm(inverse)) ** 2
    coef = np.ascontiguousarray(coef)
    fitted = np.einsum("dq,dq->q", coef, 2.0 * moments.cross - moments.gram @ coef)
    return RidgeSolution(
        coef=coef,
        intercept=moments.target_mean - moments.feature_mean @ coef,
        alpha=alpha,
        solver="cholesky",
        condition=1.0 / reciprocal if reciprocal > 0 else float("inf"),
        effective_dof=effective + moments.intercept,
        train_rss=np.maximum(np.diagonal(moments.target) - fitted, 0.0),
        floor=floor,
    )
