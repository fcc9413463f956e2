"""Kernels of the inner product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

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
