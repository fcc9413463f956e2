"""Rows by what is predicted and what is so, in bins that pictures are drawn from."""

from typing import Self

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.predict.evaluation import Measure
from streamkern.sources import Block
from streamkern.statistics import total

# How far bins reach to both sides, in standard deviations of a target and in errors, and how many.
_VALUES, _VALUE_BINS = 4.0, 96
_RESIDUALS, _RESIDUAL_BINS = 5.0, 80
# Targets whose rows are counted.
MOST_TARGETS = 4


class PairCounts(Measure):
    """Counts of rows by values and residuals of the first t targets, whatever rows weigh.

    They are in equal bins, and one beyond at both ends.
    """

    values: Floats  # edges for predicted and for actual values, (t, B + 3), infinite at the ends
    errors: Floats  # edges for actual less predicted values, (t, R + 3)
    pairs: Array = total("n_targets", _VALUE_BINS + 2, _VALUE_BINS + 2, dtype=np.int64)
    residuals: Array = total("n_targets", _VALUE_BINS + 2, _RESIDUAL_BINS + 2, dtype=np.int64)

    @property
    def n_targets(self) -> int:
        return len(self.values)

    @classmethod
    def about(cls, mean: Floats, deviation: Floats, error: Floats) -> Self:
        """Return no counts yet, in bins that reach far enough for targets (t,) with such errors."""

        def edges(centre: Floats, reach: Floats, n_bins: int) -> Floats:
            wide = np.where(reach > 0, reach, 1.0)
            steps: Floats = np.linspace(-1.0, 1.0, n_bins + 1)
            steps = np.concatenate([[-np.inf], steps, [np.inf]])
            return centre[:, None] + wide[:, None] * steps

        return cls(
            edges(mean, _VALUES * deviation, _VALUE_BINS),
            edges(np.zeros_like(mean), _RESIDUALS * error, _RESIDUAL_BINS),
        )

    def counted(self, predicted: Floats, actual: Floats) -> tuple[Array, Array]:
        """Count by predicted and actual value (t, B + 2, B + 2) or residual (t, B + 2, R + 2)."""
        pairs, residuals = [], []
        edges = zip(self.values, self.errors, strict=True)
        for first, second, (values, errors) in zip(predicted.T, actual.T, edges, strict=False):
            pairs.append(np.histogram2d(first, second, (values, values))[0])
            residuals.append(np.histogram2d(first, second - first, (values, errors))[0])
        return np.array(pairs, dtype=np.int64), np.array(residuals, dtype=np.int64)

    def add(self, rows: Block, predicted: Floats) -> None:
        pairs, residuals = self.counted(predicted, rows.y)
        self.pairs += pairs
        self.residuals += residuals


def pair_counts(model: FittedRidge, rmse: Floats) -> PairCounts:
    return PairCounts.about(*(each[:MOST_TARGETS] for each in (*model.target_spread, rmse)))
