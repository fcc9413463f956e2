"""Shift-invariant kernels: functions of x - x' over a length scale, with k(x, x) = 1."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from streamkern._typing import Array, Floats
from streamkern.errors import DataError, ParameterError
from streamkern.kernels.base import Kernel, checked_rows

LengthScale = float | tuple[float, ...] | str

_ROWS_AT_ONCE = 1024
# Rows whose pairs the median is taken over: half a million pairs.
MEDIAN_ROWS = 1024
# Squares of numbers in between, and their products of a few, are numbers still.
_SMALLEST, _LARGEST = 1e-100, 1e100


def checked_numbers(name: str, value: Any, *, or_median: bool = False) -> float | tuple[float, ...]:
    try:
        numbers = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        numbers = np.array(math.nan)
    if numbers.ndim > 1 or numbers.size == 0 or not (np.isfinite(numbers) & (numbers > 0)).all():
        choices = "'median', a positive number" if or_median else "a positive number"
        raise ParameterError(
            f"{name} must be positive and finite, not {value!r}; give {choices} or one positive "
            f"number per input."
        )
    if not ((numbers >= _SMALLEST) & (numbers <= _LARGEST)).all():
        raise ParameterError(
            f"{name} must be from {_SMALLEST} to {_LARGEST}, not {value!r}; rescale the inputs."
        )
    return float(numbers) if numbers.ndim == 0 else tuple(numbers.tolist())


def spread(name: str, value: float | tuple[float, ...], n_features: int) -> Floats:
    """Return one number per input, (p,), or raise ParameterError if there are others."""
    numbers = np.asarray(value, dtype=float)
    if numbers.ndim and len(numbers) != n_features:
        raise ParameterError(
            f"{name} must be one number or one per input, {n_features} here, not "
            f"{len(numbers)}; give {n_features} or a single one."
        )
    return np.broadcast_to(numbers, (n_features,))


@dataclass(frozen=True)
class ShiftInvariantKernel(Kernel):
    """A kernel of the scaled differences (x - x') / length_scale, with k(x, x) = 1.

    Parameters
    ----------
    length_scale : float, sequence of float, or 'median'
        In the units of the (standardised) inputs, from 1e-100 to 1e100: one for all, or one per
        input.  'median' is the median of `distance` over pairs of training rows, resolved when a
        model is fitted; the kernel is evaluated with numbers.
    """

    length_scale: LengthScale = "median"

    def __post_init__(self) -> None:
        scale = self.length_scale
        if not isinstance(scale, str):
            vars(self)["length_scale"] = checked_numbers("length_scale", scale, or_median=True)
        elif scale != "median":
            raise ParameterError(
                f"length_scale must be 'median', a positive number or one positive number per "
                f"input, not {scale!r}; give one of these."
            )

    @abstractmethod
    def distance(self, X: Floats, Z: Floats) -> Floats:
        """Return distances of rows, whose median is a length scale that suits them."""

    @abstractmethod
    def values(self, X: Floats, Z: Floats) -> Floats:
        """Return the kernel of rows that are divided by the length scale."""

    @abstractmethod
    def spectral(self, normal: Floats, uniform: Floats) -> Floats:
        """Return draws of the spectral distribution, made of normal and of uniform numbers."""

    @abstractmethod
    def unit_log_density(self, frequencies: Floats) -> Floats:
        """Return the logarithm of the spectral density at length scale 1."""

    def density(self, frequencies: Floats) -> Floats:
        """Return the spectral density at frequencies, or refuse where there is none.

        It is infinite at 0 for kernels that fall off slowly.
        """
        scales = self.scales(frequencies.shape[1])
        return np.exp(self.unit_log_density(frequencies * scales) + np.log(scales).sum())

    def __call__(self, X: ArrayLike, Z: ArrayLike) -> Floats:
        left, right = self.scaled(X), self.scaled(Z)
        if left.shape[1] != right.shape[1]:
            raise ParameterError(
                f"the two sets of rows must have the same number of columns, not "
                f"{left.shape[1]} and {right.shape[1]}; pass rows of the same inputs."
            )
        values = np.empty((len(left), len(right)))
        with np.errstate(over="ignore"):  # what is infinitely far away has the value 0
            for start in range(0, len(left), _ROWS_AT_ONCE):
                rows = slice(start, start + _ROWS_AT_ONCE)
                values[rows] = self.values(left[rows], right)
        return values

    def scaled(self, X: ArrayLike) -> Floats:
        """Return the rows divided by the length scale, float64 (n, p).

        Parameters
        ----------
        X : array_like of shape (n, p)
        """
        if isinstance(self.length_scale, str):
            raise ParameterError(
                "the length scale 'median' is known only once a model is fitted; give a number "
                "to evaluate the kernel."
            )
        rows = checked_rows(X)
        try:
            with np.errstate(over="raise"):
                return rows / self.scales(rows.shape[1])
        except FloatingPointError as error:
            raise ParameterError(
                f"rows up to {np.abs(rows).max():.3g} long have no number for how many length "
                f"scales that is; rescale them."
            ) from error

    def scales(self, n_features: int) -> Floats:
        """Return one length scale per input."""
        if isinstance(self.length_scale, str):
            raise ParameterError(
                "the length scale 'median' must be resolved before it is used; give a number."
            )
        return spread("length_scale", self.length_scale, n_features)

    def check_inputs(self, n_features: int) -> None:
        """Raise ParameterError unless the kernel is one of rows of that many inputs."""
        if not isinstance(self.length_scale, str):
            self.scales(n_features)

    def with_length_scale(self, length_scale: LengthScale) -> Self:
        """Return this kernel with another length scale."""
        return replace(self, length_scale=length_scale)

    def resolved(
        self, rows: Floats, columns: Array | None = None, weights: Floats | None = None
    ) -> Self:
        """Return this kernel with a number for the length scale 'median', that of some rows."""
        if self.length_scale != "median":
            return self
        kernel = self if columns is None else self.restricted(columns)
        return self.with_length_scale(median_distance(kernel, rows, weights))

    def stretched(self, factor: float) -> Self:
        """Return this kernel with its length scales, which are numbers, times a factor."""
        scale = np.asarray(self.length_scale, dtype=float) * factor
        return self.with_length_scale(scale.item() if scale.ndim == 0 else tuple(scale.tolist()))

    def restricted(self, columns: Array | Sequence[int]) -> Self:
        """Return this kernel for rows of which only some inputs are kept, in their order."""
        several = {
            name: tuple(np.asarray(value)[columns].tolist())
            for name, value in vars(self).items()
            if isinstance(value, tuple)
        }
        return replace(self, **several) if several else self


class DistanceKernel(ShiftInvariantKernel):
    @abstractmethod
    def profile(self, distances: Floats) -> Floats:
        """Return the kernel's values at distances of scaled rows."""

    def values(self, X: Floats, Z: Floats) -> Floats:
        return self.profile(self.distance(X, Z))


def distances(X: Floats, Z: Floats, metric: str) -> Floats:
    """Return the distances (n, m) of rows in one of SciPy's metrics."""
    # Not by |x|^2 - 2 x z + |z|^2, which leaves equal rows a distance of their rounding.
    from scipy.spatial.distance import cdist  # noqa: PLC0415  imported where it is needed

    return cdist(X, Z, metric=metric)


def median_distance(
    kernel: ShiftInvariantKernel, rows: Floats, weights: Floats | None = None
) -> float:
    """Return the median distance between pairs of different rows, in the kernel's own metric.

    Of standardised rows that are spread over the data the first 1,024 are used, each as often as
    its weight says.  Garreau, Jitkrittum and Kanagawa (2017), "Large sample analysis of the median
    heuristic".
    """
    rows = rows[:MEDIAN_ROWS]
    left, right = np.triu_indices(len(rows), 1)
    pairs = kernel.distance(rows, rows)[left, right]
    # Rows that are equal, as in tables with many repeats, say nothing about scale.
    differ = pairs > 0
    positive = pairs[differ]
    if not len(positive):
        raise DataError(
            "the median length scale needs two different rows, but all sampled rows are equal; "
            "give a number (--length-scale)."
        )
    if weights is None:
        return float(np.median(positive))
    return _weighted_median(positive, weights[left[differ]] * weights[right[differ]])


def _weighted_median(values: Floats, weights: Floats) -> float:
    """Return the median of values that each count as often as their weight says."""
    order = np.argsort(values)
    values, reached = values[order], np.cumsum(weights[order])
    half = reached[-1] / 2.0
    # The middle lies between two values where the first ones have just half of the weight.
    low, high = np.searchsorted(reached, half), np.searchsorted(reached, half, side="right")
    return float(values[low] + values[min(high, len(values) - 1)]) / 2.0


def length_scale_of(kernel: Kernel) -> Any:
    scale = kernel.length_scale if isinstance(kernel, ShiftInvariantKernel) else None
    return list(scale) if isinstance(scale, tuple) else scale
