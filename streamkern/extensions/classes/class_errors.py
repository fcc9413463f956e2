"""Sums over rows of what classes are judged by: errors, probabilities, and scores in fine bins."""

from collections.abc import Callable
from typing import Any

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.extensions.classes.class_rows import error_rows
from streamkern.extensions.classes.class_rule import LEAST, ClassRule, codes_of
from streamkern.predict.evaluation import Measure
from streamkern.sources import Block
from streamkern.statistics import part, total

# Bins of a score, and of all scores together at the most.
_BINS, _ALL_BINS = (256, 4096), 1 << 19
# Of the confidence in the predicted class, equally wide between 0 and 1.
_CONFIDENCES = 15
# Of the probability of a class.
_PROBABILITIES = 20
# Log-odds are often a few in size.
_UNIT = 4.0


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
    # Rows that are not of the class, and those that are.
    n_of_class: Floats = total("centre.size", 2)

    @property
    def n_bins(self) -> int:
        fewest, most = _BINS
        return min(max(1 << (_ALL_BINS // len(self.centre)).bit_length() - 1, fewest), most)

    def add(self, rows: Block, predicted: Floats) -> None:
        known = is_known(predicted, rows.y)
        weights = None if rows.weights is None else rows.weights[known]
        self.count(predicted[known], rows.y[known] > 0, weights)

    def count(self, scores: Floats, is_class: Array, weights: Floats | None) -> None:
        """Add scores (n, q) of rows of weights (n,), each of the class of a score or not."""
        self.n_rows += len(scores)
        of_class = np.count_nonzero(is_class, axis=0)
        self.n_of_class += np.column_stack([len(scores) - of_class, of_class])
        B, shape = self.n_bins, self.weights.shape[1:]
        apart = scores - self.centre
        between = apart / (self.unit + np.abs(apart))
        places = np.minimum(((between + 1.0) * (B / 2)).astype(np.int64), B - 1) + B * is_class
        for j in range(len(self.weights)):
            mine = scores[:, j] if weights is None else scores[:, j] * weights
            self.weights[j] += np.bincount(places[:, j], weights, 2 * B).reshape(shape)
            self.sums[j] += np.bincount(places[:, j], mine, 2 * B).reshape(shape)

    def shares(self, target: int) -> tuple[Floats, Floats, Floats]:
        """Return mean score, weight and share of the class of every bin that has rows, (m,)."""
        weights, sums = self.weights[target], self.sums[target].sum(axis=0)
        whole = weights.sum(axis=0)
        held = whole > 0
        return sums[held] / whole[held], whole[held], weights[1, held] / whole[held]

    @property
    def auc(self) -> Floats:
        """The area under the ROC curve, (q,), NaN where all are alike; equal bins count as half."""
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
    """Say which rows (n,) have finite scores and targets; other sums refuse the rest."""
    return np.asarray(np.isfinite(np.hstack([scores, targets])).all(axis=1))


class ClassErrors(Measure):
    """How well classes and their probabilities are predicted: sums over rows."""

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

    def figures(self) -> dict[str, float | None]:
        """Return what is said of predictions; areas are None where a class has no rows."""
        names = "accuracy", "balanced_accuracy", "log_loss", "brier_score", "auc", "auc_error"
        found = {name: getattr(self, name) for name in names}
        return found | {"expected_calibration_error": self.calibration_error}

    def rows(self, number: Callable[[Any], str]) -> list[tuple[str, str]]:
        """Return the same in rows of words."""
        return error_rows(self.figures(), number)

    @property
    def n_classes(self) -> int:
        return len(self.rule.classes)

    @property
    def weight(self) -> float:
        return float(self.confusion.sum())

    @property
    def accuracy(self) -> float:
        return float(np.trace(self.confusion)) / self.weight

    score = accuracy  # as scikit-learn's of a classifier

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
        """|accuracy - confidence|, averaged over 15 equal bins.

        Guo, Pleiss, Sun and Weinberger (2017), "On calibration of modern neural networks".
        """
        _, confident, right = self.reliability
        return float(np.abs(right - confident).sum()) / self.weight

    @property
    def auc(self) -> float | None:
        """The mean area of classes, each against the rest; None where a class has no rows."""
        areas = self.table.auc
        return None if np.isnan(areas).any() else float(areas.mean())

    @property
    def auc_error(self) -> float | None:
        return None if self.auc is None else float(self.table.auc_error.mean())

    def add(self, rows: Block, predicted: Floats) -> None:
        known = is_known(predicted, rows.y)
        scores, targets = predicted[known], rows.y[known]
        if not len(scores):
            return
        weights = rows.each_weight()[known]
        K, n, rule = len(self.rule.classes), len(scores), self.rule
        of_class = codes_of(targets)
        if rows.weights is not None and self.factors is not None:
            weights = weights / self.factors[of_class]
        chosen = rule.codes(scores)
        logs = rule.log_probabilities(scores)
        probabilities = np.exp(logs)
        places = K * of_class + chosen
        self.confusion += np.bincount(places, weights, K * K).reshape(K, K)
        nearest = np.clip(probabilities[np.arange(n), of_class], LEAST, 1.0)
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
        ranked = rule.calibrator.decisions(scores) if K == 2 else _log_odds(logs)
        self.table.count(ranked, targets > 0, weights)


def _log_odds_table(n_targets: int) -> ScoreTable:
    return ScoreTable(np.zeros(n_targets), np.full(n_targets, _UNIT))


def _log_odds(logs: Floats) -> Floats:
    """Return log p / (1 - p) of log p."""
    rest = np.maximum(-np.expm1(logs), LEAST)
    return np.maximum(logs, np.log(LEAST)) - np.log(rest)
