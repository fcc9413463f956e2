"""Maps that are made from what is there already, so that nothing is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from streamkern.errors import ParameterError
from streamkern.features.base import FeatureMap

if TYPE_CHECKING:
    from streamkern._typing import Array


class MadeFeatures(FeatureMap):
    """Features that someone chose, of which no part stands for the kernel."""

    def draw(self, n_features: int, rows: Array | None = None) -> Self:  # noqa: ARG002  nothing is drawn
        """Check the number of inputs; nothing is random."""
        self.check((0, n_features))
        return self

    def first(self, n_components: int) -> FeatureMap:
        """Refuse: what was chosen for its use has no part that stands for the kernel."""
        raise ParameterError(
            f"features that were chosen have no part of {n_components} that stands for the kernel; "
            f"choose fewer from the whole map."
        )
