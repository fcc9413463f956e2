"""Kernels of the inner product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streamkern.errors import ParameterError
from streamkern.kernels.base import Kernel

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from streamkern._typing import Floats


@dataclass(frozen=True)
class Linear(Kernel):
    """The linear kernel x^T x'; its features are the inputs themselves."""

    name = "linear"

    def __call__(self, X: ArrayLike, Z: ArrayLike) -> Floats:
        """Evaluate the kernel on every pair of rows; see `Kernel`."""
        product: Floats = np.asarray(X, dtype=float) @ np.asarray(Z, dtype=float).T
        return product


@dataclass(frozen=True)
class Polynomial(Kernel):
    """The polynomial kernel (c + x^T x')^d, of all products of up to d inputs.

    Parameters
    ----------
    degree : int
        d, at least 1.
    constant : float
        c, at least 0.
    """

    name = "polynomial"
    degree: int = 2
    constant: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.degree, int) or self.degree < 1 or not self.constant >= 0:
            raise ParameterError(
                f"a polynomial kernel has a degree of at least 1 and a constant of at least 0, "
                f"not {self.degree!r} and {self.constant!r}; give such."
            )

    def __call__(self, X: ArrayLike, Z: ArrayLike) -> Floats:
        """Evaluate the kernel on every pair of rows; see `Kernel`."""
        product: Floats = np.asarray(X, dtype=float) @ np.asarray(Z, dtype=float).T
        return (self.constant + product) ** self.degree
