"""Scores of classes counted in fine bins: what probabilities and ranks are made from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamkern.predict.evaluation import Measure
from streamkern.statistics import total

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats
    from streamkern.sources import Block

# Bins of a score, and of all scores together at the most.
_BINS, _ALL_BINS = (256, 4096), 1 << 19


class ScoreTable(Measure):
    """Weights and sums of scores in bins, apart for rows of a class and for all others.

    Bins are equal parts of t / (u + |t|), from -1 to 1, with t = s - c: any score has one, and they
    are finest about c, 2 u / B wide there and four times as wide at c + u.
    """

    # c and u, (q,): where the scores of each class lie, and how far they spread.
    centre: Floats
    unit: Floats
    # Of the rows that are not of the class, and of those that are.
    weights: Floats = total("centre.size", 2, "n_bins")
    sums: Floats = total("centre.size", 2, "n_bins")
    n_rows: int = total(dtype=int)

    @property
    def n_bins(self) -> int:
        """B."""
        fewest, most = _BINS
        return min(max(1 << (_ALL_BINS // len(self.centre)).bit_length() - 1, fewest), most)

    def add(self, rows: Block, predicted: Floats) -> None:
        """Add rows, but for those that are not finite, which others have counted and refuse."""
        known = is_known(predicted, rows.y)
        weights = None if rows.weights is None else rows.weights[known]
        self.count(predicted[known], rows.y[known] > 0, weights)

    def count(self, scores: Floats, is_class: Array, weights: Floats | None) -> None:
        """Add scores (n, q) of rows of weights (n,), each of the class of a score or not."""
        self.n_rows += len(scores)
        B, shape = self.n_bins, self.weights.shape[1:]
        apart = scores - self.centre
        between = apart / (self.unit + np.abs(apart))
        places = np.minimum(((between + 1.0) * (B / 2)).astype(np.int64), B - 1) + B * is_class
        for j in range(len(self.weights)):
            mine = scores[:, j] if weights is None else scores[:, j] * weights
            self.weights[j] += np.bincount(places[:, j], weights, 2 * B).reshape(shape)
            self.sums[j] += np.bincount(places[:, j], mine, 2 * B).reshape(shape)

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


def is_known(scores: Floats, targets: Floats) -> Array:
    """Say which rows (n,) have finite scores and targets."""
    known: Array = np.asarray(np.isfinite(np.hstack([scores, targets])).all(axis=1))
    return known
