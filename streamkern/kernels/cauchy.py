"""The Cauchy kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streamkern.kernels.scaled import ScaledKernel, distances

if TYPE_CHECKING:
    from streamkern._typing import Floats


@dataclass(frozen=True)
class Cauchy(ScaledKernel):
    """The Cauchy kernel prod_j 1 / (1 + (x_j - x'_j)^2 / l_j^2).

    Its frequencies are independent Laplace(0, 1 / l_j).

    References
    ----------
    Rahimi and Recht (2007), "Random features for large-scale kernel machines".
    """

    family = "cauchy"
    along_axes = True

    def distance(self, X: Floats, Z: Floats) -> Floats:
        """Return Euclidean distances (n, m): near rows have about exp(-r^2)."""
        return distances(X, Z, "euclidean")

    def values(self, X: Floats, Z: Floats) -> Floats:
        """Return the product over inputs."""
        denominator = np.ones((len(X), len(Z)))
        for x, z in zip(X.T, Z.T, strict=True):
            denominator *= 1.0 + (x[:, None] - z) ** 2
        return 1.0 / denominator

    def spectral(self, normal: Floats, uniform: Floats) -> Floats:  # noqa: ARG002
        """Return each normal number carried to the Laplace number of the same quantile."""
        from scipy.special import log_ndtr  # noqa: PLC0415  imported where it is needed

        laplace: Floats = np.copysign(-(math.log(2.0) + log_ndtr(-np.abs(normal))), normal)
        return laplace / self.scales(normal.shape[1])

    def unit_log_density(self, frequencies: Floats) -> Floats:
        """Return that of independent standard Laplace numbers."""
        values: Floats = -(np.abs(frequencies) + math.log(2.0)).sum(axis=1)
        return values
