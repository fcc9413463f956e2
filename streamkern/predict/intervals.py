"""Prediction intervals: the error expected of a row, and quantiles of errors over it.

    |y - f(x)| <= s_g sigma(x),    log sigma(x) = c + v^T phi(x)[:d] + u^T (r, r^2, r^3)

r is the rank of the prediction, from -1 to 1, and s_g the quantile of |y - f| / sigma over rows
held out, in the group g of rows of like sigma: so intervals hold their share in every group.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import ParameterError
from streamkern.features import FeatureMap
from streamkern.predict.evaluation import Measure
from streamkern.predict.predictor import Predictor, Uncached
from streamkern.sources import Block
from streamkern.statistics import total

# Leading features that sigma follows from, even ranks of predictions, and powers of the rank.
_FEATURES, RANKS, POWERS = 256, 33, 3
TENTHS = 10


def leading_features(feature_map: FeatureMap) -> FeatureMap:
    """Return the map of the features that sigma follows from."""
    D, step = feature_map.n_components, feature_map.nesting or 1
    d = max(_FEATURES // step * step, step)
    if d >= D:
        return feature_map
    return feature_map.first(d) if feature_map.nesting else feature_map.subset(np.arange(d))


def rank_powers(predicted: Floats, ranks: Floats) -> Floats:
    """Return the powers (n, 3) of the ranks of predictions (n,), among those of even ranks."""
    known = np.interp(predicted, ranks, np.linspace(-1.0, 1.0, RANKS))
    return known[:, None] ** np.arange(1, POWERS + 1)


def place_of_level(level: Any, levels: Floats) -> int:
    """Return where a share of rows comes among those that are known, or raise ParameterError."""
    is_number = isinstance(level, (int, float, np.number)) and not isinstance(level, bool)
    if not (is_number and 0 < level < 1):
        raise ParameterError(
            f"an interval or a set is to hold a share of new targets, more than 0 and less than 1, "
            f"not {level!r}; give 0.9 (--interval 90)."
        )
    return int(np.searchsorted(levels, level - 1e-9))


@dataclass(frozen=True)
class Intervals(Uncached):
    """What a model knows of its errors.

    Papadopoulos, Gammerman and Vovk (2008), "Normalized nonconformity measures for regression
    conformal prediction"; Vovk, Gammerman and Shafer (2005), "Algorithmic learning in a random
    world", section 4.5, for groups, which are Mondrian categories.
    """

    features: Predictor  # c + v^T phi(x)[:d], (n, q)
    slopes: Floats  # u, (3, q)
    ranks: Floats  # predictions of even ranks, (R, q)
    ends: Floats  # the least and the largest log sigma, (2, q)
    edges: Floats  # of tenths of log sigma, (9, q)
    levels: Floats  # shares of rows, (k,), ascending
    scores: Floats  # quantiles of |y - f| / sigma at these, (G, k, q)

    def at(self, level: Any, predictor: Predictor) -> "Interval":
        """Return intervals that hold a share of new targets, or raise ParameterError."""
        place = place_of_level(level, self.levels)
        if place == len(self.levels):
            raise ParameterError(
                f"intervals of {100 * level:.6g}% need more held-out rows than the fit had, which "
                f"tell {100 * self.levels[-1]:.6g}% at most; ask for that, or fit more rows."
            )
        return Interval(self, self.scores[:, place], predictor)

    def log_errors(self, X: Array, predicted: Floats) -> Floats:
        """Return log sigma (n, q) of rows with their predictions (n, q)."""
        logs = self.features.predict(X)
        for j, ranks in enumerate(self.ranks.T):
            logs[:, j] += rank_powers(predicted[:, j], ranks) @ self.slopes[:, j]
        return np.clip(logs, *self.ends)


@dataclass(frozen=True)
class Interval(Uncached):
    """Intervals at one level, about the predictions of a model."""

    intervals: Intervals
    scores: Floats  # (G, q)
    predictor: Predictor

    def bounds(self, X: Array, predicted: Floats) -> tuple[Floats, Floats, Array]:
        """Return lower and upper ends (n, q) of rows, and their tenths of difficulty, 0 to 9."""
        logs = self.intervals.log_errors(X, predicted)
        tenths = (logs > self.intervals.edges[:, None]).sum(axis=0)
        groups = tenths * len(self.scores) // TENTHS
        half = np.exp(logs) * np.take_along_axis(self.scores, groups, axis=0)
        limits = self.predictor.limits or (-np.inf, np.inf)
        return np.clip(predicted - half, *limits), np.clip(predicted + half, *limits), tenths

    def predict(self, X: Array) -> Floats:
        """Return lower ends and then upper ones, (n, 2q)."""
        predicted = self.predictor.predict(X).reshape(len(X), -1)
        return np.concatenate(self.bounds(X, predicted)[:2], axis=1)


class IntervalErrors(Measure):
    """Rows, weights, weights inside and widths of intervals by tenth of difficulty and target."""

    interval: Interval
    sums: Floats = total(4, TENTHS, "interval.predictor.n_targets")

    def add(self, rows: Block, predicted: Floats) -> None:
        lower, upper, tenths = self.interval.bounds(rows.X, predicted)
        weights, inside = rows.each_weight()[:, None], (lower <= rows.y) & (rows.y <= upper)
        values = np.ones_like(upper), weights, weights * inside, weights * (upper - lower)
        for found, each in zip(self.sums, values, strict=True):
            np.add.at(found, (tenths, np.arange(tenths.shape[1])), each)

    def facts(self) -> dict[str, Any]:
        """Return coverage and mean width, in all and by tenth: NaN where there are no rows."""
        tenths = [self._shares(self.sums[:, k]) for k in range(TENTHS)]
        return self._shares(self.sums.sum(axis=1)) | {"by_difficulty": tenths}

    def _shares(self, sums: Floats) -> dict[str, Any]:
        rows, weight, held, widths = sums
        some = np.where(weight > 0, weight, np.nan)
        facts = {"coverage": held / some, "width": widths / some, "rows": rows.astype(int)}
        flat = self.interval.predictor.flat
        return {name: (each[0] if flat else each).tolist() for name, each in facts.items()}
