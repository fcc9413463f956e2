"""Errors of predictions: RMSE, MAE and R2 as sums over rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.predict.evaluation import Measure
from streamkern.statistics import ColumnStatistics, part, total

if TYPE_CHECKING:
    from streamkern._typing import Floats
    from streamkern.sources import Block


class PredictionErrors(Measure):
    """Squared and absolute errors of predictions of q targets, and the spread of these."""

    n_targets: int
    n_rows: int = total(dtype=int)
    weight: float = total()
    squared: Floats = total("n_targets")
    absolute: Floats = total("n_targets")
    targets: ColumnStatistics = part(lambda errors: ColumnStatistics(errors.n_targets))

    @property
    def rmse(self) -> Floats:
        """Root mean squared error, (q,), in the units of the targets."""
        return np.sqrt(self.squared / self.weight)

    @property
    def mae(self) -> Floats:
        """Mean absolute error, (q,), in the units of the targets."""
        return self.absolute / self.weight

    @property
    def r2(self) -> Floats:
        """Coefficient of determination, (q,); scikit-learn's values where a target is constant."""
        # Rounding leaves a constant target a spread; its range is exact.
        spread = np.where(self.targets.constant(0.0), 0.0, self.targets.squares)
        constant = np.where(self.squared == 0, 1.0, 0.0)
        safe = np.where(spread > 0, spread, 1.0)
        return np.where(spread > 0, 1.0 - self.squared / safe, constant)

    def add(self, rows: Block, predicted: Floats) -> None:
        """Add the errors on rows."""
        errors = predicted - rows.y
        weights = np.ones(len(rows)) if rows.weights is None else rows.weights
        self.squared += weights @ errors**2
        self.absolute += weights @ np.abs(errors)
        self.weight += float(weights.sum())
        self.n_rows += len(rows)
        no_inputs: Any = rows.X[:, :0]
        self.targets.update([type(rows)(no_inputs, rows.y, rows.start, rows.weights)])
