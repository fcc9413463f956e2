"""What solving a ridge regression yields, and how far the sums it is solved from can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streamkern.errors import OverflowedError

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
        Residual sum of squares on the rows of the moments; a difference of sums, so that below
        about 1e-7 of the sum of squares of the targets it is rounding in single precision.
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


def check_finite(moments: CentredMoments) -> None:
    """Raise OverflowedError unless the moments are finite."""
    parts = *moments.gram.panels, moments.cross, moments.target
    if not all(np.isfinite(part).all() for part in parts):
        raise OverflowedError(
            f"sums of features or targets overflowed in {moments.precision} precision; standardise "
            f"or rescale the inputs."
        )
