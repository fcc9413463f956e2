"""Predictions of rows by models that have not seen them: their errors, and where pairs lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streamkern.errors import DataError
from streamkern.statistics.base import Statistic

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from streamkern._typing import Array, Floats
    from streamkern.predict.predictor import Predictor
    from streamkern.sources import Block
    from streamkern.statistics.folds import Folds

# How far bins reach to both sides, in standard deviations of a target and in errors, and how many.
_VALUES, _VALUE_BINS = 4.0, 96
_RESIDUALS, _RESIDUAL_BINS = 5.0, 80


@dataclass(frozen=True)
class PairBins:
    """Bins of the values and of the residuals of the first t targets, all equally wide.

    Counts have one bin more at both ends of every axis, for what lies beyond the edges.

    Parameters
    ----------
    values : ndarray of shape (t, B + 1)
        Edges for predicted and for actual values.
    residuals : ndarray of shape (t, R + 1)
        Edges for actual less predicted values.
    """

    values: Floats
    residuals: Floats

    @classmethod
    def about(cls, mean: Floats, deviation: Floats, error: Floats) -> PairBins:
        """Return bins that reach far enough for targets (t,) with these errors."""

        def edges(centre: Floats, reach: Floats, n_bins: int) -> Floats:
            wide = np.where(reach > 0, reach, 1.0)
            return centre[:, None] + wide[:, None] * np.linspace(-1.0, 1.0, n_bins + 1)

        return cls(
            edges(mean, _VALUES * deviation, _VALUE_BINS),
            edges(np.zeros_like(mean), _RESIDUALS * error, _RESIDUAL_BINS),
        )

    @classmethod
    def none(cls) -> PairBins:
        """Return the bins of no targets."""
        return cls(np.empty((0, 2)), np.empty((0, 2)))

    def counted(self, predicted: Floats, actual: Floats) -> tuple[Array, Array]:
        """Count rows (n, q), by predicted and actual value and by predicted value and residual.

        Returns
        -------
        pairs : ndarray of shape (t, B + 2, B + 2), int64
        residuals : ndarray of shape (t, B + 2, R + 2), int64
        """
        pairs, residuals = [], []
        for j, (values, errors) in enumerate(zip(self.values, self.residuals, strict=True)):
            first = np.searchsorted(values, predicted[:, j], side="right")
            pairs.append(_table(first, actual[:, j], values))
            residuals.append(_table(first, actual[:, j] - predicted[:, j], errors, len(values) + 1))
        return np.array(pairs), np.array(residuals)


def _table(first: Array, second: Floats, edges: Floats, n_first: int | None = None) -> Array:
    """Count pairs of a bin and a value."""
    n_second = len(edges) + 1
    n_first = n_first or n_second
    places = first * n_second + np.searchsorted(edges, second, side="right")
    return np.bincount(places, minlength=n_first * n_second).reshape(n_first, n_second)


def predicted_by_fold(
    rule: Folds, predictors: Mapping[int, Predictor], block: Block
) -> Iterator[tuple[Block, Floats]]:
    """Yield the rows of every fold with predictions (n, q) by the model that has not seen it.

    Raises
    ------
    DataError
        If a row is of a fold that has none.
    """
    folds = rule.of(block.places())
    for fold in np.unique(folds).tolist():
        if fold not in predictors:
            row = block.places()[folds == fold][0]
            raise DataError(
                f"row {row:,} is in fold {fold + 1}, which had no rows when the model was fitted; "
                f"give the rows of the fit."
            )
        rows = block.where(folds == fold)
        yield rows, predictors[fold].predict(rows.X).reshape(rows.y.shape)


class HeldOutPairs(Statistic):
    """Rows predicted without their fold: squared errors, and counts of pairs in bins.

    Parameters
    ----------
    rule : Folds
    predictors : mapping of int to Predictor
        For every fold that has rows, the one that has not seen it.
    bins : PairBins

    Attributes
    ----------
    n_rows : int
    weight : float
    squared : ndarray of shape (q,)
        The weighted sum of squared errors.
    pairs, residuals : ndarray
        Counts of rows, as of `PairBins.counted`, whatever they weigh.
    """

    stays_behind = ("rule", "predictors", "bins")

    def __init__(self, rule: Folds, predictors: Mapping[int, Predictor], bins: PairBins) -> None:
        self.rule = rule
        self.predictors = predictors
        self.bins = bins
        self.n_rows = 0
        self.weight = 0.0
        (q,) = {predictor.coef.shape[1] for predictor in predictors.values()}
        self.squared = np.zeros(q)
        self.pairs, self.residuals = bins.counted(np.empty((0, q)), np.empty((0, q)))

    def zero(self) -> HeldOutPairs:
        """Return the errors on no rows."""
        return HeldOutPairs(self.rule, self.predictors, self.bins)

    def update(self, blocks: Iterable[Block]) -> None:
        """Add rows.

        Raises
        ------
        DataError
            If a row is of a fold that has none.
        """
        for block in blocks:
            for rows, predicted in predicted_by_fold(self.rule, self.predictors, block):
                weights = np.ones(len(rows)) if rows.weights is None else rows.weights
                self.squared = self.squared + weights @ (rows.y - predicted) ** 2
                self.weight += float(weights.sum())
                self.n_rows += len(rows)
                pairs, residuals = self.bins.counted(predicted, rows.y)
                self.pairs, self.residuals = self.pairs + pairs, self.residuals + residuals

    def merge(self, other: HeldOutPairs) -> HeldOutPairs:
        """Return the errors on both sets of rows."""
        both = self.zero()
        both.n_rows = self.n_rows + other.n_rows
        both.weight = self.weight + other.weight
        both.squared = self.squared + other.squared
        both.pairs = self.pairs + other.pairs
        both.residuals = self.residuals + other.residuals
        return both
