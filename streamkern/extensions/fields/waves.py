"""What is asked of the drawn map of a field: its lattice and angles, predictions by transforms."""

from typing import Any

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import warn
from streamkern.extensions.fields.lattice import Lattice, half_cell, places, values_of_rows
from streamkern.features import FeatureMap, Standardized, trended
from streamkern.features.base import slices

# Numbers of rows and targets that are transformed at a time.
_VALUES = 1 << 18
# What a row takes by its number of inputs, and a point of the lattice, for every target, in
# features of one row; and points of the finer lattice of a transform for which there is room.
_ROW, _POINT, _MOST_POINTS = {1: 64, 2: 128, 3: 1024}, 64, 1 << 22


def lattice_of(feature_map: FeatureMap) -> Lattice | None:
    """Return of pairs of waves whose frequencies are equispaced which of them they are, or None."""
    inner: Any = feature_map.inner if isinstance(feature_map, Standardized) else feature_map
    return inner.lattice if inner.is_field else None


def trend_and_angles(feature_map: FeatureMap, cell: Floats, X: Array) -> tuple[Floats, Floats]:
    """Return the trend (n, k) of rows, and the angles (n, p) of one cell along every input."""
    rows, trend, beside = np.asarray(X), np.empty((len(X), 0)), trended(feature_map)
    if isinstance(feature_map, Standardized):
        rows = feature_map.standardizer(rows)
    if beside is not None:
        trend, rows = beside.trend_and_rest(rows)
    return trend, rows * cell


def warn_of_period(feature_map: FeatureMap, ends: Floats, known: Any) -> None:
    """Warn of rows between ends (2, p) that reach beyond the period, with a range that is known."""
    if (lattice := lattice_of(feature_map)) is None:
        return
    if known is not None and np.shape(known) == (feature_map.n_features, 2):
        low, high = np.transpose(known)
        ends = np.stack([np.minimum(ends[0], low), np.maximum(ends[1], high)])
    angles = trend_and_angles(feature_map, lattice.cell, ends)[1]
    if (np.ptp(angles, axis=0) > 2.0 * np.pi).any():
        warn(
            "the grid of frequencies was laid for other rows, and these reach beyond the period "
            "after which its functions repeat, so that rows far apart are taken for neighbours; "
            "fit all rows at once, or like some from end to end."
        )


class NufftPredictions:
    """Predictions of rows by transforms, which hardly take longer of more features."""

    def __init__(
        self, feature_map: FeatureMap, coef: Floats, intercept: Floats, precision: str
    ) -> None:
        self.feature_map, self.intercept, self.precision = feature_map, intercept, precision
        lattice: Any = lattice_of(feature_map)
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
    room = 0 if lattice is None else int(_MOST_POINTS / np.prod(2.0 * lattice.modes))
    fits = coef.shape[1] <= room
    return NufftPredictions(feature_map, coef, intercept, precision) if fits else None
