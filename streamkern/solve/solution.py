"""What solving a ridge regression yields, and how far the sums it is solved from can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streamkern.errors import OverflowedError

if TYPE_CHECKING:
    from streamkern._typing import Floats
    from streamkern.statistics import CentredMoments
    from streamkern.statistics.centred_moments import Precision

# Relative to the largest eigenvalue of G: the noise that products leave in it.  In single
# precision the measured error of G is 1e-8 to 1e-7 of its norm; in double, a few units of D eps.
_SINGLE_NOISE = 1e-7
# Relative to its terms: the rounding in a sum of squared residuals that sums in double tell.
_DOUBLE_ROUNDING = 16.0 * float(np.finfo(float).eps)


@dataclass(frozen=True)
class RidgeSolution:
    """Coefficients of a ridge regression, and its diagnostics.

    Parameters
    ----------
    coef : ndarray of shape (D, q)
    intercept : ndarray of shape (q,)
    alpha : float, or ndarray of shape (q,)
        One penalty for all targets, or one for each.
    solver : {'cholesky', 'eigen'}
        What the coefficients come from.
    condition : float
        Of G + alpha I: estimated in the 1-norm for 'cholesky', of what was kept for 'eigen'; the
        largest where there are several penalties.
    effective_dof : float, or ndarray of shape (q,)
        tr (G + alpha I)^-1 G, plus 1 for an intercept; one a penalty.
    train_rss : ndarray of shape (q,)
        Residual sum of squares on the rows of the moments, `rss_rounding` at least.
    rss_rounding : ndarray of shape (q,)
        How far rounding may have moved it.
    floor : float
        The penalty below which the precision of G decides the solution, not the data.
    n_clipped : int
        Eigenvalues of G below the floor that were left out, since the penalty was below it too.
    note : str
        One sentence where the solution is not the plain one, else empty.
    """

    coef: Floats
    intercept: Floats
    alpha: float | Floats
    solver: str
    condition: float
    effective_dof: float | Floats
    train_rss: Floats
    rss_rounding: Floats
    floor: float
    n_clipped: int = 0
    note: str = ""


def precision_floor(moments: CentredMoments, largest: float) -> float:
    """Return the size of eigenvalues of G that its precision cannot tell from zero.

    Parameters
    ----------
    moments : CentredMoments
    largest : float
        The largest eigenvalue of G.
    """
    D = moments.gram.order
    noise = _SINGLE_NOISE if moments.precision == "single" else 4.0 * D * np.finfo(float).eps
    return noise * largest


def relative_rounding(precision: Precision) -> float:
    """Return what rounding makes of a sum of products, relative to the norms of their factors."""
    return _SINGLE_NOISE if precision == "single" else _DOUBLE_ROUNDING


def rounding_variance(mean: Floats) -> Floats:
    """Return the variance that equal values (q,) may seem to have, for the rounding of a mean."""
    variance: Floats = (8.0 * float(np.finfo(float).eps) * mean) ** 2
    return variance


def rss_rounding(target: Floats, diagonal: Floats, coef: Floats, precision: Precision) -> Floats:
    """Return what rounding may make of S - 2 w^T C + w^T G w, a difference of sums.

    That is e (S^(1/2) + B^(1/2))^2, where e is the relative rounding of a sum of products, and
    B = sum_j G_jj w_j^2: the entries of G and C are taken to be off by e times the norms of the two
    columns they are of, each for itself.

    Parameters
    ----------
    target : ndarray of shape (q,)
        The diagonal of S.
    diagonal : ndarray of shape (D,)
        Of G.
    coef : ndarray of shape (D, q)
    precision : {'single', 'double'}

    Returns
    -------
    ndarray of shape (q,)
    """
    target = np.maximum(target, 0.0)
    along = np.maximum(diagonal, 0.0) @ coef**2
    moved: Floats = relative_rounding(precision) * (np.sqrt(target) + np.sqrt(along)) ** 2
    return moved


def check_finite(moments: CentredMoments) -> None:
    """Raise OverflowedError unless the moments are finite."""
    parts = *moments.gram.panels, moments.cross, moments.target
    if not all(np.isfinite(part).all() for part in parts):
        raise OverflowedError(
            f"sums of features or targets overflowed in {moments.precision} precision; standardise "
            f"or rescale the inputs."
        )
