"""Predictions of a function that is a sum of waves on a lattice, without features of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamkern.features.base import slices
from streamkern.features.lattice import angles_of, places, values_of_rows

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats
    from streamkern.features import FeatureMap

# Numbers of rows and targets that are transformed at a time.
_VALUES = 1 << 18
# Points of the lattice that a transform adds up for a row, about ten along an input, cost as much
# as waves of so many frequencies; and those that it has memory for.
_FREQUENCIES, _MOST_POINTS = {1: 32, 2: 64, 3: 512}, 1 << 22


class WavePredictions:
    """Predictions of rows by transforms, which cost about as much at every number of features."""

    @staticmethod
    def suits(feature_map: FeatureMap, n_targets: int) -> bool:
        """Say whether a map is of enough waves on a lattice for transforms to take less."""
        lattice = feature_map.lattice
        if lattice is None:
            return False
        n_frequencies, p = lattice.indices.shape
        few_points = n_targets * np.prod(1.0 * lattice.modes) <= _MOST_POINTS
        return bool(few_points and n_frequencies >= _FREQUENCIES[p])

    def __init__(
        self, feature_map: FeatureMap, coef: Floats, intercept: Floats, precision: str
    ) -> None:
        lattice, pairs = feature_map.lattice, np.zeros((2 * -(-len(coef) // 2), coef.shape[1]))
        assert lattice is not None  # noqa: S101  for the type checker
        pairs[: len(coef)] = coef
        modes, mine = lattice.modes, lattice.amplitudes[:, None] * (pairs[0::2] - 1j * pairs[1::2])
        waves = np.zeros((coef.shape[1], modes.prod()), complex)
        waves[:, places(lattice.indices, modes)] = mine.T
        self.waves, self.lattice = waves.reshape(-1, *modes), lattice
        self.feature_map, self.intercept, self.precision = feature_map, intercept, precision

    def predict(self, X: Array, out: Floats) -> None:
        """Write predictions (n, q) for rows (n, p) into `out`, NaN for a row that is not finite."""
        self.feature_map.check(X.shape)
        for some in slices(len(X), max(_VALUES // out.shape[1], 1)):
            angles = angles_of(self.feature_map, self.lattice, X[some])
            bad = ~np.isfinite(angles).all(axis=1)
            angles[bad] = 0.0
            rows = [np.ascontiguousarray(each) for each in angles.T]
            values = values_of_rows(rows, self.waves, self.precision)
            # Frequencies are half a cell off the lattice.
            values *= np.exp(0.5j * angles.sum(axis=1))
            out[some] = values.real.T + self.intercept
            out[some][bad] = np.nan
