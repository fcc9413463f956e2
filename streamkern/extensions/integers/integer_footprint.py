"""The memory of a fit of features that are rounded to integers."""

from typing import ClassVar

from streamkern.extensions.integers.integer_moments import update_bytes
from streamkern.parameters.footprint import Footprint


class IntegerFootprint(Footprint):
    """The bytes of such a fit, whose digits are multiplied."""

    cross_bytes: ClassVar[int] = 24

    @property
    def features(self) -> int:
        D, q = self.n_components, self.source.n_targets
        uneven = self.source.weighted_by is not None or self.n_maps > 1
        return update_bytes(self.precision, D, q, self.block_rows, weighted=uneven)
