"""Moments about the means: the centred Gram matrix and products that a solver is given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats
    from streamkern.statistics.triangle import Triangle

Precision = Literal["single", "double"]


@dataclass(frozen=True)
class CentredMoments:
    """Moments about the weighted means, or about zero for a model without an intercept.

    Parameters
    ----------
    gram : Triangle
        G = sum s phi phi^T - N phibar phibar^T, in double precision.
    cross : ndarray of shape (D, q)
        C = sum s phi y^T - N phibar ybar^T.
    target : ndarray of shape (q,)
        The diagonal of S = sum s y y^T - N ybar ybar^T: no target needs the others'.
    weight : float
        N, the sum of the weights.
    feature_mean, target_mean : ndarray of shape (D,) and (q,)
        Zero for a model without an intercept.
    precision : {'single', 'double'}
        Of the products that were summed.
    intercept : bool
    row_weight : float
        The mean weight of the rows where that is less than 1, so that weights cannot count rows;
        else 1.
    """

    gram: Triangle
    cross: Floats
    target: Floats
    weight: float
    feature_mean: Floats
    target_mean: Floats
    precision: Precision = "double"
    intercept: bool = True
    row_weight: float = 1.0

    def subset(self, indices: Array) -> CentredMoments:
        """Return the moments of some of the features, (K,) ascending, with all targets."""
        return replace(
            self,
            gram=self.gram.subset(indices),
            cross=self.cross[indices],
            feature_mean=self.feature_mean[indices],
        )
