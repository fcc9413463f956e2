"""Dot-product kernels."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from streamkern._typing import Floats
from streamkern.errors import ParameterError
from streamkern.errors.checks import checked_integer
from streamkern.kernels.base import Kernel


@dataclass(frozen=True)
class Polynomial(Kernel):
    """The polynomial kernel (c + x^T x')^d.

    Parameters
    ----------
    degree : int
        d, at least 1.
    constant : float
        c, at least 0; with 0 only products of exactly d inputs count.

    Pham and Pagh (2013), "Fast and scalable polynomial kernels via explicit feature maps".
    """

    degree: int = 2
    constant: float = 1.0
    family = "polynomial"

    def __post_init__(self) -> None:
        sentence = "degree must be a whole number of at least 1, not {!r}; give one."
        degree, constant = checked_integer(self.degree, sentence, 1), self.constant
        is_number = isinstance(constant, (int, float, np.integer, np.floating))
        if isinstance(constant, bool) or not is_number or not 0.0 <= constant < math.inf:
            raise ParameterError(
                f"constant must be a number of at least 0, not {constant!r}; give one."
            )
        object.__setattr__(self, "degree", degree)
        object.__setattr__(self, "constant", float(constant))

    def __call__(self, X: ArrayLike, Z: ArrayLike) -> Floats:
        return (self.constant + _inner_products(X, Z)) ** self.degree


@dataclass(frozen=True)
class Linear(Kernel):
    """The linear kernel x^T x'; its features are the inputs themselves."""

    family = "linear"

    def __call__(self, X: ArrayLike, Z: ArrayLike) -> Floats:
        return _inner_products(X, Z)


def _inner_products(X: ArrayLike, Z: ArrayLike) -> Floats:
    return np.asarray(X, dtype=float) @ np.asarray(Z, dtype=float).T
