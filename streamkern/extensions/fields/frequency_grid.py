"""Quadrature of the spectral integral on an equispaced grid of frequencies, for few inputs."""

import math
from collections.abc import Callable
from typing import ClassVar, Self

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import ParameterError
from streamkern.extensions.fields.lattice import Lattice
from streamkern.features.projection import Frequencies
from streamkern.features.spectral import SpectralFeatures
from streamkern.kernels import ShiftInvariantKernel

_MOST_INPUTS = 3
# Errors that may be balanced: there is no better one in double, and no use in a worse one.  Weight
# that is missing counts at every row, what comes back only near the ends, where it may be larger.
_ERRORS, _AT_ENDS = (1e-12, 0.9), 30.0
_HALVINGS = 16
# The farthest that waves may repeat, in ranges of an input, where the kernel hardly falls off.
_FARTHEST = 100.0
# Points of the box that a grid is chosen from, for every one that is chosen.
_MOST_POINTS = 64


class GridFourierFeatures(SpectralFeatures):
    """Pairs of waves on an equispaced grid of frequencies, for one to three inputs.

    The kernel is the integral of density(w) cos(w^T (x - x')), here a sum over the D / 2
    frequencies of largest density on a grid whose cells have the sides h_j.  Features are
    sqrt(2 h_1 ... h_p density(w)) times (cos w^T x, sin w^T x): the points are half a cell off
    zero, so each stands for its opposite too, and none has a sine that is zero.  Nothing is random.

    Cells follow from the range of the rows: the covariance that comes back at the ends of the
    range, since the sum repeats with the period 2 pi / h_j, is made 30 times the weight that is
    missing beyond the grid.  Rows far beyond the range are predicted from the other end of it.

    Parameters
    ----------
    kernel : ShiftInvariantKernel
        With a spectral density.
    n_components : int
        D; of an odd D the last frequency has a cosine alone.  Nested: the first features are the
        frequencies of largest density, which is the same grid with a smaller extent.

    References
    ----------
    Mutny and Krause (2018), "Efficient high dimensional Bayesian optimization with additivity and
    quadrature Fourier features"; Greengard, Rachh and Barnett (2022), "Equispaced Fourier
    representations for efficient Gaussian process regression from a billion data points".
    """

    name = "grid"
    is_field = True
    families: ClassVar = {"grid": ("a grid of frequencies, for one to three inputs", {})}

    def __init__(self, kernel: ShiftInvariantKernel, n_components: int = 2048) -> None:
        super().__init__(kernel, n_components, paired=True)
        self.scale = 1.0

    def check_inputs(self, n_features: int) -> None:
        if not 1 <= n_features <= _MOST_INPUTS:
            raise ParameterError(
                f"a grid of frequencies is for 1 to {_MOST_INPUTS} inputs, not {n_features}, since "
                f"its points grow as a power of their number; take the orthogonal map."
            )
        self.kernel.check_inputs(n_features)
        # At any length scale, as that of two rows that differ everywhere.
        corners = np.stack([np.zeros(n_features), np.ones(n_features)])
        self.kernel.resolved(corners).density(corners[1:])

    def draw(self, n_features: int, rows: Array | None = None) -> Self:
        """Lay the grid for rows with the range of these."""
        self.check_inputs(n_features)
        if rows is None or not len(rows):
            raise ParameterError(
                "a grid of frequencies follows from the range of the rows, but there are none; "
                "draw it with some."
            )
        frequencies, weights = balanced_grid(self.kernel, self.n_draws, np.ptp(rows, axis=0))
        return self._drawn(Frequencies(frequencies), np.zeros(self.n_draws), np.sqrt(2.0 * weights))

    @property
    def lattice(self) -> Lattice | None:
        frequencies, amplitudes = self.frequencies, self.amplitudes
        cell = 2.0 * np.abs(frequencies).min(axis=0)  # those next to zero mostly weigh most
        if amplitudes is None or not (cell > 0).all():
            raise ParameterError("a grid without amplitudes, or with zero in it; draw another.")
        found = Lattice(np.rint(frequencies / cell - 0.5).astype(int), cell, amplitudes)
        return found if np.allclose((found.indices + 0.5) * cell, frequencies) else None

    @property
    def left_out(self) -> float:  # type: ignore[override]
        lattice = self.lattice
        return (
            0.0 if lattice is None else max(1.0 - float(np.square(lattice.amplitudes).sum()), 0.0)
        )


def balanced_grid(
    kernel: ShiftInvariantKernel, n_points: int, ranges: Floats
) -> tuple[Floats, Floats]:
    """Return frequencies (L, p), on one side of zero, and weights (L,) of equal errors on a box."""

    def grid(error: float) -> tuple[Floats, Floats]:
        return _weighted_grid(kernel, n_points, 2.0 * math.pi / _periods(kernel, ranges, error))

    def missing_more_than(error: float) -> bool:
        return 1.0 - 2.0 * float(grid(error)[1].sum()) > error

    return grid(_bisected(missing_more_than, *_ERRORS))


def _bisected(below: Callable[[float], bool], low: float, high: float) -> float:
    """Return the number, on a scale of ratios, up to which it is below."""
    if not below(low):
        return low
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if below(middle) else (low, middle)
    return high


def _periods(kernel: ShiftInvariantKernel, ranges: Floats, error: float) -> Floats:
    """Return the periods (p,) with which rows at the ends have so many times this covariance.

    Beside a range that is short they are longer, for a row to have little more with itself.
    """
    p = len(ranges)

    def distance(j: int, covariance: float) -> float:
        """Return how far along an input rows have this covariance, or a bound of that."""
        zero, apart = np.zeros((2, 1, p))

        def above(distance: float) -> bool:
            apart[0, j] = distance
            return bool(kernel(apart, zero)[0, 0] > covariance)

        farthest = _FARTHEST * (ranges[j] if ranges[j] > 0 else 1.0)
        return _bisected(above, 1e-9 * farthest, farthest)

    ends, beside = min(_AT_ENDS * error, _ERRORS[1]) / p, error / (4 * p)
    return np.array([max(ranges[j] + distance(j, ends), distance(j, beside)) for j in range(p)])


def _weighted_grid(
    kernel: ShiftInvariantKernel, n_points: int, cell: Floats
) -> tuple[Floats, Floats]:
    """Return the points (L, p) of largest density in half of a grid, and their weights (L,)."""
    p = len(cell)
    # Points on both sides of zero along an input, but for the first, where one side is enough.
    sides = np.ones(p, dtype=int)
    while True:
        places = [np.arange(0 if j == 0 else -sides[j], sides[j]) for j in range(p)]
        indices = np.stack(np.meshgrid(*places, indexing="ij"), axis=-1).reshape(-1, p)
        if len(indices) < n_points:
            sides *= 2
            continue
        frequencies = (indices + 0.5) * cell
        weights = kernel.density(frequencies) * cell.prod()
        # Of those that are equal, as many are 0 by underflow, the nearest: they fill a ball.
        nearest = np.square(indices + 0.5).sum(axis=1)
        chosen = np.lexsort((nearest, -weights))[:n_points]
        ends = np.abs(indices[chosen] + 0.5).max(axis=0) > sides - 1
        if not ends.any() or len(indices) > _MOST_POINTS * n_points:
            return frequencies[chosen], weights[chosen]
        sides[ends] *= 2
