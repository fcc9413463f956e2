"""Projections: linear maps from rows to angles, of frequencies that are held one by one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

import numpy as np

from streamkern.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamkern._typing import Array, Floats
    from streamkern.runtime.scratch import Scratch


class Projection(ABC):
    """The angles w_k^T x of a row x, for L frequencies w_k of p numbers each."""

    n_features: int  # p
    n_draws: int  # L

    @property
    @abstractmethod
    def frequencies(self) -> Floats:
        """The frequencies (L, p)."""

    @abstractmethod
    def prepared(
        self, dtype: np.dtype[np.floating], scratch: Scratch
    ) -> Callable[[Array, Array], None]:
        """Return a function that writes the angles (n, L) of rows (n, p) to its second argument."""

    @abstractmethod
    def pulled_back(
        self, dtype: np.dtype[np.floating], scratch: Scratch
    ) -> Callable[[Array, Array], None]:
        """Return a function that writes sum_k s_k w_k (n, p) of slopes (n, L), maybe lost."""

    @abstractmethod
    def rows(self, indices: Array) -> Floats:
        """Return some frequencies (K, p)."""

    @abstractmethod
    def first(self, n_draws: int) -> Projection:
        """Return the projection on the first frequencies."""

    @abstractmethod
    def arrays(self) -> dict[str, Array]:
        """Return what describes it, by name, as arrays for a model file."""

    @classmethod
    @abstractmethod
    def restore(cls, arrays: Mapping[str, Array]) -> Self:
        """Rebuild the projection from its arrays, or raise ParameterError if they do not fit."""


class Frequencies(Projection):
    """A projection on frequencies (L, p) that are held one by one, O(p L) a row."""

    def __init__(self, frequencies: Floats) -> None:
        if frequencies.ndim != 2:
            raise ParameterError(
                f"expected frequencies (L, p), found shape {frequencies.shape}; the file is "
                f"damaged."
            )
        # In the order that a file gives them back in, or products would differ in their last bits.
        self._frequencies = np.ascontiguousarray(frequencies)
        self.n_draws, self.n_features = frequencies.shape

    @property
    def frequencies(self) -> Floats:
        """The frequencies (L, p)."""
        return self._frequencies

    def prepared(
        self, dtype: np.dtype[np.floating], scratch: Scratch
    ) -> Callable[[Array, Array], None]:
        """Return the product with the frequencies."""
        frequencies = self._held(dtype, scratch)

        def project(X: Array, angles: Array) -> None:
            np.matmul(X.astype(dtype, copy=False), frequencies.T, out=angles)

        return project

    def pulled_back(
        self, dtype: np.dtype[np.floating], scratch: Scratch
    ) -> Callable[[Array, Array], None]:
        """Return the product with the frequencies, from the other side."""
        frequencies = self._held(dtype, scratch)

        def pull_back(slopes: Array, out: Array) -> None:
            np.matmul(slopes, frequencies, out=out)

        return pull_back

    def _held(self, dtype: np.dtype[np.floating], scratch: Scratch) -> Array:
        held = scratch.array("frequencies", self.frequencies.shape, dtype)
        held[...] = self.frequencies
        return held

    def rows(self, indices: Array) -> Floats:
        """Return some frequencies (K, p)."""
        return self.frequencies[indices]

    def first(self, n_draws: int) -> Frequencies:
        """Return the projection on the first frequencies."""
        return Frequencies(self.frequencies[:n_draws])

    def arrays(self) -> dict[str, Array]:
        """Return the frequencies."""
        return {"frequencies": self.frequencies}

    @classmethod
    def restore(cls, arrays: Mapping[str, Array]) -> Self:
        """Rebuild the projection from its frequencies."""
        return cls(arrays["frequencies"])
