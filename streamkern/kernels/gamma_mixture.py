"""Gamma mixtures of Gaussians: rational quadratic and inverse multiquadric kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streamkern.kernels.bessel import log_bessel_k
from streamkern.kernels.radial import RadialKernel, checked_smoothness

if TYPE_CHECKING:
    from streamkern._typing import Floats


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
    family = "rational-quadratic"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "shape", checked_smoothness("shape", self.shape))


@dataclass(frozen=True)
class InverseMultiquadric(GammaMixture):
    """The inverse multiquadric kernel (1 + |x - x'|^2 / l^2)^(-1/2).

    It is the rational quadratic kernel of shape 1/2.

    References
    ----------
    Hardy (1971), "Multiquadric equations of topography and other irregular surfaces".
    """

    family = "inverse-multiquadric"
    shape = 0.5
