"""Errors of predicted classes and of their probabilities, streamed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamkern.statistics.base import Statistic
from streamkern.statistics.class_scores import ScoreTable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamkern._typing import Array, Floats
    from streamkern.calibration import ClassRule
    from streamkern.predictor import RowFunction
    from streamkern.sources import Block

# Of the confidence in the predicted class, equally wide between 0 and 1.
_CONFIDENCES = 15
# Log-odds are often a few in size.
_UNIT = 4.0
# Probabilities are no nearer to 0 and 1 than this in a logarithm, as in scikit-learn.
_LEAST = float(np.finfo(np.float64).eps)


class ClassErrors(Statistic):
    """How well classes and their probabilities are predicted.

    Parameters
    ----------
    predictor : RowFunction
        Of scores.
    rule : ClassRule
        From scores to classes and probabilities.

    Attributes
    ----------
    confusion : ndarray of shape (K, K)
        Weights of rows by their class, and by the class that was predicted.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger (2017), "On calibration of modern neural networks".
    """

    stays_behind = ("predictor", "rule")

    def __init__(self, predictor: RowFunction, rule: ClassRule) -> None:
        K = len(rule.classes)
        self.predictor = predictor
        self.rule = rule
        self.confusion = np.zeros((K, K))
        self.log_losses = 0.0
        self.squares = 0.0
        # Weight, confidence and weight that is predicted rightly, by confidence.
        self.reliability = np.zeros((3, _CONFIDENCES))
        q = rule.classes.n_targets
        self.table = ScoreTable(np.zeros(q), np.full(q, _UNIT))

    @property
    def weight(self) -> float:
        """The sum of the weights."""
        return float(self.confusion.sum())

    @property
    def accuracy(self) -> float:
        """The share of rows whose class is predicted."""
        return float(np.trace(self.confusion)) / self.weight

    @property
    def balanced_accuracy(self) -> float:
        """The mean over classes that have rows of the share that is predicted."""
        of_class = self.confusion.sum(axis=1)
        there = of_class > 0
        return float((np.diag(self.confusion)[there] / of_class[there]).mean())

    @property
    def log_loss(self) -> float:
        """The mean of -log p, p the probability of the row's class."""
        return self.log_losses / self.weight

    @property
    def brier_score(self) -> float:
        """The mean squared error of probabilities: of one for two classes, else of all together."""
        return self.squares / self.weight

    @property
    def calibration_error(self) -> float:
        """The expected calibration error: |accuracy - confidence|, averaged over 15 equal bins."""
        _, confident, right = self.reliability
        return float(np.abs(right - confident).sum()) / self.weight

    @property
    def auc(self) -> float | None:
        """The area under the curve, for more classes the mean of each against the rest.

        None where a class has no rows.
        """
        areas = self.table.auc
        return None if np.isnan(areas).any() else float(areas.mean())

    @property
    def auc_error(self) -> float | None:
        """How far the exact area may be from `auc`."""
        return None if self.auc is None else float(self.table.auc_error.mean())

    def zero(self) -> ClassErrors:
        """Return the errors on no rows."""
        return ClassErrors(self.predictor, self.rule)

    def update(self, blocks: Iterable[Block]) -> None:
        """Add the errors on rows."""
        for block in blocks:
            scores = self.predictor.predict(block.X).reshape(block.y.shape)
            # What is not finite has been counted and is refused beside this.
            known: Array = np.asarray(np.isfinite(np.hstack([scores, block.y])).all(axis=1))
            rows = block.where(known)
            weights = np.ones(len(rows)) if rows.weights is None else rows.weights
            if len(rows):
                self._add(scores[known], rows.y, weights)

    def _add(self, scores: Floats, targets: Floats, weights: Floats) -> None:
        K, n = len(self.confusion), len(scores)
        of_class = (targets[:, 0] > 0).astype(int) if K == 2 else targets.argmax(axis=1)
        predicted = self.rule.codes(scores)
        logs = self.rule.log_probabilities(scores)
        probabilities = np.exp(logs)
        places = K * of_class + predicted
        self.confusion += np.bincount(places, weights, K * K).reshape(K, K)
        nearest = np.clip(probabilities[np.arange(n), of_class], _LEAST, 1.0)
        self.log_losses -= float(weights @ np.log(nearest))
        errors = probabilities.copy()
        errors[np.arange(n), of_class] -= 1.0
        squares = errors[:, 1] ** 2 if K == 2 else (errors**2).sum(axis=1)
        self.squares += float(weights @ squares)
        confidence = probabilities[np.arange(n), predicted]
        bins = np.minimum((confidence * _CONFIDENCES).astype(int), _CONFIDENCES - 1)
        right = weights * (predicted == of_class)
        for i, values in enumerate((weights, weights * confidence, right)):
            self.reliability[i] += np.bincount(bins, values, _CONFIDENCES)
        # Ranks are those of scikit-learn's: decisions for two classes, else probabilities.
        ranked = self.rule.decisions(scores) if K == 2 else _log_odds(logs)
        self.table.add(ranked, targets > 0, weights)

    def merge(self, other: ClassErrors) -> ClassErrors:
        """Return the errors on both sets of rows."""
        both = self.zero()
        for name in ("confusion", "log_losses", "squares", "reliability"):
            setattr(both, name, getattr(self, name) + getattr(other, name))
        both.table = self.table.merge(other.table)
        return both


def _log_odds(logs: Floats) -> Floats:
    """Return log p / (1 - p) of log p."""
    rest = np.maximum(-np.expm1(logs), _LEAST)
    return np.maximum(logs, np.log(_LEAST)) - np.log(rest)
