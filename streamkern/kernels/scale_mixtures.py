"""Gaussians of many widths, mixed: the Matern and the rational quadratic kernel."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from streamkern._typing import Floats
from streamkern.errors import ParameterError
from streamkern.kernels.radial import RadialKernel

# Longer frequencies are as good as random, and have no place in single precision.
_LONGEST = 1e18
# exp(-a) is 0 at this a and beyond, where a^2 or infinity times that would be no number.
_FARTHEST = 1e4
# Beyond this, exp(-x) is 0 and the library's function may be undefined.
_LARGE = 1e4
# Of rougher kernels no two rows are alike, and of smoother ones the Bessel functions cannot be told
# from their limit, the Gaussian.
_ROUGHEST, _SMOOTHEST = 1e-6, 100.0


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

    References
    ----------
    Rasmussen and Williams (2006), "Gaussian processes for machine learning", section 4.2.
    """

    nu: float = 1.5
    family = "matern"
    spellings: ClassVar = {f"matern{2 * nu:.0f}2": {"nu": nu} for nu in (0.5, 1.5, 2.5)}

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "nu", _checked_smoothness("nu", self.nu))

    @property
    def has_mean_square_gradients(self) -> bool:
        """Frequencies of the Student distribution have a variance above two degrees of freedom."""
        return self.nu > 1.0

    def _scaled_distances(self, distances: Floats) -> Floats:
        """Return sqrt(2 nu) r, or where that is longer what has the value 0 as well.

        In double for Bessel functions, whose logarithms are large, and cancel.
        """
        precise = distances if self.nu in (0.5, 1.5, 2.5) else np.asarray(distances, dtype=float)
        return np.minimum(math.sqrt(2.0 * self.nu) * precise, _FARTHEST)

    def profile(self, distances: Floats) -> Floats:
        nu, a = self.nu, self._scaled_distances(distances)
        if nu in (0.5, 1.5, 2.5):
            polynomial = {0.5: 1.0, 1.5: 1.0 + a, 2.5: 1.0 + a + a**2 / 3.0}[nu]
            return polynomial * np.exp(-a)
        # Equal rows have the value 1, and no logarithm of their distance.
        apart = np.where(a > 0, a, 1.0)
        constant = (1.0 - nu) * math.log(2.0) - math.lgamma(nu)
        logarithm = constant + nu * np.log(apart) + _log_bessel_k(nu, apart)
        return np.where(a > 0, np.exp(np.minimum(logarithm, 0.0)), 1.0)

    def slope(self, distances: Floats) -> Floats:
        """Return -2 nu 2^(1-nu) / Gamma(nu) a^(nu-1) K_(nu-1)(a), of a = sqrt(2 nu) r."""
        nu, a = self.nu, self._scaled_distances(distances)
        if nu in (1.5, 2.5):
            return np.exp(-a) * (-3.0 if nu == 1.5 else -5.0 / 3.0 * (1.0 + a))
        apart = np.where(a > 0, a, 1.0)
        if nu == 0.5:
            return np.where(a > 0, -np.exp(-a) / apart, 0.0)
        constant = math.log(2.0 * nu) + (1.0 - nu) * math.log(2.0) - math.lgamma(nu)
        logarithm = constant + (nu - 1.0) * np.log(apart) + _log_bessel_k(abs(nu - 1.0), apart)
        return np.where(a > 0, -np.exp(logarithm), -nu / (nu - 1.0) if nu > 1.0 else 0.0)

    def stretch(self, uniform: Floats) -> Floats:
        """Return sqrt(2 nu / chi2), chi2 being the quantile of `uniform`."""
        from scipy.special import gammaincinv  # noqa: PLC0415  imported where it is needed

        return np.sqrt(self.nu / np.maximum(gammaincinv(self.nu, uniform), self.nu / _LONGEST**2))

    def unit_log_density(self, frequencies: Floats) -> Floats:
        p, nu = frequencies.shape[1], self.nu
        constant = math.lgamma(nu + p / 2) - math.lgamma(nu) - p / 2 * math.log(2 * math.pi * nu)
        return constant - (nu + p / 2) * np.log1p((frequencies**2).sum(axis=1) / (2 * nu))


class GammaMixture(RadialKernel):
    """(1 + r^2 / (2 a l^2))^-a: Gaussians whose inverse squared widths follow a Gamma law."""

    shape: float

    def profile(self, distances: Floats) -> Floats:
        return self.profile_of_squares(distances**2)

    def profile_of_squares(self, squares: Floats) -> Floats:
        return np.exp(-self.shape * np.log1p(squares / (2.0 * self.shape)))

    def slope(self, distances: Floats) -> Floats:
        return -np.exp(-(self.shape + 1.0) * np.log1p(distances**2 / (2.0 * self.shape)))

    def stretch(self, uniform: Floats) -> Floats:
        """Return the root of a Gamma number of shape and rate a, of upper quantile `uniform`."""
        from scipy.special import gammainccinv  # noqa: PLC0415  imported where it is needed

        return np.sqrt(gammainccinv(self.shape, uniform) / self.shape)

    def unit_log_density(self, frequencies: Floats) -> Floats:
        """Return that of normal numbers of Gamma variance; infinite at 0 for a <= p / 2."""
        p, a = frequencies.shape[1], self.shape
        order = a - p / 2
        length = np.sqrt((frequencies**2).sum(axis=1))
        z = np.maximum(math.sqrt(2.0 * a) * length, 1e-150)
        constant = a * math.log(a) - math.lgamma(a) - p / 2 * math.log(2 * math.pi) + math.log(2.0)
        values = constant + order * np.log(z / (2.0 * a)) + _log_bessel_k(order, z)
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

    References
    ----------
    Rasmussen and Williams (2006), "Gaussian processes for machine learning", section 4.2.
    """

    shape: float = 1.0
    family = "rational-quadratic"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "shape", _checked_smoothness("shape", self.shape))


@dataclass(frozen=True)
class InverseMultiquadric(GammaMixture):
    """The inverse multiquadric kernel (1 + |x - x'|^2 / l^2)^(-1/2).

    It is the rational quadratic kernel of shape 1/2.

    Hardy (1971), "Multiquadric equations of topography and other irregular surfaces".
    """

    family = "inverse-multiquadric"
    shape = 0.5


def _log_bessel_k(order: float, x: Floats) -> Floats:
    """Return log K_v(x) for x > 0 and |v| up to about 100, beyond the range of K itself.

    NIST Digital Library of Mathematical Functions, 10.31.1 and 10.40.2.
    """
    from scipy.special import kve  # noqa: PLC0415  imported where it is needed

    v = abs(order)
    scaled = kve(v, np.minimum(x, _LARGE))
    is_known = np.isfinite(scaled) & (scaled > 0)
    values = np.log(np.where(is_known, scaled, 1.0)) - x
    if is_known.all():
        return values
    # For small x and v > 0: Gamma(v) / 2 (2 / x)^v sum_k Gamma(v - k) / Gamma(v) (-x^2 / 4)^k / k!
    small = x[~is_known]
    series, term = np.ones_like(small), np.ones_like(small)
    for k in range(1, min(math.ceil(v), 6)):
        term = term * -(small**2) / (4.0 * k * (v - k))
        series += term
    values[~is_known] = math.lgamma(v) - math.log(2.0) + v * np.log(2.0 / small) + np.log(series)
    return values


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
