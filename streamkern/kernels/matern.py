"""Matern kernels, of any smoothness."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from streamkern.kernels.bessel import log_bessel_k
from streamkern.kernels.radial import RadialKernel, checked_smoothness

if TYPE_CHECKING:
    from streamkern._typing import Floats

# Longer frequencies are as good as random, and have no place in single precision.
_LONGEST = 1e18
# exp(-a) is 0 at this a and beyond, where a^2 or infinity times that would be no number.
_FARTHEST = 1e4


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
    family = "matern"
    spellings: ClassVar = {f"matern{2 * nu:.0f}2": {"nu": nu} for nu in (0.5, 1.5, 2.5)}

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "nu", checked_smoothness("nu", self.nu))

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
