"""Kernels of a distance: radial kernels, and the Laplacian, which is of the Manhattan distance."""

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from streamkern._typing import Floats
from streamkern.kernels.shift_invariant import DistanceKernel, distances


class RadialKernel(DistanceKernel):
    """A kernel of the Euclidean distance of scaled rows: a mixture of Gaussians of many widths."""

    def distance(self, X: Floats, Z: Floats) -> Floats:
        return distances(X, Z, "euclidean")

    def profile_of_squares(self, squares: Floats) -> Floats:
        """Return the kernel's values at squared distances of scaled rows, in their precision."""
        return self.profile(np.sqrt(squares))

    @abstractmethod
    def slope(self, distances: Floats) -> Floats:
        """Return h'(r) / r of the profile h at distances r, and 0 where that has no limit."""

    @abstractmethod
    def stretch(self, uniform: Floats) -> Floats:
        """Return what normal rows are multiplied by, a factor for each number."""

    def spectral(self, normal: Floats, uniform: Floats) -> Floats:
        return normal * self.stretch(uniform[:, 0])[:, None] / self.scales(normal.shape[1])


@dataclass(frozen=True)
class Gaussian(RadialKernel):
    """The Gaussian kernel exp(-|x - x'|^2 / (2 l^2)); frequencies are N(0, I / l^2).

    exp(-gamma |x - x'|^2) is the same kernel at l = 1 / sqrt(2 gamma).

    Rahimi and Recht (2007), "Random features for large-scale kernel machines".
    """

    family = "gaussian"
    aliases = ("rbf",)

    def profile(self, distances: Floats) -> Floats:
        return self.profile_of_squares(distances**2)

    def profile_of_squares(self, squares: Floats) -> Floats:
        return np.exp(-0.5 * squares)

    def slope(self, distances: Floats) -> Floats:
        return -self.profile(distances)

    def stretch(self, uniform: Floats) -> Floats:
        return np.ones(len(uniform))

    def unit_log_density(self, frequencies: Floats) -> Floats:
        squares = (frequencies**2).sum(axis=1)
        return -0.5 * (squares + frequencies.shape[1] * math.log(2.0 * math.pi))


@dataclass(frozen=True)
class Laplacian(DistanceKernel):
    """The Laplacian kernel exp(-sum_j |x_j - x'_j| / l_j); frequencies are Cauchy(0, 1 / l_j)."""

    family = "laplacian"
    along_axes = True
    has_mean_square_gradients = False

    def distance(self, X: Floats, Z: Floats) -> Floats:
        return distances(X, Z, "cityblock")

    def profile(self, distances: Floats) -> Floats:
        return np.exp(-distances)

    def spectral(self, normal: Floats, uniform: Floats) -> Floats:  # noqa: ARG002
        """Return each normal number carried to the Cauchy number of the same quantile."""
        from scipy.special import ndtr  # noqa: PLC0415  imported where it is needed

        # Quantiles are taken in the lower half, where they keep their digits, and mirrored.
        cauchy: Floats = np.copysign(1.0 / np.tan(math.pi * ndtr(-np.abs(normal))), normal)
        return cauchy / self.scales(normal.shape[1])

    def unit_log_density(self, frequencies: Floats) -> Floats:
        return -np.log(math.pi * (1.0 + frequencies**2)).sum(axis=1)
