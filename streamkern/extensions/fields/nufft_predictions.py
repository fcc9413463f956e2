"""Predictions of a field by transforms from the lattice of frequencies to the rows."""

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.extensions.fields.lattice import Lattice, half_cell, places, values_of_rows
from streamkern.extensions.fields.waves import lattice_of, trend_and_angles
from streamkern.features import FeatureMap
from streamkern.features.base import slices

# Numbers of rows and targets that are transformed at a time.
_VALUES = 1 << 18
# What a row takes by its number of inputs, and a point of the lattice, for every target, in
# features of one row; and points of the finer lattice of a transform for which there is room.
_ROW, _POINT, _MOST_POINTS = {1: 64, 2: 128, 3: 1024}, 64, 1 << 22


class NufftPredictions:
    """Predictions of rows by transforms, which hardly take longer of more features."""

    def __init__(
        self,
        feature_map: FeatureMap,
        lattice: Lattice,
        coef: Floats,
        intercept: Floats,
        precision: str,
    ) -> None:
        self.feature_map, self.intercept, self.precision = feature_map, intercept, precision
        self.cell, waves = lattice.cell, np.zeros((coef.shape[1], lattice.modes.prod()), complex)
        waves[:, places(lattice.indices, lattice.modes)] = lattice.coefficients(coef).T
        self.waves = waves.reshape(-1, *lattice.modes)
        self.trend = coef[: lattice.n_before]

    def take_less(self, n_rows: int) -> bool:
        """Say whether transforms of so many rows take less than their features."""
        taken = n_rows * _ROW[self.waves.ndim - 1] * len(self.waves) + _POINT * self.waves.size
        return taken < n_rows * self.feature_map.n_components

    @np.errstate(invalid="ignore", over="ignore")
    def predict(self, X: Array, out: Floats) -> None:
        """Write predictions (n, q) for rows (n, p) into `out`, NaN for a row that is not finite."""
        self.feature_map.check(X.shape)
        for rows in slices(len(X), max(_VALUES // out.shape[1], 1)):
            trend, angles = trend_and_angles(self.feature_map, self.cell, X[rows])
            trend = trend @ self.trend
            bad = ~np.isfinite(angles.sum(axis=1) + trend.sum(axis=1))
            angles[bad] = 0.0
            along = [np.ascontiguousarray(each) for each in angles.T]
            values = values_of_rows(along, self.waves, self.precision) * half_cell(along)
            out[rows] = values.real.T + (self.intercept + trend)
            out[rows][bad] = np.nan


def nufft_predictions(
    feature_map: FeatureMap, coef: Floats, intercept: Floats, precision: str
) -> NufftPredictions | None:
    """Return what predicts by transforms; None without a lattice, or room for so many targets."""
    lattice = lattice_of(feature_map)
    if lattice is None or len(lattice.cell) not in _ROW:
        return None
    if coef.shape[1] > int(_MOST_POINTS / np.prod(2.0 * lattice.modes)):
        return None
    return NufftPredictions(feature_map, lattice, coef, intercept, precision)
