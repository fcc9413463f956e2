"""Scores of classes counted in fine bins: what probabilities and ranks are made from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamkern.predict.held_out_pairs import predicted_by_fold
from streamkern.statistics.base import Statistic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streamkern._typing import Array, Floats
    from streamkern.predict.predictor import Predictor
    from streamkern.sources import Block
    from streamkern.statistics.folds import Folds

# Bins of a score, and of all scores together at the most.
_BINS, _ALL_BINS = (256, 4096), 1 << 19


class ScoreTable:
    """Weights and sums of scores in bins, apart for rows of a class and for all others.

    Bins are equal parts of t / (u + |t|), from -1 to 1, with t = s - c: any score has one, and they
    are finest about c, 2 u / B wide there and four times as wide at c + u.

    Parameters
    ----------
    centre, unit : ndarray of shape (q,)
        c and u, where the scores of each class lie and how far they spread.

    Attributes
    ----------
    weights, sums : ndarray of shape (q, 2, B)
        Of the rows that are not of the class, and of those that are.
    n_rows : int
    """

    def __init__(self, centre: Floats, unit: Floats) -> None:
        fewest, most = _BINS
        n_targets = len(centre)
        self.centre = centre
        self.unit = unit
        self.n_bins = min(max(1 << (_ALL_BINS // n_targets).bit_length() - 1, fewest), most)
        self.weights = np.zeros((n_targets, 2, self.n_bins))
        self.sums = np.zeros((n_targets, 2, self.n_bins))
        self.n_rows = 0

    def add(self, scores: Floats, is_class: Array, weights: Floats | None) -> None:
        """Add rows, in place.

        Parameters
        ----------
        scores : ndarray of shape (n, q)
        is_class : ndarray of shape (n, q), bool
            Whether the row is of the class that the score is for.
        weights : ndarray of shape (n,), optional
        """
        self.n_rows += len(scores)
        B, shape = self.n_bins, self.weights.shape[1:]
        apart = scores - self.centre
        between = apart / (self.unit + np.abs(apart))
        places = np.minimum(((between + 1.0) * (B / 2)).astype(np.int64), B - 1) + B * is_class
        for j in range(len(self.weights)):
            mine = scores[:, j] if weights is None else scores[:, j] * weights
            self.weights[j] += np.bincount(places[:, j], weights, 2 * B).reshape(shape)
            self.sums[j] += np.bincount(places[:, j], mine, 2 * B).reshape(shape)

    def merge(self, other: ScoreTable) -> ScoreTable:
        """Return the table of both sets of rows."""
        both = ScoreTable(self.centre, self.unit)
        both.weights = self.weights + other.weights
        both.sums = self.sums + other.sums
        both.n_rows = self.n_rows + other.n_rows
        return both

    def shares(self, target: int) -> tuple[Floats, Floats, Floats]:
        """Return of every bin that has rows the mean score, the weight, and the share of the class.

        They are of shape (m,), ascending by score.
        """
        weights, sums = self.weights[target], self.sums[target].sum(axis=0)
        whole = weights.sum(axis=0)
        held = whole > 0
        return sums[held] / whole[held], whole[held], weights[1, held] / whole[held]

    @property
    def auc(self) -> Floats:
        """The area under the receiver operating characteristic, (q,); NaN where all are alike.

        It is the chance that a row of the class has a larger score than one of the others, and
        half of that of equal ones.  Pairs in the same bin count as equal: `auc_error` bounds what
        that can be off by.
        """
        others, of_class = self.weights[:, 0], self.weights[:, 1]
        below = np.cumsum(others, axis=1) - others
        return self._of_pairs(((below + 0.5 * others) * of_class).sum(axis=1))

    @property
    def auc_error(self) -> Floats:
        """How far the exact area may be from `auc`, (q,): half of the pairs in the same bin."""
        return self._of_pairs(0.5 * (self.weights[:, 0] * self.weights[:, 1]).sum(axis=1))

    def _of_pairs(self, pairs: Floats) -> Floats:
        n_pairs = self.weights.sum(axis=2).prod(axis=1)
        return np.where(n_pairs > 0, pairs / np.where(n_pairs > 0, n_pairs, 1.0), np.nan)


class HeldOutScores(Statistic):
    """Scores of rows by models that have not seen them, in bins.

    Parameters
    ----------
    rule : Folds
    predictors : mapping of int to Predictor
        For every fold that has rows, the one that has not seen it.
    centre, unit : ndarray of shape (q,)
        As of `ScoreTable`.

    Attributes
    ----------
    table : ScoreTable
    """

    stays_behind = ("rule", "predictors")

    def __init__(
        self, rule: Folds, predictors: Mapping[int, Predictor], centre: Floats, unit: Floats
    ) -> None:
        self.rule = rule
        self.predictors = predictors
        self.table = ScoreTable(centre, unit)

    def zero(self) -> HeldOutScores:
        """Return the scores of no rows."""
        return HeldOutScores(self.rule, self.predictors, self.table.centre, self.table.unit)

    def update(self, blocks: Iterable[Block]) -> None:
        """Add rows; errors are those of `predicted_by_fold`."""
        for block in blocks:
            for rows, scores in predicted_by_fold(self.rule, self.predictors, block):
                # What is not finite has been counted and is refused beside this.
                known: Array = np.asarray(np.isfinite(np.hstack([scores, rows.y])).all(axis=1))
                weights = None if rows.weights is None else rows.weights[known]
                self.table.add(scores[known], rows.y[known] > 0, weights)

    def merge(self, other: HeldOutScores) -> HeldOutScores:
        """Return the scores of both sets of rows."""
        both = self.zero()
        both.table = self.table.merge(other.table)
        return both
