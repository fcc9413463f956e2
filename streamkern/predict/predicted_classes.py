"""Errors of the classes of rows, streamed: by one model, or by the one without each fold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamkern.predict.class_errors import ClassErrors, own_weights
from streamkern.predict.held_out_pairs import predicted_by_fold
from streamkern.statistics.base import Statistic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streamkern._typing import Floats
    from streamkern.predict.class_rule import ClassRule
    from streamkern.predict.predictor import Predictor, RowFunction
    from streamkern.sources import Block
    from streamkern.statistics.folds import Folds


class PredictedClasses(Statistic):
    """Errors of the classes of rows, by one model.

    Parameters
    ----------
    predictor : RowFunction
        Of scores.
    rule : ClassRule

    Attributes
    ----------
    errors : ClassErrors
    """

    stays_behind = ("predictor", "rule")

    def __init__(self, predictor: RowFunction, rule: ClassRule) -> None:
        self.predictor, self.rule = predictor, rule
        self.errors = ClassErrors(len(rule.classes))

    def zero(self) -> PredictedClasses:
        """Return the errors on no rows."""
        return PredictedClasses(self.predictor, self.rule)

    def update(self, blocks: Iterable[Block]) -> None:
        """Add the errors on rows."""
        for block in blocks:
            scores = self.predictor.predict(block.X).reshape(block.y.shape)
            self.errors.add(self.rule, scores, block.y, block.weights)

    def merge(self, other: PredictedClasses) -> PredictedClasses:
        """Return the errors on both sets of rows."""
        both = self.zero()
        both.errors = self.errors.merge(other.errors)
        return both


class HeldOutClasses(Statistic):
    """Errors of the classes of rows, each by the model that has not seen its fold.

    Parameters
    ----------
    folds : Folds
    predictors : mapping of int to Predictor
        For every fold that has rows, the one that has not seen it.
    rule : ClassRule
    factors : ndarray of shape (K,), optional
        What the weights of rows are multiplied by, for their classes; errors are without.

    Attributes
    ----------
    errors : ClassErrors
    squared : ndarray of shape (q,)
        The sum of the squared errors of scores, with these weights.
    """

    stays_behind = ("folds", "predictors", "rule", "factors")

    def __init__(
        self,
        folds: Folds,
        predictors: Mapping[int, Predictor],
        rule: ClassRule,
        factors: Floats | None = None,
    ) -> None:
        self.folds, self.predictors, self.rule, self.factors = folds, predictors, rule, factors
        self.errors = ClassErrors(len(rule.classes))
        self.squared = np.zeros(rule.classes.n_targets)

    def zero(self) -> HeldOutClasses:
        """Return the errors on no rows."""
        return HeldOutClasses(self.folds, self.predictors, self.rule, self.factors)

    def update(self, blocks: Iterable[Block]) -> None:
        """Add rows; errors are those of `predicted_by_fold`."""
        for block in blocks:
            for rows, scores in predicted_by_fold(self.folds, self.predictors, block):
                weights = own_weights(rows.y, rows.weights, self.factors)
                self.errors.add(self.rule, scores, rows.y, weights)
                squares = np.square(scores - rows.y)
                self.squared += np.nansum(
                    squares if rows.weights is None else squares * rows.weights[:, None], axis=0
                )

    def merge(self, other: HeldOutClasses) -> HeldOutClasses:
        """Return the errors on both sets of rows."""
        both = self.zero()
        both.errors = self.errors.merge(other.errors)
        both.squared = self.squared + other.squared
        return both
