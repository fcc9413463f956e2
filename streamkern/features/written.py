"""Features that are written a few rows at a time, and those that were chosen, not drawn."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streamkern.features.base import FeatureMap, cached_slices
from streamkern.runtime.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streamkern._typing import Array


class WrittenFeatures(FeatureMap):
    """Features that are written a few rows at a time."""

    @property
    def width(self) -> int:
        """Numbers a row that are to stay in cache."""
        return self.n_components

    @abstractmethod
    def prepared(self, dtype: np.dtype[Any], scratch: Scratch) -> Callable[[Array, Array], None]:
        """Return a function that writes phi(X) / scale of a few rows into its second argument.

        `dtype` is that of the features; `scratch` is memory to work in while the function is used.
        """

    def evaluated(
        self, X: Array, out: Array, shift: Array | float = 0.0, scratch: Scratch | None = None
    ) -> Iterator[slice]:
        """Write the features, less `shift`, into `out`; see `FeatureMap`."""
        write, shifted = self.prepared(out.dtype, scratch or Scratch()), np.any(shift)
        for rows in cached_slices(len(out), self.width):
            features = out[rows]
            write(X[rows], features)
            if shifted:
                features -= shift
            yield rows


class ChosenFeatures(WrittenFeatures):
    """Features that were chosen, so that nothing is drawn."""

    no_part = (
        "features that were chosen have no part of {} that stands for the kernel; choose fewer "
        "from the whole map."
    )

    def draw(self, n_features: int, rows: Array | None = None) -> Self:  # noqa: ARG002  nothing is drawn
        """Check the number of inputs; nothing is random."""
        self.check((0, n_features))
        return self
