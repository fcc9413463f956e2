"""From scores to classes and their probabilities, by a calibrator of every score."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import DataError
from streamkern.extensions.classes.class_labels import Classes

# Probabilities are no nearer to 0 and 1 than this in a logarithm, as in scikit-learn.
LEAST = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Calibrator(ABC):
    """Odds of q classes, each against the rest, by their scores; every field has q entries."""

    name: ClassVar[str]

    @abstractmethod
    def log_odds(self, scores: Floats) -> Floats:
        """Return log p / (1 - p), (n, q), for scores (n, q)."""

    def decisions(self, scores: Floats) -> Floats:
        """Return what classes are chosen by, (n, q): above 0, or the largest."""
        return self.log_odds(scores)

    def as_dict(self) -> dict[str, Any]:
        """Return the parameters as plain JSON values."""
        each = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: [np.asarray(one).tolist() for one in values] for name, values in each.items()}

    @classmethod
    @abstractmethod
    def from_dict(cls, parameters: dict[str, Any], n_targets: int) -> Self:
        """Return what `as_dict` described; KeyError, TypeError or ValueError if nothing did."""


@dataclass(frozen=True)
class PlattSigmoid(Calibrator):
    """p = 1 / (1 + exp(-(a s + b))), of slopes a (q,) and offsets b (q,).

    Platt (1999), "Probabilistic outputs for support vector machines".
    """

    slope: Floats
    offset: Floats

    name: ClassVar[str] = "sigmoid"

    def log_odds(self, scores: Floats) -> Floats:
        return scores * self.slope + self.offset

    @classmethod
    def from_dict(cls, parameters: dict[str, Any], n_targets: int) -> "PlattSigmoid":
        return cls(*(_numbers(parameters[name], n_targets) for name in ("slope", "offset")))


@dataclass(frozen=True)
class IsotonicSteps(Calibrator):
    """A function of every score that never falls, straight between its points, within (0, 1).

    Zadrozny and Elkan (2002), "Transforming classifier scores into accurate multiclass probability
    estimates".
    """

    scores: tuple[Floats, ...]
    probabilities: tuple[Floats, ...]

    name: ClassVar[str] = "isotonic"

    def log_odds(self, scores: Floats) -> Floats:
        odds = np.empty_like(scores, dtype=np.float64)
        for j, (points, values) in enumerate(zip(self.scores, self.probabilities, strict=True)):
            p = np.interp(scores[:, j], points, values)
            odds[:, j] = np.where(np.isnan(scores[:, j]), np.nan, np.log(p) - np.log1p(-p))
        return odds

    @classmethod
    def from_dict(cls, parameters: dict[str, Any], n_targets: int) -> "IsotonicSteps":
        points, values = _rising(parameters["scores"], parameters["probabilities"], n_targets)
        if not all(p[0] > 0 and p[-1] < 1 for p in values):
            raise ValueError("probabilities that are not between 0 and 1")
        return cls(points, values)


@dataclass(frozen=True)
class LogOddsSpline(Calibrator):
    """Log-odds that rise, straight between points of every score, and go on beyond the last.

    They are level where a score tells nothing, which has one point.
    """

    scores: tuple[Floats, ...]
    odds: tuple[Floats, ...]

    name: ClassVar[str] = "spline"

    def log_odds(self, scores: Floats) -> Floats:
        found = np.empty_like(scores, dtype=np.float64)
        for j, (x, v) in enumerate(zip(self.scores, self.odds, strict=True)):
            s = scores[:, j]
            found[:, j] = np.interp(s, x, v)
            rises = np.diff(v) / np.diff(x) if len(x) > 1 else np.zeros(1)
            if rises[0]:
                found[:, j] += np.minimum(s - x[0], 0.0) * rises[0]
            if rises[-1]:
                found[:, j] += np.maximum(s - x[-1], 0.0) * rises[-1]
        return found

    @classmethod
    def from_dict(cls, parameters: dict[str, Any], n_targets: int) -> "LogOddsSpline":
        return cls(*_rising(parameters["scores"], parameters["odds"], n_targets))


@dataclass(frozen=True)
class FixedRule(Calibrator):
    """What has no parameters: classes are chosen by scores, which differ where odds are cut off."""

    def decisions(self, scores: Floats) -> Floats:
        return scores

    @classmethod
    def from_dict(cls, parameters: dict[str, Any], n_targets: int) -> Self:  # noqa: ARG003
        return cls()


@dataclass(frozen=True)
class PlainRule(FixedRule):
    """p = (1 + s) / 2, cut off at 0 and 1: what least squares on +1 and -1 estimates."""

    name: ClassVar[str] = "none"

    def log_odds(self, scores: Floats) -> Floats:
        p = np.clip((1.0 + scores) / 2.0, LEAST, 1.0 - LEAST)
        return np.log(p) - np.log1p(-p)


@dataclass(frozen=True)
class AdditiveVotes(FixedRule):
    """Of votes V, p_k in proportion to exp(V_k); for two classes, of one score, its log-odds.

    Friedman, Hastie and Tibshirani (2000), "Additive logistic regression: a statistical view of
    boosting".
    """

    name: ClassVar[str] = "votes"

    def log_odds(self, scores: Floats) -> Floats:
        if scores.shape[1] == 1:
            return scores
        odds = np.empty_like(scores, dtype=np.float64)
        with np.errstate(invalid="ignore"):  # rows without a score
            for k in range(scores.shape[1]):
                others = np.delete(scores, k, axis=1)
                odds[:, k] = scores[:, k] - np.logaddexp.reduce(others, axis=1)
        return odds


CALIBRATORS: dict[str, type[Calibrator]] = {
    each.name: each
    for each in (LogOddsSpline, PlattSigmoid, IsotonicSteps, PlainRule, AdditiveVotes)
}


def _numbers(values: Any, n: int | None = None) -> Floats:
    found = np.array(values, dtype=np.float64)
    if found.ndim != 1 or (n is not None and len(found) != n) or not np.isfinite(found).all():
        raise ValueError(f"parameters of shape {found.shape}")
    return found


def _rising(scores: Any, values: Any, n_targets: int) -> tuple[tuple[Floats, ...], ...]:
    """Return the points and values of functions of q scores that do not fall."""
    points, found = (tuple(map(_numbers, each)) for each in (scores, values))
    if not len(points) == len(found) == n_targets:
        raise ValueError(f"{len(points)} and {len(found)} functions of {n_targets} scores")
    for x, v in zip(points, found, strict=True):
        if not (len(x) == len(v) > 0 and (np.diff(x) > 0).all() and (np.diff(v) >= 0).all()):
            raise ValueError("a function that falls")
    return points, found


def codes_of(values: Floats) -> Array:
    """Return the place of the class of every row, (n,): of the largest score, or by its sign."""
    return values.argmax(axis=1) if values.shape[1] > 1 else (values[:, 0] > 0) * 1


@dataclass(frozen=True)
class ClassRule:
    """Classes and probabilities of scores (n, q): q is K, but 1 for two classes.

    The probabilities of more classes are those of each against the rest, divided by their sum.
    """

    classes: Classes
    calibrator: Calibrator

    def plain_decisions(self, scores: Floats) -> Floats:
        """Return what classes are chosen by, as scikit-learn: (n,) for two, else (n, K)."""
        decisions = self.calibrator.decisions(scores)
        return decisions[:, 0] if len(self.classes) == 2 else decisions

    def codes(self, scores: Floats) -> Array:
        """Return the place of the chosen class among the classes, (n,)."""
        return codes_of(self.calibrator.decisions(scores))

    def labels(self, scores: Floats) -> Array:
        """Return the chosen classes (n,); raise DataError if a score is not finite."""
        unknown = ~np.isfinite(scores).all(axis=1)
        if unknown.any():
            raise DataError(
                f"{unknown.sum():,} of {len(scores):,} rows have no finite score, and so no class, "
                f"because their inputs are NaN, infinite or overflow; leave them out."
            )
        return self.classes.values[self.codes(scores)]

    def log_probabilities(self, scores: Floats) -> Floats:
        """Return the logarithms of the probabilities of the classes, (n, K), NaN as scores are."""
        odds = self.calibrator.log_odds(scores)
        if len(self.classes) == 2:
            odds = np.column_stack([-odds[:, 0], odds[:, 0]])
        with np.errstate(invalid="ignore"):  # rows without a score
            logs: Floats = -np.logaddexp(0.0, -odds)
            if len(self.classes) > 2:
                logs -= np.logaddexp.reduce(logs, axis=1)[:, None]
        return logs

    def probabilities(self, scores: Floats) -> Floats:
        return np.exp(self.log_probabilities(scores))

    def as_dict(self) -> dict[str, Any]:
        return {
            "classes": self.classes.as_dict(),
            "calibration": self.calibrator.name,
            "calibration_parameters": self.calibrator.as_dict(),
        }

    @classmethod
    def from_dict(cls, described: dict[str, Any]) -> "ClassRule":
        """Return the rule that `as_dict` described; errors are those of `WRONG_VALUES`."""
        classes = Classes.from_dict(described["classes"])
        calibrator = CALIBRATORS[described["calibration"]]
        parameters = described["calibration_parameters"]
        return cls(classes, calibrator.from_dict(parameters, classes.n_targets))
