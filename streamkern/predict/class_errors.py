"""Errors of predicted classes and of their probabilities, as sums over rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamkern.predict.class_rule import codes_of
from streamkern.predict.class_scores import ScoreTable, is_known
from streamkern.predict.evaluation import Measure
from streamkern.statistics import part, total

if TYPE_CHECKING:
    from streamkern._typing import Floats
    from streamkern.predict.class_rule import ClassRule
    from streamkern.sources import Block

# Of the confidence in the predicted class, equally wide between 0 and 1.
_CONFIDENCES = 15
# Of the probability of a class.
_PROBABILITIES = 20
# Log-odds are often a few in size.
_UNIT = 4.0
# Probabilities are no nearer to 0 and 1 than this in a logarithm, as in scikit-learn.
_LEAST = float(np.finfo(np.float64).eps)


class ClassErrors(Measure):
    """How well classes and their probabilities are predicted: sums over rows.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger (2017), "On calibration of modern neural networks".
    """

    rule: ClassRule
    # What the weights of rows are multiplied by, for their K classes; errors are without.
    factors: Floats | None = None
    # Weights of rows by their class, and by the class that was predicted.
    confusion: Floats = total("n_classes", "n_classes")
    log_losses: float = total()
    squares: float = total()
    # Weight, confidence and weight that is predicted rightly, by confidence.
    reliability: Floats = total(3, _CONFIDENCES)
    # Of each class, the second alone of two, in bins of its probability: the weight of rows, the
    # sum of the probabilities that they are of it, the weight of those that are, and the number.
    by_probability: Floats = total("rule.classes.n_targets", 4, _PROBABILITIES)
    # Log-odds of each class.
    table: ScoreTable = part(lambda errors: _log_odds_table(errors.rule.classes.n_targets))

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.rule.classes)

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

    def add(self, rows: Block, predicted: Floats) -> None:
        """Add rows, but for those that are not finite, which others have counted and refuse."""
        known = is_known(predicted, rows.y)
        scores, targets = predicted[known], rows.y[known]
        if not len(scores):
            return
        weights = np.ones(len(scores)) if rows.weights is None else rows.weights[known]
        K, n, rule = len(self.rule.classes), len(scores), self.rule
        of_class = codes_of(targets)
        if rows.weights is not None and self.factors is not None:
            weights = weights / self.factors[of_class]
        chosen = rule.codes(scores)
        logs = rule.log_probabilities(scores)
        probabilities = np.exp(logs)
        places = K * of_class + chosen
        self.confusion += np.bincount(places, weights, K * K).reshape(K, K)
        nearest = np.clip(probabilities[np.arange(n), of_class], _LEAST, 1.0)
        self.log_losses -= float(weights @ np.log(nearest))
        errors = probabilities.copy()
        errors[np.arange(n), of_class] -= 1.0
        squares = errors[:, 1] ** 2 if K == 2 else (errors**2).sum(axis=1)
        self.squares += float(weights @ squares)
        confidence = probabilities[np.arange(n), chosen]
        bins = np.minimum((confidence * _CONFIDENCES).astype(int), _CONFIDENCES - 1)
        right = weights * (chosen == of_class)
        for i, values in enumerate((weights, weights * confidence, right)):
            self.reliability[i] += np.bincount(bins, values, _CONFIDENCES)
        B, of_each = _PROBABILITIES, probabilities[:, 1:] if K == 2 else probabilities
        bins = np.minimum((of_each * B).astype(int), B - 1)
        for j, (sums, p) in enumerate(zip(self.by_probability, of_each.T, strict=True)):
            mine = weights * (targets[:, j] > 0)
            for i, values in enumerate((weights, weights * p, mine, np.ones(n))):
                sums[i] += np.bincount(bins[:, j], values, B)
        # Ranks are those of scikit-learn's: decisions for two classes, else probabilities.
        ranked = rule.decisions(scores) if K == 2 else _log_odds(logs)
        self.table.count(ranked, targets > 0, weights)


def _log_odds_table(n_targets: int) -> ScoreTable:
    return ScoreTable(np.zeros(n_targets), np.full(n_targets, _UNIT))


def _log_odds(logs: Floats) -> Floats:
    """Return log p / (1 - p) of log p."""
    rest = np.maximum(-np.expm1(logs), _LEAST)
    return np.maximum(logs, np.log(_LEAST)) - np.log(rest)
