"""Classifiers that vote in rounds, each on rows weighted by how the ones before it did.

The votes V (n, K) of all rounds add up to 0 for every row, a row's class is the one with most, and
the next round weighs a row of class y by s exp(-V_y): that is AdaBoost, whichever way scores become
votes.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.extensions.classes.class_rule import codes_of
from streamkern.predict.evaluation import Measure
from streamkern.predict.predictor import Predictor, RowFunction
from streamkern.runtime.scratch import Scratch
from streamkern.sources import Block
from streamkern.statistics import Statistic, total
from streamkern.statistics.folds import Weighting

# What least squares says of probabilities is no nearer to 0 and 1 than this in a logarithm.
_LEAST = 0.01
# Shares of wrong rows are no nearer to 0 and 1 than this, so that votes stay finite.
_LEAST_ERROR = 1e-10
# Exponents of rows that weigh nothing, and may be anywhere, are no larger than this.
_LARGEST = 700.0
# Weights that shrink by less than this are as they were, but for rounding.
_NO_PROGRESS = 1.0 - 1e-9


class Step(NamedTuple):
    """How far a round goes."""

    size: float  # what its votes are multiplied by
    shrinkage: float  # the mean weight of rows after it, over that before

    @property
    def is_forward(self) -> bool:
        """Whether the round does better than chance on its weights."""
        return self.size > 0 and self.shrinkage < _NO_PROGRESS


class Algorithm(NamedTuple):
    """How the scores of one round become votes, and how much these count."""

    votes: Callable[[Floats], Floats]  # of scores (n, K); they add up to 0 for every row
    # Of the weighted share of rows that the round alone gets wrong, the mean weight of rows after
    # it over that before if its votes are multiplied by the learning rate, that rate, and K.
    step: Callable[[float, float, float, int], Step]


def _one_vote(scores: Floats) -> Floats:
    """Return 1 - 1/K for the class of the largest score, and -1/K for the others; NaN without."""
    n, K = scores.shape
    votes = np.full((n, K), -1.0 / K)
    votes[np.arange(n), scores.argmax(axis=1)] += 1.0
    votes[~np.isfinite(scores).all(axis=1)] = np.nan
    return votes


def _by_error(error: float, after: float, learning_rate: float, n_classes: int) -> Step:  # noqa: ARG001
    error = min(max(error, _LEAST_ERROR), 1.0 - _LEAST_ERROR)
    size = learning_rate * (math.log((1.0 - error) / error) + math.log(n_classes - 1))
    right = (1.0 - error) * math.exp(-size * (1.0 - 1.0 / n_classes))
    return Step(size, right + error * math.exp(size / n_classes))


def _log_probabilities(scores: Floats) -> Floats:
    """Return log p_k less the mean over classes, of p = (1 + s) / 2."""
    return _centred(np.log(np.clip((1.0 + scores) / 2.0, _LEAST, 1.0 - _LEAST)))


def _centred(scores: Floats) -> Floats:
    return scores - scores.mean(axis=1, keepdims=True)


def _by_rate(error: float, after: float, learning_rate: float, n_classes: int) -> Step:  # noqa: ARG001
    return Step(learning_rate, after)


# Gentle and real: Friedman, Hastie and Tibshirani (2000), "Additive logistic regression: a
# statistical view of boosting"; gentle takes Newton's steps on the same loss, which never run off.
# Discrete: Freund and Schapire (1997), and Zhu, Zou, Rosset and Hastie (2009), "Multi-class
# AdaBoost", for SAMME; these have real votes of more classes than two as SAMME.R.
ALGORITHMS = {
    "gentle": Algorithm(_centred, _by_rate),
    "real": Algorithm(_log_probabilities, _by_rate),
    "discrete": Algorithm(_one_vote, _by_error),
}


class Round(NamedTuple):
    """A predictor of scores, one class against the rest, and what its votes are multiplied by."""

    predictor: Predictor
    step: float


@dataclass(frozen=True)
class Ensemble(Weighting, RowFunction):
    """Rounds that vote together, none of them to begin with."""

    algorithm: str
    n_classes: int
    rounds: tuple[Round, ...] = ()
    # log of the mean of s exp(-V_y) over that of s, so that weights have one mean in every round.
    log_unit: float = 0.0

    def __len__(self) -> int:
        return len(self.rounds)

    @property
    def flat(self) -> bool:  # type: ignore[override]
        return self.n_classes == 2

    @property
    def n_targets(self) -> int:
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def n_features(self) -> int:
        return self.rounds[0].predictor.feature_map.n_features

    @property
    def n_components(self) -> int:
        """The number of features of the largest round: they are held one round at a time."""
        return max(each.predictor.n_components for each in self.rounds)

    def check(self, shape: tuple[int, ...]) -> None:
        self.rounds[0].predictor.check(shape)

    def grown(self, predictor: Predictor, step: Step) -> "Ensemble":
        rounds = (*self.rounds, Round(predictor, step.size))
        return replace(self, rounds=rounds, log_unit=self.log_unit + math.log(step.shrinkage))

    def votes_of(self, scores: Floats) -> Floats:
        """Return the votes (n, K), not multiplied yet, of a round with scores (n, q)."""
        each = np.hstack([-scores, scores]) if self.n_classes == 2 else scores
        return ALGORITHMS[self.algorithm].votes(each)

    def staged_votes(self, X: Array) -> Iterator[Floats]:
        """Yield the votes (n, K) of the first round, of the first two, and so on to all."""
        votes = np.zeros((len(X), self.n_classes))
        for each in self.rounds:
            scores = each.predictor.predict(X).reshape(len(X), self.n_targets)
            votes = votes + each.step * self.votes_of(scores)
            yield votes

    def votes(self, X: Array) -> Floats:
        """Return the votes of all rounds, (n, K), NaN for a row that is not finite."""
        votes = np.zeros((len(X), self.n_classes))
        for votes in self.staged_votes(X):  # noqa: B007  the last ones
            pass
        return votes

    def predict(self, X: Array) -> Floats:
        """Return scores: the votes (n, K), or (n,) those for the second class less the first's."""
        votes = self.votes(X)
        return votes[:, 1] - votes[:, 0] if self.n_classes == 2 else votes

    def buffered(self, n_rows: int, scratch: Scratch) -> Callable[[Array, Floats], None]:  # noqa: ARG002
        def write(X: Array, out: Floats) -> None:
            out[:] = self.predict(X).reshape(out.shape)

        return write

    def weights(self, block: Block) -> Floats:
        mine = self.votes(block.X)[np.arange(len(block)), codes_of(block.y)]
        return block.each_weight() * bounded_exp(-mine - self.log_unit)

    def reweighted(self, block: Block, sums: Any) -> Block:  # noqa: ARG002
        return replace(block, weights=self.weights(block))


def bounded_exp(exponents: Floats) -> Floats:
    """Return exp of every exponent, of large ones a large number that is still one."""
    return np.exp(np.minimum(exponents, _LARGEST))


class RoundErrors(Measure):
    """How a new round does on rows weighted by the rounds before it, of an ensemble."""

    ensemble: Ensemble
    step: float
    weight: float = total()
    wrong: float = total()  # the weight of the rows that the new round alone gets wrong
    after: float = total()  # the sum of the weights after it, if its votes are times the step

    def add(self, rows: Block, predicted: Floats) -> None:
        weights, codes = self.ensemble.weights(rows), codes_of(rows.y)
        votes = self.ensemble.votes_of(predicted)
        mine = votes[np.arange(len(rows)), codes]
        self.weight += float(weights.sum())
        self.wrong += float(weights @ (votes.argmax(axis=1) != codes))
        self.after += float(weights @ bounded_exp(-self.step * mine))


class StagedErrors(Statistic):
    """The share of rows that the first rounds get wrong, for every number of them, and its bound.

    Of two classes, a row is wrong only if the votes V_y of its own are not above 0, so the share is
    at most the mean of exp(-V_y).  Of more classes V_y can be large, and others larger.
    Freund and Schapire (1997), "A decision-theoretic generalization of on-line learning and an
    application to boosting".
    """

    ensemble: Ensemble
    weight: float = total()
    wrong: Floats = total("n_rounds")
    bounds: Floats = total("n_rounds")

    @property
    def n_rounds(self) -> int:
        return len(self.ensemble)

    @property
    def errors(self) -> Floats:
        return self.wrong / self.weight

    @property
    def error_bounds(self) -> Floats | None:
        """What that share is at most, (T,), or None of more than two classes."""
        two = self.ensemble.n_classes == 2
        return np.minimum(self.bounds / self.weight, 1.0) if two else None

    def update(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            weights = block.each_weight()
            codes, rows = codes_of(block.y), np.arange(len(block))
            self.weight += float(weights.sum())
            for i, votes in enumerate(self.ensemble.staged_votes(block.X)):
                self.wrong[i] += weights @ (votes.argmax(axis=1) != codes)
                self.bounds[i] += weights @ bounded_exp(-votes[rows, codes])
