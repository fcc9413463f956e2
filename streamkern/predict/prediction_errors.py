"""Errors of predictions, streamed: rmse, mae and r2 in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.statistics.base import Statistic
from streamkern.statistics.column_statistics import ColumnStatistics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamkern._typing import Floats
    from streamkern.predict.predictor import Predictor
    from streamkern.sources import Block


class PredictionErrors(Statistic):
    """Squared and absolute errors of a predictor, and the spread of the targets.

    Parameters
    ----------
    predictor : Predictor

    Attributes
    ----------
    n_rows : int
    """

    stays_behind = ("predictor",)

    def __init__(self, predictor: Predictor) -> None:
        q = predictor.coef.shape[1]
        self.predictor = predictor
        self.n_rows = 0
        self.weight = 0.0
        self.squared = np.zeros(q)
        self.absolute = np.zeros(q)
        self.targets = ColumnStatistics(q)

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

    def zero(self) -> PredictionErrors:
        """Return the errors on no rows."""
        return PredictionErrors(self.predictor)

    def update(self, blocks: Iterable[Block]) -> None:
        """Add the errors on rows."""
        for block in blocks:
            errors = self.predictor.predict(block.X).reshape(block.y.shape) - block.y
            weights = np.ones(len(block)) if block.weights is None else block.weights
            self.squared += weights @ errors**2
            self.absolute += weights @ np.abs(errors)
            self.weight += float(weights.sum())
            self.n_rows += len(block)
            no_inputs: Any = block.X[:, :0]
            self.targets.update([type(block)(no_inputs, block.y, block.start, block.weights)])

    def merge(self, other: PredictionErrors) -> PredictionErrors:
        """Return the errors on both sets of rows."""
        both = self.zero()
        both.squared = self.squared + other.squared
        both.absolute = self.absolute + other.absolute
        both.weight = self.weight + other.weight
        both.n_rows = self.n_rows + other.n_rows
        both.targets = self.targets.merge(other.targets)
        return both
