"""Support of rows: how well the rows of a fit cover the places of others."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from streamkern._typing import Array, Floats, Group
from streamkern.features import FeatureMap, Standardizer, trended
from streamkern.features.base import slices
from streamkern.features.metric import standardizer_of
from streamkern.kernels import DistanceKernel, Kernel, ShiftInvariantKernel
from streamkern.kernels.shift_invariant import distances
from streamkern.predict.evaluation import Measure
from streamkern.sources import Block
from streamkern.statistics import RowSample, total
from streamkern.storage.untrusted import finite_arrays

# Rows of less support are outside.
OUTSIDE = 0.01
# Numbers and rows of the sample that are kept at most, inputs that leave enough rows to tell one in
# a hundred, and rows whose distances are held at a time.
_NUMBERS, _MOST_ROWS, MOST_INPUTS, _ROWS_AT_ONCE = 1 << 17, 4096, 1024, 256
# Rows are covered, however dense others lie, where the kernel at the nearest is at least this, and
# no input so many deviations beyond the ends: their errors were those of other rows.
_NEAR, _BESIDE = 0.95, 0.1
# Ends of the classes of support that errors are told by.
_ENDS = np.array([0.0, OUTSIDE, *(k / 10 for k in range(1, 11))])


@dataclass(frozen=True)
class SupportRows:
    """Sampled rows of a fit, and how far each lies from the others.

    A row x has the score s(x) = d(x) / d99 + e(x): d is the distance to the nearest sampled row, as
    the kernel measures it, and d99 the one that 99% of the sampled rows stay below; e says how many
    deviations an input lies beyond the ends of the sample, which a bounded scale hides from d.
    The support of x is the share of sampled rows, x with them, whose score without themselves is at
    least s(x).  Of rows like those of the fit at most 1% have less than 1%.

    Laxhammar and Falkman (2015), "Inductive conformal anomaly detection for sequential detection of
    anomalous sub-trajectories".
    """

    standardizer: Standardizer
    kernel: Kernel | None  # None beside a trend, whose inputs it does not measure
    rows: Array  # (m, r), float32, standardised and over the length scale
    ends: Floats  # (2, p') of the kept inputs, in deviations
    beyond: Floats  # (m,), e of each without itself

    @classmethod
    def of(cls, feature_map: FeatureMap, kernel: Kernel, sample: RowSample) -> Self | None:
        """Take the first rows of a sample; None of too many inputs, or of one row."""
        standardizer, measure = standardizer_of(feature_map), _measure(feature_map, kernel)
        r, X = standardizer.n_outputs, sample.X[sample.weights > 0]
        X = X[: min(_MOST_ROWS, _NUMBERS // max(r, 1))]
        if not 0 < r <= MOST_INPUTS or len(X) == 1:
            return None
        rows, inputs = _placed(standardizer, measure, X)
        low, second, before, high = np.sort(inputs, axis=0)[[0, 1, -2, -1]]
        others = np.where(inputs == low, second, low), np.where(inputs == high, before, high)
        return cls(standardizer, measure, rows, np.stack([low, high]), _beyond(inputs, *others))

    def of_map(self, feature_map: FeatureMap) -> Self | None:
        """Return these rows if a map takes its inputs as they are here, else None."""
        return self if standardizer_of(feature_map) is self.standardizer else None

    @cached_property
    def gaps(self) -> Floats:
        """The distance of every sampled row to the nearest other, (m,)."""
        return self._nearest(self.rows, are_own=True)

    @cached_property
    def reference(self) -> tuple[float, Floats]:
        """The distance d99, and the scores of the sampled rows, ascending, (m,)."""
        unit = float(np.quantile(self.gaps, 1.0 - OUTSIDE) or self.gaps.max() or 1.0)
        return unit, np.sort(self.gaps / unit + self.beyond)

    @np.errstate(over="ignore", invalid="ignore")  # far out, where there is no support
    def support(self, X: Array) -> Floats:
        """Return the support (n,) of rows (n, p), NaN for a row that is not finite."""
        (unit, scores), found = self.reference, np.empty(len(X))
        for part in slices(len(X), _ROWS_AT_ONCE):
            rows, inputs = _placed(self.standardizer, self.kernel, np.asarray(X[part]))
            gaps, beyond = self._nearest(rows), _beyond(inputs, *self.ends)
            below = np.searchsorted(scores, gaps / unit + beyond)
            support = (1 + len(scores) - below) / (1 + len(scores))
            if isinstance(self.kernel, DistanceKernel):
                near = self.kernel.profile(gaps) >= _NEAR
                support[near & (beyond <= _BESIDE)] = 1.0
            support[~np.isfinite(inputs).all(axis=1)] = np.nan
            found[part] = support
        return found

    def _nearest(self, rows: Array, *, are_own: bool = False) -> Floats:
        """Return the distance of rows (n, r) to the nearest sampled one, or other one, (n,)."""
        nearest, kernel = np.empty(len(rows)), self.kernel
        euclidean = partial(distances, metric="euclidean")
        distance = kernel.distance if isinstance(kernel, ShiftInvariantKernel) else euclidean
        for part in slices(len(rows), _ROWS_AT_ONCE):
            apart = distance(rows[part], self.rows)
            if are_own:
                np.fill_diagonal(apart[:, part], np.inf)
            nearest[part] = apart.min(axis=1)
        return nearest

    def share_outside(self, support: Floats) -> float:
        """Return which share of rows is outside, 0 if that is no more than chance may bring."""
        known = support[~np.isnan(support)]
        share = float(np.mean(known < OUTSIDE)) if len(known) else 0.0
        chance = OUTSIDE * (1.0 / max(len(known), 1) + 1.0 / len(self.rows))
        return share * (share > max(2.0 * OUTSIDE, OUTSIDE + 3.0 * np.sqrt(chance)))

    def arrays(self) -> dict[str, Array]:
        return {name: getattr(self, name) for name in ("rows", "ends", "beyond", "gaps")}

    @classmethod
    def restore(cls, group: Group, feature_map: FeatureMap, kernel: Kernel) -> Self:
        """Return what `arrays` gave, or raise ValueError unless it is of such a map."""
        standardizer, m = standardizer_of(feature_map), len(group["gaps"])
        shapes: Any = {"rows": (m, standardizer.n_outputs), "beyond": (m,), "gaps": (m,)}
        shapes["ends"] = (2, len(standardizer.columns))
        found = finite_arrays(group, shapes, "f")
        gaps, measure = found.pop("gaps"), _measure(feature_map, kernel)
        restored = cls(standardizer, measure, **found)
        vars(restored)["gaps"] = gaps
        return restored


def _measure(feature_map: FeatureMap, kernel: Kernel) -> Kernel | None:
    return None if trended(feature_map) else kernel


def _placed(standardizer: Standardizer, kernel: Kernel | None, X: Array) -> tuple[Array, Floats]:
    """Return standardised rows over the length scale, rounded, and inputs in deviations alone."""
    rows = standardizer(X)
    scales = kernel.scales(rows.shape[1]) if isinstance(kernel, ShiftInvariantKernel) else 1.0
    inputs = (X[:, standardizer.columns] - standardizer.mean) / standardizer.deviation
    return (rows / scales).astype(np.float32), inputs


def _beyond(inputs: Floats, low: Floats, high: Floats) -> Floats:
    """Return how far the input that is farthest beyond the ends lies from them, (n,)."""
    return np.maximum(np.maximum(low - inputs, inputs - high).max(axis=1), 0.0)


class SupportErrors(Measure):
    """Squared errors of q targets by classes of support, of every k-th row."""

    support: SupportRows
    n_targets: int
    every: int = 1
    flat: bool = False
    n_rows: Array = total(len(_ENDS) - 1, dtype=np.int64)
    weight: Floats = total(len(_ENDS) - 1)
    squared: Floats = total(len(_ENDS) - 1, "n_targets")

    def add(self, rows: Block, predicted: Floats) -> None:
        chosen = rows.places() % self.every == 0
        support, weights = self.support.support(rows.X[chosen]), rows.each_weight()[chosen]
        places = np.searchsorted(_ENDS[1:-1], support, side="right")
        np.add.at(self.n_rows, places, 1)
        np.add.at(self.weight, places, weights)
        errors = (predicted - rows.y)[chosen]
        np.add.at(self.squared, places, weights[:, None] * errors**2)

    def facts(self) -> list[dict[str, Any]]:
        """Return the ends of every class, its rows and their root mean squared error, or None."""
        found: list[dict[str, Any]] = []
        for k, (n_rows, weight) in enumerate(zip(self.n_rows.tolist(), self.weight, strict=True)):
            rmse = np.sqrt(self.squared[k] / weight).tolist() if weight > 0 else None
            error = rmse[0] if self.flat and rmse else rmse
            found.append({"support": _ENDS[k : k + 2].tolist(), "rows": n_rows, "rmse": error})
        return found
