"""Errors of rounds of boosting: of a new one on the weights so far, and of all of them in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamkern.predict.class_rule import codes_of
from streamkern.predict.ensemble import bounded_exp
from streamkern.predict.evaluation import Measure
from streamkern.statistics import Statistic, total

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamkern._typing import Floats
    from streamkern.predict.ensemble import Ensemble
    from streamkern.sources import Block


class RoundErrors(Measure):
    """How a new round does on rows weighted by the rounds before it, of an ensemble.

    `wrong` is the weight of the rows that the new round alone gets wrong, and `after` the sum of
    the weights after it, if its votes are multiplied by the step.
    """

    ensemble: Ensemble
    step: float
    weight: float = total()
    wrong: float = total()
    after: float = total()

    def add(self, rows: Block, predicted: Floats) -> None:
        """Add rows."""
        weights, codes = self.ensemble.weights(rows), codes_of(rows.y)
        votes = self.ensemble.votes_of(predicted)
        mine = votes[np.arange(len(rows)), codes]
        self.weight += float(weights.sum())
        self.wrong += float(weights @ (votes.argmax(axis=1) != codes))
        self.after += float(weights @ bounded_exp(-self.step * mine))


class StagedErrors(Statistic):
    """The share of rows that the first rounds get wrong, for every number of them, and its bound.

    Of two classes, a row is wrong only if the votes V_y of its own, y, are not above 0.  So the
    share is at most the mean of exp(-V_y), which rounds make smaller, by a factor each.  Of more
    classes rounds make smaller what bounds no share: V_y can be large, and others larger.

    References
    ----------
    Freund and Schapire (1997), "A decision-theoretic generalization of on-line learning and an
    application to boosting".
    """

    ensemble: Ensemble
    weight: float = total()
    wrong: Floats = total("n_rounds")
    bounds: Floats = total("n_rounds")

    @property
    def n_rounds(self) -> int:
        """T."""
        return len(self.ensemble)

    @property
    def errors(self) -> Floats:
        """The weighted share of rows that is wrong after every round, (T,)."""
        return self.wrong / self.weight

    @property
    def error_bounds(self) -> Floats | None:
        """What that share is at most, (T,), or None of more than two classes."""
        two = self.ensemble.n_classes == 2
        return np.minimum(self.bounds / self.weight, 1.0) if two else None

    def update(self, blocks: Iterable[Block]) -> None:
        """Add rows."""
        for block in blocks:
            weights = np.ones(len(block)) if block.weights is None else block.weights
            codes, rows = codes_of(block.y), np.arange(len(block))
            self.weight += float(weights.sum())
            for i, votes in enumerate(self.ensemble.staged_votes(block.X)):
                self.wrong[i] += weights @ (votes.argmax(axis=1) != codes)
                self.bounds[i] += weights @ bounded_exp(-votes[rows, codes])
