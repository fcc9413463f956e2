"""Quasi-Monte Carlo features: frequencies at Sobol points."""

import math
from typing import ClassVar, Self

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import ParameterError
from streamkern.features.base import stream
from streamkern.features.projection import Frequencies
from streamkern.features.spectral import SpectralFeatures

# Dimensions that SciPy has direction numbers for.
_MOST_DIMENSIONS = 21201
# Points are this far from 0 and 1, where quantiles are infinite.
_MARGIN = 2.0**-32


class QuasiRandomFourierFeatures(SpectralFeatures):
    """Fourier features at the points of a scrambled Sobol sequence.

    Coordinates of the points become normal numbers by their quantile function, and those
    frequencies; numbers that a kernel mixes by, and the phase, are coordinates of their own.
    Every point alone is uniform, so there is no bias, and points together are more even than random
    ones: the error is lower in few dimensions, most at powers of 2.

    Parameters
    ----------
    kernel : ShiftInvariantKernel
    n_components : int
        D; of an odd D the last frequency has a cosine alone, at a random phase.
    paired : bool
        As in `RandomFourierFeatures`.
    random_state : int
        Seed of the scrambling.  Nested: fewer points are the first of more.

    References
    ----------
    Avron, Sindhwani, Yang and Mahoney (2016), "Quasi-Monte Carlo feature maps for shift-invariant
    kernels"; Owen (1998), "Scrambling Sobol' and Niederreiter-Xing points".
    """

    name = "qmc"
    families: ClassVar = {"qmc": ("frequencies at Sobol points, for few inputs", {})}

    def _n_dimensions(self, n_features: int) -> int:
        return n_features + 2

    def check_inputs(self, n_features: int) -> None:
        self.kernel.check_inputs(n_features)
        n_dimensions = self._n_dimensions(n_features)
        if n_features < 1 or n_dimensions > _MOST_DIMENSIONS:
            raise ParameterError(
                f"quasi-random points of up to {_MOST_DIMENSIONS:,} numbers are known, but this "
                f"kernel of {n_features:,} inputs takes {n_dimensions:,}; take the orthogonal map."
            )

    def draw(self, n_features: int, rows: Array | None = None) -> Self:  # noqa: ARG002  rows do not matter
        from scipy.special import ndtri  # noqa: PLC0415  imported where it is needed

        self.check_inputs(n_features)
        n_normals = n_features
        n_dimensions = self._n_dimensions(n_features)
        points = quasi_random_points(self.n_draws, n_dimensions, self.random_state)
        normal, uniform = ndtri(points[:, :n_normals]), points[:, n_normals:-1]
        frequencies = Frequencies(self.kernel.spectral(normal, uniform))
        return self._drawn(frequencies, 2.0 * math.pi * points[:, -1])


def quasi_random_points(n_points: int, n_dimensions: int, seed: int) -> Floats:
    """Return points (n, d) inside the unit cube; fewer points are the first of more."""
    from scipy.stats import qmc  # noqa: PLC0415  slow to import

    sobol = qmc.Sobol(n_dimensions, scramble=True, seed=stream(seed, 0))
    points = sobol.random_base2((n_points - 1).bit_length())[:n_points]
    return np.clip(points, _MARGIN, 1.0 - _MARGIN)
