"""Ridge regression on the D x D system, with what is worth knowing about the solution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import eigh, lapack
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from streamkern.errors import OverflowedError, ParameterError, SingularSystemError

if TYPE_CHECKING:
    from streamkern._typing import Floats
    from streamkern.statistics import CentredMoments

# Relative to the largest eigenvalue of G: the noise that products leave in it.  In single
# precision the measured error of G is 1e-8 to 1e-7 of its norm; in double, a few units of D eps.
_SINGLE_NOISE = 1e-7


@dataclass(frozen=True)
class RidgeSolution:
    """Coefficients of a ridge regression, and its diagnostics.

    Parameters
    ----------
    coef : ndarray of shape (D, q)
    intercept : ndarray of shape (q,)
    alpha : float
    solver : {'cholesky', 'eigen'}
        What the coefficients come from; 'eigen' has noise eigenvalues clipped.
    condition : float
        Of G + alpha I: estimated in the 1-norm for 'cholesky', of what was kept for 'eigen'.
    effective_dof : float
        tr (G + alpha I)^-1 G, plus 1 for an intercept.
    train_rss : ndarray of shape (q,)
        Residual sum of squares on the rows of the moments; a difference of sums, so that below
        about 1e-7 of the sum of squares of the targets it is rounding in single precision.
    floor : float
        The penalty below which the precision of G decides the solution, not the data.
    n_clipped : int
        Eigenvalues of G below the floor that were left out.
    note : str
        One sentence where the solution is not the plain one, else empty.
    """

    coef: Floats
    intercept: Floats
    alpha: float
    solver: str
    condition: float
    effective_dof: float
    train_rss: Floats
    floor: float
    n_clipped: int = 0
    note: str = ""


def checked_alpha(alpha: Any) -> float:
    """Return the penalty as a float, or raise ParameterError unless it is finite and >= 0."""
    try:
        value = float(alpha)
    except (TypeError, ValueError):
        value = float("nan")
    if not (np.isfinite(value) and value >= 0):
        raise ParameterError(
            f"alpha must be a finite number of at least 0, not {alpha!r}; give the penalty in "
            f"units of the sum of squares."
        )
    return value


def precision_floor(moments: CentredMoments) -> float:
    """Return the size of eigenvalues of G that its precision cannot tell from zero."""
    D = len(moments.gram)
    noise = _SINGLE_NOISE if moments.precision == "single" else 4.0 * D * np.finfo(float).eps
    return noise * _largest_eigenvalue(moments.gram)


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
    if not all(np.isfinite(part).all() for part in (moments.gram, moments.cross, moments.target)):
        raise OverflowedError(
            f"sums of features or targets overflowed in {moments.precision} precision; standardise "
            f"or rescale the inputs."
        )
    floor = precision_floor(moments)
    if alpha > 0 and alpha >= floor:
        solution = _by_cholesky(moments, alpha, floor)
        if solution is not None:
            return solution
    return _by_eigenvalues(moments, alpha, floor)


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
    return _solution(
        moments,
        np.ascontiguousarray(coef),
        alpha=alpha,
        solver="cholesky",
        condition=1.0 / reciprocal if reciprocal > 0 else float("inf"),
        effective_dof=effective + moments.intercept,
        floor=floor,
    )


def _by_eigenvalues(moments: CentredMoments, alpha: float, floor: float) -> RidgeSolution:
    D = len(moments.gram)
    values, vectors = eigh(moments.gram)
    kept = values > floor
    n_clipped = int(D - kept.sum())
    if n_clipped and alpha == 0:
        raise SingularSystemError(
            f"alpha 0 needs a system of full rank, but {n_clipped:,} of {D:,} eigenvalues lie "
            f"below the precision floor {floor:.3g}; give an alpha of at least that."
        )
    note = ""
    if n_clipped:
        note = (
            f"{n_clipped:,} of {D:,} eigenvalues lie below the precision floor {floor:.3g}, are "
            f"noise beside alpha {alpha:.3g}, and were left out; a larger alpha or double "
            f"precision keeps them."
        )
    values, vectors = values[kept], vectors[:, kept]
    shifted = values + alpha
    coef = vectors @ ((vectors.T @ moments.cross) / shifted[:, None])
    return _solution(
        moments,
        coef,
        alpha=alpha,
        solver="eigen",
        condition=float(shifted.max() / shifted.min()) if len(shifted) else 1.0,
        effective_dof=float((values / shifted).sum()) + moments.intercept,
        floor=floor,
        n_clipped=n_clipped,
        note=note,
    )


def _solution(moments: CentredMoments, coef: Floats, **diagnostics: Any) -> RidgeSolution:
    fitted = np.einsum("dq,dq->q", coef, 2.0 * moments.cross - moments.gram @ coef)
    return RidgeSolution(
        coef=coef,
        intercept=moments.target_mean - moments.feature_mean @ coef,
        train_rss=np.maximum(np.diagonal(moments.target) - fitted, 0.0),
        **diagnostics,
    )
