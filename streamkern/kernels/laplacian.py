"""The Laplacian kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streamkern.kernels.scaled import DistanceKernel, distances

if TYPE_CHECKING:
    from streamkern._typing import Floats


@dataclass(frozen=True)
class Laplacian(DistanceKernel):
    """The Laplacian kernel exp(-sum_j |x_j - x'_j| / l_j); frequencies are Cauchy(0, 1 / l_j).

    References
    ----------
    Rahimi and Recht (2007), "Random features for large-scale kernel machines".
    """

    family = "laplacian"
    along_axes = True

    def distance(self, X: Floats, Z: Floats) -> Floats:
        """Return Manhattan distances (n, m)."""
        return distances(X, Z, "cityblock")

    def profile(self, distances: Floats) -> Floats:
        """Return exp(-r)."""
        values: Floats = np.exp(-distances)
        return values

    def spectral(self, normal: Floats, uniform: Floats) -> Floats:  # noqa: ARG002
        """Return each normal number carried to the Cauchy number of the same quantile."""
        from scipy.special import ndtr  # noqa: PLC0415  imported where it is needed

        # Quantiles are taken in the lower half, where they keep their digits, and mirrored.
        cauchy: Floats = np.copysign(1.0 / np.tan(math.pi * ndtr(-np.abs(normal))), normal)
        return cauchy / self.scales(normal.shape[1])

    def unit_log_density(self, frequencies: Floats) -> Floats:
        """Return that of independent standard Cauchy numbers."""
        values: Floats = -np.log(math.pi * (1.0 + frequencies**2)).sum(axis=1)
        return values
