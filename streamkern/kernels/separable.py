"""Separable kernels: products over inputs."""

import math
from dataclasses import dataclass

import numpy as np

from streamkern._typing import Floats
from streamkern.errors import ParameterError
from streamkern.kernels.shift_invariant import (
    ShiftInvariantKernel,
    checked_numbers,
    distances,
    spread,
)

# Beyond this concentration the frequencies of a periodic kernel are rounded normal numbers, to a
# relative 1e-7 of their probabilities.
_CONCENTRATED = 1e6


@dataclass(frozen=True)
class Cauchy(ShiftInvariantKernel):
    """The Cauchy kernel prod_j 1 / (1 + (x_j - x'_j)^2 / l_j^2).

    Its frequencies are independent Laplace(0, 1 / l_j).
    """

    family = "cauchy"
    along_axes = True

    def distance(self, X: Floats, Z: Floats) -> Floats:
        """Return Euclidean distances: near rows have about exp(-r^2)."""
        return distances(X, Z, "euclidean")

    def values(self, X: Floats, Z: Floats) -> Floats:
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
        return -(np.abs(frequencies) + math.log(2.0)).sum(axis=1)


@dataclass(frozen=True)
class Periodic(ShiftInvariantKernel):
    """The periodic kernel exp(-2 sum_j sin^2(pi (x_j - x'_j) / P_j) / l_j^2).

    It is the Gaussian kernel of inputs that are wound about circles of circumference P_j, with a
    radius of 1 whatever the period: a length scale has no unit here, and one of more than 2, the
    diameter, makes functions that hardly turn.  The frequencies are 2 pi J / P_j with whole numbers
    J, of probability exp(-1 / l_j^2) I_|J|(1 / l_j^2).

    Parameters
    ----------
    length_scale : float, sequence of float, or 'median'
    period : float or sequence of float
        In the units of the (standardised) inputs: one for all, or one per input.  A period in an
        input's own units is to be divided by that input's standard deviation, unless inputs are not
        standardised.

    References
    ----------
    MacKay (1998), "Introduction to Gaussian processes", for the kernel; Abramowitz and Stegun
    (1964), "Handbook of mathematical functions", 9.6.34, for the frequencies.
    """

    period: float | tuple[float, ...] = 1.0
    family = "periodic"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "period", checked_numbers("period", self.period))

    def check_inputs(self, n_features: int) -> None:
        super().check_inputs(n_features)
        spread("period", self.period, n_features)

    def distance(self, X: Floats, Z: Floats) -> Floats:
        return distances(self._wound(X), self._wound(Z), "euclidean")

    def values(self, X: Floats, Z: Floats) -> Floats:
        scales = self.scales(X.shape[1])
        radii = np.concatenate([scales, scales])
        r = distances(self._wound(X * scales) / radii, self._wound(Z * scales) / radii, "euclidean")
        return np.exp(-0.5 * r**2)

    def _wound(self, rows: Floats) -> Floats:
        angles = rows * (2.0 * math.pi / spread("period", self.period, rows.shape[1]))
        return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)

    def spectral(self, normal: Floats, uniform: Floats) -> Floats:  # noqa: ARG002
        """Return each normal number carried to the multiple of 2 pi / P of the same quantile."""
        p = normal.shape[1]
        scales = self.scales(p)
        harmonics = np.empty_like(normal)
        for scale in set(scales.tolist()):
            columns = scales == scale
            harmonics[:, columns] = _harmonics(normal[:, columns], scale**-2)
        return harmonics * (2.0 * math.pi / spread("period", self.period, p))

    def unit_log_density(self, frequencies: Floats) -> Floats:  # noqa: ARG002
        raise ParameterError(
            f"the frequencies of the kernel {self.name} are multiples of 2 pi / period and have no "
            f"density; take a map that draws frequencies."
        )


def _harmonics(normal: Floats, concentration: float) -> Floats:
    """Return whole numbers J, P(J = j) = exp(-c) I_|j|(c), of the quantiles of normal ones."""
    from scipy.special import ive, ndtr  # noqa: PLC0415  imported where it is needed

    root = math.sqrt(concentration)
    if concentration > _CONCENTRATED:
        return np.rint(root * normal)
    # The variance of J is c, so the last probabilities are below the smallest quantile.
    probabilities = ive(np.arange(int(40 + 12 * root)), concentration)
    upper = np.cumsum(probabilities[::-1])[::-1]  # P(J >= j)
    size = np.searchsorted(-upper[1:], -ndtr(-np.abs(normal)), side="right")
    return np.copysign(size, normal)
