"""Kernels of the Euclidean distance: normal frequencies, each stretched by a random factor."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streamkern.errors import ParameterError
from streamkern.kernels.base import ShiftInvariantKernel, distances

if TYPE_CHECKING:
    from streamkern._typing import Floats


class RadialKernel(ShiftInvariantKernel):
    """A kernel of the Euclidean distance of scaled rows: a mixture of Gaussians of many widths."""

    def distance(self, X: Floats, Z: Floats) -> Floats:
        """Return Euclidean distances (n, m)."""
        return distances(X, Z, "euclidean")

    def profile_of_squares(self, squares: Floats) -> Floats:
        """Return the kernel's values at squared distances of scaled rows, in their precision."""
        return self.profile(np.sqrt(squares))

    def slope(self, distances: Floats) -> Floats:  # noqa: ARG002  of those that have one
        """Return h'(r) / r of the profile h, and 0 where it has none, at distances r.

        The gradient of the kernel is that times (x - x') / length_scale^2.

        Raises
        ------
        ParameterError
            If no derivative is known.
        """
        raise ParameterError(
            f"the derivative of the kernel {self.name!r} is not known; take another kernel."
        )

    @abstractmethod
    def stretch(self, uniform: Floats) -> Floats:
        """Return what normal rows are multiplied by, one factor for each number in (0, 1)."""

    def spectral(self, normal: Floats, uniform: Floats) -> Floats:
        """Return normal rows times their factors, over the length scale."""
        frequencies: Floats = normal * self.stretch(uniform)[:, None]
        return frequencies / self.scales(normal.shape[1])


@dataclass(frozen=True)
class Gaussian(RadialKernel):
    """The Gaussian kernel exp(-|x - x'|^2 / (2 l^2)); frequencies are N(0, I / l^2).

    exp(-gamma |x - x'|^2) is the same kernel at l = 1 / sqrt(2 gamma).

    References
    ----------
    Rahimi and Recht (2007), "Random features for large-scale kernel machines".
    """

    name = "gaussian"

    def profile(self, distances: Floats) -> Floats:
        """Return exp(-r^2 / 2)."""
        return self.profile_of_squares(distances**2)

    def profile_of_squares(self, squares: Floats) -> Floats:
        """Return exp(-r^2 / 2)."""
        values: Floats = np.exp(-0.5 * squares)
        return values

    def slope(self, distances: Floats) -> Floats:
        """Return -exp(-r^2 / 2)."""
        return -self.profile(distances)

    def stretch(self, uniform: Floats) -> Floats:
        """Return ones."""
        return np.ones(len(uniform))

    def unit_log_density(self, frequencies: Floats) -> Floats:
        """Return that of N(0, I)."""
        squares = (frequencies**2).sum(axis=1)
        values: Floats = -0.5 * (squares + frequencies.shape[1] * math.log(2.0 * math.pi))
        return values


@dataclass(frozen=True)
class Matern(RadialKernel):
    """The Matern kernel of smoothness nu = 1/2, 3/2 or 5/2.

    exp(-r / l) for nu = 1/2, (1 + a) exp(-a) with a = sqrt(3) r / l for nu = 3/2 and
    (1 + a + a^2 / 3) exp(-a) with a = sqrt(5) r / l for nu = 5/2.  Its frequencies follow the
    multivariate Student distribution with 2 nu degrees of freedom.

    Parameters
    ----------
    length_scale : float, sequence of float, or 'median'
    nu : {0.5, 1.5, 2.5}

    Raises
    ------
    ParameterError
        If nu is another number, or a length scale is not positive.

    References
    ----------
    Rasmussen and Williams (2006), "Gaussian processes for machine learning", section 4.2.
    """

    nu: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nu not in (0.5, 1.5, 2.5):
            raise ParameterError(f"nu must be 0.5, 1.5 or 2.5, not {self.nu!r}; give one of them.")

    @property
    def name(self) -> str:
        """matern12, matern32 or matern52."""
        return f"matern{2 * self.nu:.0f}2"

    def profile(self, distances: Floats) -> Floats:
        """Return the polynomial of sqrt(2 nu) r times exp(-sqrt(2 nu) r)."""
        a = math.sqrt(2.0 * self.nu) * distances
        polynomial = {0.5: 1.0, 1.5: 1.0 + a, 2.5: 1.0 + a + a**2 / 3.0}[self.nu]
        values: Floats = polynomial * np.exp(-a)
        return values

    def slope(self, distances: Floats) -> Floats:
        """Return h'(r) / r, which has a closed form as the profile has."""
        a = math.sqrt(2.0 * self.nu) * distances
        decay: Floats = -np.exp(-a)
        if self.nu == 0.5:
            return np.divide(decay, distances, out=np.zeros_like(decay), where=distances > 0)
        return 3.0 * decay if self.nu == 1.5 else 5.0 / 3.0 * (1.0 + a) * decay

    def stretch(self, uniform: Floats) -> Floats:
        """Return sqrt(2 nu / chi2), chi2 being the quantile of `uniform`."""
        from scipy.special import gammaincinv  # noqa: PLC0415  imported where it is needed

        factors: Floats = np.sqrt(self.nu / gammaincinv(self.nu, uniform))
        return factors

    def unit_log_density(self, frequencies: Floats) -> Floats:
        """Return that of the multivariate Student distribution with 2 nu degrees of freedom."""
        p, nu = frequencies.shape[1], self.nu
        constant = math.lgamma(nu + p / 2) - math.lgamma(nu) - p / 2 * math.log(2 * math.pi * nu)
        squares = (frequencies**2).sum(axis=1)
        values: Floats = constant - (nu + p / 2) * np.log1p(squares / (2 * nu))
        return values
