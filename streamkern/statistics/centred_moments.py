"""Moments about the means: the centred Gram matrix and products that a solver is given."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.statistics.triangle import Triangle

Precision = Literal["single", "double"]
AnyPrecision = Literal["single", "double", "int8", "int16"]


def precision_of_features(precision: str) -> Precision:
    """Return the precision in which features are evaluated where those that are summed have this.

    Rounded features are summed as integers; elsewhere their exact values are taken, in single.
    """
    return "double" if precision == "double" else "single"


def dtype_of_features(precision: str) -> np.dtype[Any]:
    return np.dtype(np.float64 if precision == "double" else np.float32)


@dataclass(frozen=True)
class CentredMoments:
    """Moments about the weighted means, or about zero for a model without an intercept.

    The precision is that of the products; sums are in double.
    """

    gram: Triangle  # G = sum s phi phi^T - N phibar phibar^T
    cross: Floats  # C = sum s phi y^T - N phibar ybar^T, (D, q)
    target: Floats  # the diagonal of S = sum s y y^T - N ybar ybar^T: no target needs the others'
    weight: float  # N, the sum of the weights
    feature_mean: Floats  # zero without an intercept, as is the next
    target_mean: Floats
    precision: Precision = "double"
    intercept: bool = True
    # The mean weight of rows where that is less than 1, so that weights cannot count rows; else 1.
    row_weight: float = 1.0
    # What of the kernel the features leave out, times the mean weight: a penalty for that noise.
    left_out: float = 0.0
    # What eigenvalues are at the most, but for those of a trend, which are far from rounding.
    most: float = np.inf

    def subset(self, indices: Array) -> "CentredMoments":
        """Return the moments of some of the features, (K,) ascending, with all targets."""
        gram, cross = self.gram.subset(indices), self.cross[indices]
        return replace(self, gram=gram, cross=cross, feature_mean=self.feature_mean[indices])

    def turned(self, span: Floats) -> "CentredMoments":
        """Return the moments of the features along orthonormal columns (D, r)."""
        gram, cross = self.gram.turned(span), span.T @ self.cross
        return replace(self, gram=gram, cross=cross, feature_mean=span.T @ self.feature_mean)
