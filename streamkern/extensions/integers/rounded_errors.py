"""The errors of a model on rows whose weights and features are rounded as they were in its fit."""

from typing import Any

import numpy as np

from streamkern._typing import Block, Floats
from streamkern.extensions.integers.integer_units import TARGET_BITS
from streamkern.features import LEVELS, bounds, round_into
from streamkern.features.base import slices
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.predict.evaluation import Measure
from streamkern.predict.predictor import Predictor
from streamkern.runtime.scratch import Scratch
from streamkern.statistics import total

# Rows whose rounded features are held at once.
_ROWS = 512


class RoundedErrors(Measure):
    """Sums of weights and of squared errors (q,), of rounded weights and features as in a fit."""

    predictor: Predictor
    levels: int
    weight_unit: float
    weight: float = total()
    squared: Floats = total("predictor.n_targets")

    @classmethod
    def of(cls, model: FittedRidge) -> "RoundedErrors":
        """Return what measures the rows of a model as integers."""
        unit: Any = model.outcome.weight_unit
        return cls(model.predictor, LEVELS[model.outcome.precision], unit)

    @property
    def target_rounding(self) -> float:
        """The share of the sum of squares of targets that their rounding makes."""
        return float(4.0**-TARGET_BITS)

    def add(self, rows: Block, predicted: Floats) -> None:  # noqa: ARG002  of features as they are
        feature_map, coef = self.predictor.feature_map, self.predictor.coef
        unit = feature_map.scale * bounds(feature_map) / self.levels
        weights = np.rint(rows.each_weight() / self.weight_unit) * self.weight_unit
        self.weight += float(weights.sum())
        for some in slices(len(rows), _ROWS):
            rounded = np.empty((len(coef), some.stop - some.start), np.int16)
            round_into(feature_map, rows.X[some], self.levels, rounded, Scratch())
            made = self.predictor.intercept + rounded.T @ (unit[:, None] * coef)
            self.squared += weights[some] @ (rows.y[some] - made) ** 2
