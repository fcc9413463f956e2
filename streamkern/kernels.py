"""Kernels: exact evaluation on two sets of rows, and their spectral distributions.

A shift-invariant kernel with k(x, x) = 1 is the characteristic function of a distribution of
frequencies w: k(x, x') = E cos(w^T (x - x')).  Each kernel here turns standard normal rows into
draws of that distribution, so that a feature map decides how the normal rows are made
(independent, orthogonal, quasi-random) and the kernel decides what becomes of them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streamkern.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from streamkern._typing import Floats

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


def _distances(X: Floats, Z: Floats, metric: str) -> Floats:
    # Not by |x|^2 - 2 x z + |z|^2, which leaves equal rows a distance of their rounding.
    from scipy.spatial.distance import cdist  # noqa: PLC0415  imported where it is needed

    distances: Floats = cdist(X, Z, metric=metric)
    return distances


@dataclass(frozen=True)
class Gaussian(ShiftInvariantKernel):
    """The Gaussian kernel exp(-|x - x'|^2 / (2 l^2)); frequencies are N(0, I / l^2).

    exp(-gamma |x - x'|^2) is the same kernel at l = 1 / sqrt(2 gamma).

    References
    ----------
    Rahimi and Recht (2007), "Random features for large-scale kernel machines".
    """

    name = "gaussian"

    def distance(self, X: Floats, Z: Floats) -> Floats:
        """Return Euclidean distances (n, m)."""
        return _distances(X, Z, "euclidean")

    def profile(self, distances: Floats) -> Floats:
        """Return exp(-r^2 / 2)."""
        values: Floats = np.exp(-0.5 * distances**2)
        return values

    def spectral(self, normal: Floats, uniform: Floats) -> Floats:  # noqa: ARG002
        """Return the normal rows themselves, over the length scale."""
        frequencies: Floats = normal / self.scales(normal.shape[1])
        return frequencies


@dataclass(frozen=True)
class Matern(ShiftInvariantKernel):
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

    def distance(self, X: Floats, Z: Floats) -> Floats:
        """Return Euclidean distances (n, m)."""
        return _distances(X, Z, "euclidean")

    def profile(self, distances: Floats) -> Floats:
        """Return the polynomial of sqrt(2 nu) r times exp(-sqrt(2 nu) r)."""
        a = math.sqrt(2.0 * self.nu) * distances
        polynomial = {0.5: 1.0, 1.5: 1.0 + a, 2.5: 1.0 + a + a**2 / 3.0}[self.nu]
        values: Floats = polynomial * np.exp(-a)
        return values

    def spectral(self, normal: Floats, uniform: Floats) -> Floats:
        """Return z sqrt(2 nu / chi2) / l, chi2 being the quantile of `uniform`."""
        from scipy.special import gammaincinv  # noqa: PLC0415  imported where it is needed

        chi2 = 2.0 * gammaincinv(self.nu, uniform)
        stretched: Floats = normal * np.sqrt(2.0 * self.nu / chi2)[:, None]
        return stretched / self.scales(normal.shape[1])


@dataclass(frozen=True)
class Laplacian(ShiftInvariantKernel):
    """The Laplacian kernel exp(-sum_j |x_j - x'_j| / l_j); frequencies are Cauchy(0, 1 / l_j).

    References
    ----------
    Rahimi and Recht (2007), "Random features for large-scale kernel machines".
    """

    name = "laplacian"

    def distance(self, X: Floats, Z: Floats) -> Floats:
        """Return Manhattan distances (n, m)."""
        return _distances(X, Z, "cityblock")

    def profile(self, distances: Floats) -> Floats:
        """Return exp(-r)."""
        values: Floats = np.exp(-distances)
        return values

    def spectral(self, normal: Floats, uniform: Floats) -> Floats:  # noqa: ARG002
        """Return each normal number carried to the Cauchy number of the same quantile."""
        from scipy.special import ndtr  # noqa: PLC0415  imported where it is needed

        # Quantiles are taken in the lower half, where they keep their digits, and mirrored.
        cauchy: Floats = np.copysign(1.0 / np.tan(math.pi * ndtr(-np.abs(normal))), normal)
        return cauchy / self.scales(normal.shape[1])


@dataclass(frozen=True)
class Linear(Kernel):
    """The linear kernel x^T x'; its features are the inputs themselves."""

    name = "linear"

    def __call__(self, X: ArrayLike, Z: ArrayLike) -> Floats:
        """Evaluate the kernel on every pair of rows; see `Kernel`."""
        product: Floats = np.asarray(X, dtype=float) @ np.asarray(Z, dtype=float).T
        return product


KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        Gaussian(),
        Laplacian(),
        Matern(nu=0.5),
        Matern(nu=1.5),
        Matern(nu=2.5),
        Linear(),
    )
}


def kernel_from(name: str, parameters: Mapping[str, Any]) -> Kernel:
    """Build a kernel from its name and parameters, as a model file holds them.

    Raises
    ------
    ParameterError
        If there is no kernel of that name, or it does not take these parameters.
    """
    if name not in KERNELS:
        raise ParameterError(
            f"kernel must be one of {', '.join(KERNELS)}, not {name!r}; choose one of them."
        )
    known = KERNELS[name].parameters()
    if not set(parameters) <= set(known):
        raise ParameterError(
            f"the kernel {name!r} takes {sorted(known)}, not {sorted(parameters)}; leave out the "
            f"others."
        )
    return replace(KERNELS[name], **parameters)
