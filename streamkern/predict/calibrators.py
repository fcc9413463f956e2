"""From the score of one class against the rest to the odds of that class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

if TYPE_CHECKING:
    from streamkern._typing import Floats

LEAST = float(np.finfo(np.float64).eps)


class Calibrator(ABC):
    """Odds of q classes, each against the rest, as functions of their scores."""

    name: ClassVar[str]

    @abstractmethod
    def log_odds(self, scores: Floats) -> Floats:
        """Return log p / (1 - p), (n, q), for scores (n, q)."""

    def decisions(self, scores: Floats) -> Floats:
        """Return what classes are chosen by, (n, q): above 0, or the largest."""
        return self.log_odds(scores)

    @abstractmethod
    def as_dict(self) -> dict[str, Any]:
        """Return the parameters as plain JSON values."""

    @classmethod
    @abstractmethod
    def from_dict(cls, parameters: dict[str, Any], n_targets: int) -> Self:
        """Return what `as_dict` described; KeyError, TypeError or ValueError if nothing did."""


@dataclass(frozen=True)
class PlattSigmoid(Calibrator):
    """p = 1 / (1 + exp(-(a s + b))), of slopes a (q,) and offsets b (q,).

    References
    ----------
    Platt (1999), "Probabilistic outputs for support vector machines".
    """

    slope: Floats
    offset: Floats

    name: ClassVar[str] = "sigmoid"

    def log_odds(self, scores: Floats) -> Floats:
        """Return a s + b."""
        odds: Floats = scores * self.slope + self.offset
        return odds

    def as_dict(self) -> dict[str, Any]:
        """Return slopes and offsets."""
        return {"slope": self.slope.tolist(), "offset": self.offset.tolist()}

    @classmethod
    def from_dict(cls, parameters: dict[str, Any], n_targets: int) -> PlattSigmoid:
        """Return the sigmoids."""
        return cls(*(_numbers(parameters[name], n_targets) for name in ("slope", "offset")))


@dataclass(frozen=True)
class IsotonicSteps(Calibrator):
    """A function of every score that never falls, straight between its points.

    Their probabilities are between 0 and 1, both excluded.

    References
    ----------
    Zadrozny and Elkan (2002), "Transforming classifier scores into accurate multiclass probability
    estimates".
    """

    scores: tuple[Floats, ...]
    probabilities: tuple[Floats, ...]

    name: ClassVar[str] = "isotonic"

    def log_odds(self, scores: Floats) -> Floats:
        """Return the log-odds of the interpolated probabilities."""
        odds = np.empty_like(scores, dtype=np.float64)
        for j, (points, values) in enumerate(zip(self.scores, self.probabilities, strict=True)):
            p = np.interp(scores[:, j], points, values)
            odds[:, j] = np.where(np.isnan(scores[:, j]), np.nan, np.log(p) - np.log1p(-p))
        return odds

    def as_dict(self) -> dict[str, Any]:
        """Return the points of every function."""
        return {
            "scores": [points.tolist() for points in self.scores],
            "probabilities": [values.tolist() for values in self.probabilities],
        }

    @classmethod
    def from_dict(cls, parameters: dict[str, Any], n_targets: int) -> IsotonicSteps:
        """Return the functions."""
        points = [_numbers(each) for each in parameters["scores"]]
        values = [_numbers(each) for each in parameters["probabilities"]]
        if not len(points) == len(values) == n_targets:
            raise ValueError(f"{len(points)} and {len(values)} functions of {n_targets} scores")
        for x, p in zip(points, values, strict=True):
            rising = len(x) == len(p) > 0 and (np.diff(x) > 0).all() and (np.diff(p) >= 0).all()
            if not (rising and p[0] > 0 and p[-1] < 1):
                raise ValueError("probabilities that fall, or are not between 0 and 1")
        return cls(tuple(points), tuple(values))


@dataclass(frozen=True)
class FixedRule(Calibrator):
    """What needs no parameters: classes are chosen by the scores themselves."""

    n_targets: int

    def decisions(self, scores: Floats) -> Floats:
        """Return the scores, which still differ where probabilities are cut off."""
        return scores

    def as_dict(self) -> dict[str, Any]:
        """Return nothing: there are no parameters."""
        return {}

    @classmethod
    def from_dict(cls, parameters: dict[str, Any], n_targets: int) -> Self:  # noqa: ARG003
        """Return the rule."""
        return cls(n_targets)


@dataclass(frozen=True)
class PlainRule(FixedRule):
    """p = (1 + s) / 2, cut off at 0 and 1: what least squares on +1 and -1 estimates."""

    name: ClassVar[str] = "none"

    def log_odds(self, scores: Floats) -> Floats:
        """Return the log-odds of the cut off probabilities."""
        p = np.clip((1.0 + scores) / 2.0, LEAST, 1.0 - LEAST)
        odds: Floats = np.log(p) - np.log1p(-p)
        return odds


@dataclass(frozen=True)
class AdditiveVotes(FixedRule):
    """Of votes V, p_k in proportion to exp(V_k); for two classes, of one score, its log-odds.

    References
    ----------
    Friedman, Hastie and Tibshirani (2000), "Additive logistic regression: a statistical view of
    boosting".
    """

    name: ClassVar[str] = "votes"

    def log_odds(self, scores: Floats) -> Floats:
        """Return log p / (1 - p)."""
        if self.n_targets == 1:
            return scores
        odds = np.empty_like(scores, dtype=np.float64)
        with np.errstate(invalid="ignore"):  # rows without a score
            for k in range(self.n_targets):
                others = np.delete(scores, k, axis=1)
                odds[:, k] = scores[:, k] - np.logaddexp.reduce(others, axis=1)
        return odds


CALIBRATORS: dict[str, type[Calibrator]] = {
    each.name: each for each in (PlattSigmoid, IsotonicSteps, PlainRule, AdditiveVotes)
}


def _numbers(values: Any, n: int | None = None) -> Floats:
    found = np.array(values, dtype=np.float64)
    if found.ndim != 1 or (n is not None and len(found) != n) or not np.isfinite(found).all():
        raise ValueError(f"parameters of shape {found.shape}")
    return found
