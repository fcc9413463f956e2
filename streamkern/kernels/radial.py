"""Kernels of the Euclidean distance: normal frequencies, each stretched by a random factor."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.errors import ParameterError
from streamkern.kernels.base import number_text
from streamkern.kernels.bessel import log_bessel_k
from streamkern.kernels.scaled import DistanceKernel, distances

if TYPE_CHECKING:
    from streamkern._typing import Floats

# Longer frequencies are as good as random, and have no place in single precision.
_LONGEST = 1e18
# exp(-a) is 0 at this a and beyond, where a^2 or infinity times that would be no number.
_FARTHEST = 1e4
# Of rougher kernels no two rows are alike, and of smoother ones the Bessel functions cannot be told
# from their limit, the Gaussian.
_ROUGHEST, _SMOOTHEST = 1e-6, 100.0


class RadialKernel(DistanceKernel):
    """A kernel of the Euclidean distance of scaled rows: a mixture of Gaussians of many widths."""

    def distance(self, X: Floats, Z: Floats) -> Floats:
        """Return Euclidean distances (n, m)."""
        return distances(X, Z, "euclidean")

    def profile_of_squares(self, squares: Floats) -> Floats:
        """Return the kernel's values at squared distances of scaled rows, in their precision."""
        return self.profile(np.sqrt(squares))

    @abstractmethod
    def slope(self, distances: Floats) -> Floats:
        """Return h'(r) / r of the profile h at distances r, and 0 where that has no limit.

        The gradient of the kernel is that times (x - x') / length_scale^2.
        """

    @abstractmethod
    def stretch(self, uniform: Floats) -> Floats:
        """Return what normal rows are multiplied by, one factor for each number in (0, 1]."""

    def spectral(self, normal: Floats, uniform: Floats) -> Floats:
        """Return normal rows times their factors, over the length scale."""
        frequencies: Floats = normal * self.stretch(uniform[:, 0])[:, None]
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
    """The Matern kernel of smoothness nu.

    2^(1-nu) / Gamma(nu) a^nu K_nu(a) with a = sqrt(2 nu) r / l, which is exp(-a) for nu = 1/2,
    (1 + a) exp(-a) for nu = 3/2 and (1 + a + a^2 / 3) exp(-a) for nu = 5/2.  Its frequencies follow
    the multivariate Student distribution with 2 nu degrees of freedom.

    Parameters
    ----------
    length_scale : float, sequence of float, or 'median'
    nu : float
        From 1e-6 to 100; functions of the kernel's space have less than nu + p / 2 derivatives.

    Raises
    ------
    ParameterError
        If nu or a length scale is another number than it can be.

    References
    ----------
    Rasmussen and Williams (2006), "Gaussian processes for machine learning", section 4.2.
    """

    nu: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "nu", _checked_smoothness("nu", self.nu))

    @property
    def name(self) -> str:
        """matern12, matern32, matern52, or matern(nu=...)."""
        if self.nu in (0.5, 1.5, 2.5):
            return f"matern{2 * self.nu:.0f}2"
        return f"matern(nu={number_text(self.nu)})"

    def _scaled_distances(self, distances: Floats) -> Floats:
        """Return sqrt(2 nu) r, or where that is longer what has the value 0 as well.

        In double for Bessel functions, whose logarithms are large, and cancel.
        """
        precise = distances if self.nu in (0.5, 1.5, 2.5) else np.asarray(distances, dtype=float)
        return np.minimum(math.sqrt(2.0 * self.nu) * precise, _FARTHEST)

    def profile(self, distances: Floats) -> Floats:
        """Return the values at distances r, of a = sqrt(2 nu) r."""
        nu, a = self.nu, self._scaled_distances(distances)
        if nu in (0.5, 1.5, 2.5):
            polynomial = {0.5: 1.0, 1.5: 1.0 + a, 2.5: 1.0 + a + a**2 / 3.0}[nu]
            values: Floats = polynomial * np.exp(-a)
            return values
        # Equal rows have the value 1, and no logarithm of their distance.
        apart = np.where(a > 0, a, 1.0)
        constant = (1.0 - nu) * math.log(2.0) - math.lgamma(nu)
        logarithm = constant + nu * np.log(apart) + log_bessel_k(nu, apart)
        return np.where(a > 0, np.exp(np.minimum(logarithm, 0.0)), 1.0)

    def slope(self, distances: Floats) -> Floats:
        """Return -2 nu 2^(1-nu) / Gamma(nu) a^(nu-1) K_(nu-1)(a), of a = sqrt(2 nu) r."""
        nu, a = self.nu, self._scaled_distances(distances)
        if nu in (1.5, 2.5):
            values: Floats = np.exp(-a) * (-3.0 if nu == 1.5 else -5.0 / 3.0 * (1.0 + a))
            return values
        apart = np.where(a > 0, a, 1.0)
        constant = math.log(2.0 * nu) + (1.0 - nu) * math.log(2.0) - math.lgamma(nu)
        logarithm = constant + (nu - 1.0) * np.log(apart) + log_bessel_k(abs(nu - 1.0), apart)
        return np.where(a > 0, -np.exp(logarithm), -nu / (nu - 1.0) if nu > 1.0 else 0.0)

    def stretch(self, uniform: Floats) -> Floats:
        """Return sqrt(2 nu / chi2), chi2 being the quantile of `uniform`."""
        from scipy.special import gammaincinv  # noqa: PLC0415  imported where it is needed

        quantiles = np.maximum(gammaincinv(self.nu, uniform), self.nu / _LONGEST**2)
        factors: Floats = np.sqrt(self.nu / quantiles)
        return factors

    def unit_log_density(self, frequencies: Floats) -> Floats:
        """Return that of the multivariate Student distribution with 2 nu degrees of freedom."""
        p, nu = frequencies.shape[1], self.nu
        constant = math.lgamma(nu + p / 2) - math.lgamma(nu) - p / 2 * math.log(2 * math.pi * nu)
        squares = (frequencies**2).sum(axis=1)
        values: Floats = constant - (nu + p / 2) * np.log1p(squares / (2 * nu))
        return values


class GammaMixture(RadialKernel):
    """(1 + r^2 / (2 a l^2))^-a: Gaussians whose inverse squared widths follow a Gamma law."""

    shape: float

    def profile(self, distances: Floats) -> Floats:
        """Return (1 + r^2 / (2 a))^-a."""
        return self.profile_of_squares(distances**2)

    def profile_of_squares(self, squares: Floats) -> Floats:
        """Return (1 + r^2 / (2 a))^-a."""
        values: Floats = np.exp(-self.shape * np.log1p(squares / (2.0 * self.shape)))
        return values

    def slope(self, distances: Floats) -> Floats:
        """Return -(1 + r^2 / (2 a))^(-a - 1)."""
        logarithm = np.log1p(distances**2 / (2.0 * self.shape))
        values: Floats = -np.exp(-(self.shape + 1.0) * logarithm)
        return values

    def stretch(self, uniform: Floats) -> Floats:
        """Return the root of a Gamma number of shape and rate a, of upper quantile `uniform`."""
        from scipy.special import gammainccinv  # noqa: PLC0415  imported where it is needed

        factors: Floats = np.sqrt(gammainccinv(self.shape, uniform) / self.shape)
        return factors

    def unit_log_density(self, frequencies: Floats) -> Floats:
        """Return that of normal numbers of Gamma variance; infinite at 0 for a <= p / 2."""
        p, a = frequencies.shape[1], self.shape
        order = a - p / 2
        length = np.sqrt((frequencies**2).sum(axis=1))
        z = np.maximum(math.sqrt(2.0 * a) * length, 1e-150)
        constant = a * math.log(a) - math.lgamma(a) - p / 2 * math.log(2 * math.pi) + math.log(2.0)
        values = constant + order * np.log(z / (2.0 * a)) + log_bessel_k(order, z)
        return np.where((length > 0) | (order > 0), values, np.inf)


@dataclass(frozen=True)
class RationalQuadratic(GammaMixture):
    """The rational quadratic kernel (1 + |x - x'|^2 / (2 a l^2))^-a.

    Its frequencies are N(0, tau I / l^2), tau following the Gamma distribution of shape and rate a.

    Parameters
    ----------
    length_scale : float, sequence of float, or 'median'
    shape : float
        a, from 1e-6 to 100; the kernel falls off the slower, the smaller it is, and is the Gaussian
        in the limit.

    Raises
    ------
    ParameterError
        If the shape or a length scale is another number than it can be.

    References
    ----------
    Rasmussen and Williams (2006), "Gaussian processes for machine learning", section 4.2.
    """

    shape: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "shape", _checked_smoothness("shape", self.shape))

    @property
    def name(self) -> str:
        """rational-quadratic, with a shape that is not 1."""
        usual = "rational-quadratic"
        return usual if self.shape == 1.0 else f"{usual}(shape={number_text(self.shape)})"


@dataclass(frozen=True)
class InverseMultiquadric(GammaMixture):
    """The inverse multiquadric kernel (1 + |x - x'|^2 / l^2)^(-1/2).

    It is the rational quadratic kernel of shape 1/2.

    References
    ----------
    Hardy (1971), "Multiquadric equations of topography and other irregular surfaces".
    """

    name = "inverse-multiquadric"
    shape = 0.5


def _checked_smoothness(name: str, value: Any) -> float:
    is_number = isinstance(value, (int, float, np.integer, np.floating))
    if isinstance(value, bool) or not is_number or not 0.0 < value < math.inf:
        raise ParameterError(f"{name} must be positive and finite, not {value!r}; give a number.")
    if not _ROUGHEST <= value <= _SMOOTHEST:
        raise ParameterError(
            f"{name} must be at least {_ROUGHEST:g} and at most {_SMOOTHEST:g}, not {value!r}; "
            f"take the Gaussian kernel, which is the limit of large ones."
        )
    return float(value)
