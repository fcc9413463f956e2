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

# Leading features that sigma follows from, and powers of the rank of the prediction.
_FEATURES, POWERS = 256, 3
TENTHS = 10


def leading_features(feature_map: FeatureMap) -> FeatureMap:
    """Return the map of the features that sigma follows from."""
    D, step = feature_map.n_components, feature_map.nesting
    d = min(_FEATURES // max(step, 1) * max(step, 1) or step, D)
    if d == D:
        return feature_map
    return feature_map.first(d) if step else feature_map.subset(np.arange(d))


def rank_powers(predicted: Floats, ranks: Floats) -> Floats:
    """Return the powers (n, 3) of the ranks of predictions (n,) among others, at even ranks."""
    known = np.interp(predicted, ranks, np.linspace(-1.0, 1.0, len(ranks)))
    return np.stack([known**k for k in range(1, POWERS + 1)], axis=1)


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

    def arrays(self) -> dict[str, Floats]:
        names = ("slopes", "ranks", "ends", "edges", "levels", "scores")
        own = {name: getattr(self, name) for name in names}
        return {"coef": self.features.coef, "intercept": self.features.intercept, **own}

    def at(self, level: Any, limits: tuple[float, float] | None) -> "Interval":
        """Return intervals that hold a share of new targets, or raise ParameterError."""
        is_share = isinstance(level, (int, float, np.number)) and 0 < level < 1
        if not is_share or isinstance(level, bool):
            raise ParameterError(
                f"an interval is of a share of new targets, more than 0 and less than 1, not "
                f"{level!r}; give 0.9 (--interval 90)."
            )
        place = int(np.searchsorted(self.levels, level - 1e-9))
        if place == len(self.levels):
            raise ParameterError(
                f"intervals of {100 * level:.6g}% need more held-out rows than the fit had, which "
                f"tell {100 * self.levels[-1]:.6g}% at most; ask for that, or fit more rows."
            )
        return Interval(self, self.scores[:, place], limits)

    def log_errors(self, X: Array, predicted: Floats) -> Floats:
        """Return log sigma (n, q) of rows with their predictions (n, q)."""
        logs = self.features.predict(X)
        for j, ranks in enumerate(self.ranks.T):
            logs[:, j] += rank_powers(predicted[:, j], ranks) @ self.slopes[:, j]
        return np.clip(logs, *self.ends)

    def tenths(self, logs: Floats) -> Array:
        """Return the tenth of difficulty, 0 to 9, of every log sigma, (n, q)."""
        each = zip(self.edges.T, logs.T, strict=True)
        return np.stack([np.searchsorted(edges, of_rows) for edges, of_rows in each], axis=1)


@dataclass(frozen=True)
class Interval(Uncached):
    """Intervals at one level, clipped to the limits of targets."""

    intervals: Intervals
    scores: Floats  # (G, q)
    limits: tuple[float, float] | None

    def bounds(self, X: Array, predicted: Floats) -> tuple[Floats, Floats, Array]:
        """Return lower and upper ends (n, q) of rows with predictions (n, q), and their tenths."""
        logs = self.intervals.log_errors(X, predicted)
        tenths = self.intervals.tenths(logs)
        groups = tenths * len(self.scores) // TENTHS
        half = np.exp(logs) * np.take_along_axis(self.scores, groups, axis=0)
        low, high = (-np.inf, np.inf) if self.limits is None else self.limits
        return np.clip(predicted - half, low, high), np.clip(predicted + half, low, high), tenths


@dataclass(frozen=True)
class IntervalEnds(Uncached):
    """A predictor and its intervals, for rows that are predicted lazily."""

    predictor: Predictor
    interval: Interval

    def predict(self, X: Array) -> Floats:
        """Return lower ends and then upper ones, (n, 2q)."""
        predicted = self.predictor.predict(X).reshape(len(X), -1)
        return np.concatenate(self.interval.bounds(X, predicted)[:2], axis=1)


class IntervalErrors(Measure):
    """Rows, and weights of those that intervals hold, by tenth of difficulty and target."""

    interval: Interval
    n_targets: int
    n_rows: Array = total(TENTHS, "n_targets", dtype=np.int64)
    weight: Floats = total(TENTHS, "n_targets")
    held: Floats = total(TENTHS, "n_targets")
    widths: Floats = total(TENTHS, "n_targets")

    def add(self, rows: Block, predicted: Floats) -> None:
        lower, upper, tenths = self.interval.bounds(rows.X, predicted)
        weights, columns = rows.each_weight()[:, None], np.arange(self.n_targets)
        inside = (lower <= rows.y) & (rows.y <= upper)
        sums = (self.n_rows, 1), (self.weight, weights), (self.held, weights * inside)
        for found, values in (*sums, (self.widths, weights * (upper - lower))):
            np.add.at(found, (tenths, columns), values)

    def facts(self, *, flat: bool) -> dict[str, Any]:
        """Return coverage and mean width, in all and by tenth; None where there are no rows."""

        def shares(*sums: Floats) -> dict[str, Any]:
            weight, held, widths = sums
            some = np.where(weight > 0, weight, np.nan)
            found = {"coverage": held / some, "width": widths / some}
            plain = {
                name: [None if np.isnan(value) else float(value) for value in values]
                for name, values in found.items()
            }
            return {name: values[0] for name, values in plain.items()} if flat else plain

        sums = self.weight, self.held, self.widths
        each = [
            {**shares(*(part[k] for part in sums)), "rows": (rows[0] if flat else rows).tolist()}
            for k, rows in enumerate(self.n_rows)
        ]
        whole = shares(*(part.sum(axis=0) for part in sums))
        return {**whole, "by_difficulty": each}
