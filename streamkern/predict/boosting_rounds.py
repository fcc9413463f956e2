"""What rounds of boosting do: a new one on the weights so far, and all of them in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamkern.predict.ensemble import bounded_exp
from streamkern.statistics.base import Statistic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamkern._typing import Floats
    from streamkern.predict.ensemble import Ensemble
    from streamkern.predict.predictor import Predictor
    from streamkern.sources import Block


class RoundErrors(Statistic):
    """How a new round does on rows weighted by the rounds before it.

    Parameters
    ----------
    ensemble : Ensemble
        Of the rounds before.
    predictor : Predictor
        The new one.
    step : float
        What weights are foretold for.

    Attributes
    ----------
    weight : float
        The sum of the weights of rows.
    wrong : float
        That of the rows that the new round alone gets wrong.
    after : float
        The sum of the weights after the new round, if its votes are multiplied by the step.
    """

    stays_behind = ("ensemble", "predictor", "step")

    def __init__(self, ensemble: Ensemble, predictor: Predictor, step: float) -> None:
        self.ensemble = ensemble
        self.predictor = predictor
        self.step = step
        self.weight = 0.0
        self.wrong = 0.0
        self.after = 0.0

    def zero(self) -> RoundErrors:
        """Return the errors on no rows."""
        return RoundErrors(self.ensemble, self.predictor, self.step)

    def update(self, blocks: Iterable[Block]) -> None:
        """Add rows."""
        for block in blocks:
            weights, codes = self.ensemble.weights(block), self.ensemble.codes(block.y)
            votes = self.ensemble.votes_of(self.predictor, block.X)
            mine = votes[np.arange(len(block)), codes]
            self.weight += float(weights.sum())
            self.wrong += float(weights @ (votes.argmax(axis=1) != codes))
            self.after += float(weights @ bounded_exp(-self.step * mine))

    def merge(self, other: RoundErrors) -> RoundErrors:
        """Return the errors on both sets of rows."""
        both = self.zero()
        for name in ("weight", "wrong", "after"):
            setattr(both, name, getattr(self, name) + getattr(other, name))
        return both


class StagedErrors(Statistic):
    """The share of rows that the first rounds get wrong, for every number of them, and its bound.

    Of two classes, a row is wrong only if the votes V_y of its own, y, are not above 0.  So the
    share is at most the mean of exp(-V_y), which rounds make smaller, by a factor each.  Of more
    classes rounds make smaller what bounds no share: V_y can be large, and others larger.

    Parameters
    ----------
    ensemble : Ensemble
        Of T rounds.

    Attributes
    ----------
    weight : float
        The sum of the weights that rows have of their own.
    wrong, bounds : ndarray of shape (T,)
        Weighted sums after every round.

    References
    ----------
    Freund and Schapire (1997), "A decision-theoretic generalization of on-line learning and an
    application to boosting".
    """

    stays_behind = ("ensemble",)

    def __init__(self, ensemble: Ensemble) -> None:
        self.ensemble = ensemble
        self.weight = 0.0
        self.wrong = np.zeros(len(ensemble))
        self.bounds = np.zeros(len(ensemble))

    @property
    def errors(self) -> Floats:
        """The weighted share of rows that is wrong after every round, (T,)."""
        return self.wrong / self.weight

    @property
    def error_bounds(self) -> Floats | None:
        """What that share is at most, (T,), or None of more than two classes."""
        two = self.ensemble.n_classes == 2
        return np.minimum(self.bounds / self.weight, 1.0) if two else None

    def zero(self) -> StagedErrors:
        """Return the errors on no rows."""
        return StagedErrors(self.ensemble)

    def update(self, blocks: Iterable[Block]) -> None:
        """Add rows."""
        for block in blocks:
            weights = np.ones(len(block)) if block.weights is None else block.weights
            codes, rows = self.ensemble.codes(block.y), np.arange(len(block))
            self.weight += float(weights.sum())
            for i, votes in enumerate(self.ensemble.staged_votes(block.X)):
                self.wrong[i] += weights @ (votes.argmax(axis=1) != codes)
                self.bounds[i] += weights @ bounded_exp(-votes[rows, codes])

    def merge(self, other: StagedErrors) -> StagedErrors:
        """Return the errors on both sets of rows."""
        both = self.zero()
        for name in ("weight", "wrong", "bounds"):
            setattr(both, name, getattr(self, name) + getattr(other, name))
        return both
