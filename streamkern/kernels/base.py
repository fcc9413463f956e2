"""What every kernel offers, and what those of differences have in common."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streamkern.errors import ParameterError
from streamkern.kernels.median import median_distance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from streamkern._typing import Array, Floats

LengthScale = float | tuple[float, ...] | str

_ROWS_AT_ONCE = 1024


def _checked_length_scale(value: Any) -> LengthScale:
    if isinstance(value, str):
        if value != "median":
            raise ParameterError(
                f"length_scale must be 'median', a positive number or one positive number per "
                f"input, not {value!r}; give one of these."
            )
        return value
    try:
        numbers = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        numbers = np.array(math.nan)
    if numbers.ndim > 1 or numbers.size == 0 or not (np.isfinite(numbers) & (numbers > 0)).all():
        raise ParameterError(
            f"length_scale must be positive and finite, not {value!r}; give 'median', a positive "
            f"number or one positive number per input."
        )
    return float(numbers) if numbers.ndim == 0 else tuple(numbers.tolist())


@dataclass(frozen=True)
class Kernel(ABC):
    """A positive definite function of two rows.

    Attributes
    ----------
    name : str
        As the command line and model files call it.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the kernel."""

    @abstractmethod
    def __call__(self, X: ArrayLike, Z: ArrayLike) -> Floats:
        """Evaluate the kernel on every pair of rows.

        Parameters
        ----------
        X : array_like of shape (n, p)
        Z : array_like of shape (m, p)

        Returns
        -------
        ndarray of shape (n, m), float64
        """

    def parameters(self) -> dict[str, Any]:
        """Return the parameters as plain JSON values."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


@dataclass(frozen=True)
class ShiftInvariantKernel(Kernel):
    """A kernel of the scaled differences (x - x') / length_scale, with k(x, x) = 1.

    Parameters
    ----------
    length_scale : float, sequence of float, or 'median'
        In the units of the (standardised) inputs: one for all, or one per input.  'median' is the
        median of `distance` over pairs of training rows, resolved when a model is fitted.

    Raises
    ------
    ParameterError
        If a length scale is not positive and finite.
    """

    length_scale: LengthScale = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "length_scale", _checked_length_scale(self.length_scale))

    @abstractmethod
    def distance(self, X: Floats, Z: Floats) -> Floats:
        """Return the distances (n, m) of scaled rows that `profile` is a function of."""

    @abstractmethod
    def profile(self, distances: Floats) -> Floats:
        """Return the kernel's values at distances of scaled rows."""

    @abstractmethod
    def spectral(self, normal: Floats, uniform: Floats) -> Floats:
        """Turn standard normal rows into frequencies.

        Parameters
        ----------
        normal : ndarray of shape (L, p)
            Rows whose marginal distribution is standard normal.
        uniform : ndarray of shape (L,)
            Numbers in (0, 1), independent of `normal`, for kernels that mix over scales.

        Returns
        -------
        ndarray of shape (L, p)
            Draws from the spectral distribution, in units of 1 / length_scale of the inputs.
        """

    @abstractmethod
    def unit_log_density(self, frequencies: Floats) -> Floats:
        """Return the logarithm (L,) of the spectral density at length scale 1, at (L, p)."""

    def density(self, frequencies: Floats) -> Floats:
        """Return the density of the spectral distribution, which `spectral` draws from.

        k(x, x') is the integral of density(w) cos(w^T (x - x')) over w.

        Parameters
        ----------
        frequencies : ndarray of shape (L, p)
            In units of 1 / length_scale of the inputs.

        Returns
        -------
        ndarray of shape (L,)
            Infinite at 0 for kernels that fall off slowly.

        Raises
        ------
        ParameterError
            If the distribution has no density.
        """
        scales = self.scales(frequencies.shape[1])
        values: Floats = np.exp(self.unit_log_density(frequencies * scales) + np.log(scales).sum())
        return values

    def __call__(self, X: ArrayLike, Z: ArrayLike) -> Floats:
        """Evaluate the kernel on every pair of rows; see `Kernel`."""
        left, right = self.scaled(X), self.scaled(Z)
        if left.shape[1] != right.shape[1]:
            raise ParameterError(
                f"the two sets of rows must have the same number of columns, not "
                f"{left.shape[1]} and {right.shape[1]}; pass rows of the same inputs."
            )
        values = np.empty((len(left), len(right)))
        for start in range(0, len(left), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            values[rows] = self.profile(self.distance(left[rows], right))
        return values

    def scaled(self, X: ArrayLike) -> Floats:
        """Return the rows divided by the length scale, float64 (n, p)."""
        if isinstance(self.length_scale, str):
            raise ParameterError(
                "the length scale 'median' is known only once a model is fitted; give a number "
                "to evaluate the kernel."
            )
        rows = np.asarray(X, dtype=float)
        if rows.ndim != 2:
            raise ParameterError(
                f"rows must be a 2-D array (n, p), not of {rows.ndim} dimensions; reshape them."
            )
        return rows / self.scales(rows.shape[1])

    def scales(self, n_features: int) -> Floats:
        """Return one length scale per input, (p,)."""
        if isinstance(self.length_scale, str):
            raise ParameterError("the length scale 'median' must be resolved before it is used.")
        scales = np.asarray(self.length_scale, dtype=float)
        if scales.ndim and len(scales) != n_features:
            raise ParameterError(
                f"length_scale must be one number or one per input, {n_features} here, not "
                f"{len(scales)}; give {n_features} or a single one."
            )
        return np.broadcast_to(scales, (n_features,))

    def with_length_scale(self, length_scale: LengthScale) -> Self:
        """Return this kernel with another length scale."""
        return replace(self, length_scale=length_scale)

    def resolved(self, rows: Floats) -> Self:
        """Return this kernel with a number for the length scale 'median', that of some rows."""
        if self.length_scale != "median":
            return self
        return self.with_length_scale(median_distance(self, rows))

    def stretched(self, factor: float) -> Self:
        """Return this kernel with all length scales, which are numbers, times a factor."""
        scale = np.asarray(self.length_scale, dtype=float) * factor
        return self.with_length_scale(scale.item() if scale.ndim == 0 else tuple(scale.tolist()))

    def restricted(self, columns: Array | Sequence[int]) -> Self:
        """Return this kernel for rows of which only some columns are kept, in their order."""
        scale = self.length_scale
        if not isinstance(scale, tuple):
            return self
        return self.with_length_scale(tuple(np.asarray(scale)[columns].tolist()))


def distances(X: Floats, Z: Floats, metric: str) -> Floats:
    """Return the distances (n, m) of rows in one of SciPy's metrics."""
    # Not by |x|^2 - 2 x z + |z|^2, which leaves equal rows a distance of their rounding.
    from scipy.spatial.distance import cdist  # noqa: PLC0415  imported where it is needed

    distances: Floats = cdist(X, Z, metric=metric)
    return distances
