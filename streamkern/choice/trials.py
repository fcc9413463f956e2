"""Trials of a search: a fit to a sample in some features, and its errors on held-out rows.

Of every trial sums are taken about the mean of a few rows' features, and the eigenbasis of the sums
gives the errors of a whole grid of penalties.  Kernels and maps are cross-validated on the sample;
`metric_rounds` holds a part of it out.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import reduce
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.choice.time_limit import look_at_clock
from streamkern.features import FeatureMap, FromRows, Identity, gram_map
from streamkern.parameters.fit_options import FitOptions
from streamkern.solve import Eigenbasis, decomposition_bytes
from streamkern.solve.cross_validation import HeldOut, held_out_errors
from streamkern.solve.penalty_curve import PenaltyCurve
from streamkern.solve.penalty_grid import default_grid
from streamkern.sources import Block
from streamkern.statistics import Moments, Split, Triangle, dtype_of_features

# The metric of plain distances, what it is called of inputs that are standardised where another
# scale was chosen, and those of kernels that are added.
ISOTROPIC, LEARNT, STANDARD, ADDED = "isotropic", "learnt", "standard scale", "a metric each"
N_FOLDS = 3
_BLOCK_ROWS = 4096
SHIFT_ROWS = 2048
# Standard errors by which a mean over folds is not 0.
_SURE = 3.0
# Penalties on both sides of the best that are tried, of so many rows a feature and of many
# features for every target; else all are.
_NEAR, _ROWS_A_COMPONENT, _MANY = 2, 4, 1024
# Square matrices that are held while a fold is scored.
_SQUARES = 7


class Targets(NamedTuple):
    values: Floats
    weights: Floats | None

    def blocks(self, places: Array, X: Array) -> Iterator[Block]:
        """Yield the rows at some places, some at a time."""
        for start in range(0, len(places), _BLOCK_ROWS):
            look_at_clock()
            rows = places[start : start + _BLOCK_ROWS]
            weights = None if self.weights is None else self.weights[rows]
            yield Block(X[rows], self.values[rows], int(rows[0]), weights)


def moments_about(feature_map: FeatureMap, X: Array, some: Array, n_targets: int) -> Moments:
    """Return the moments of no rows, about the mean of features of some, which are written.

    They are in the precision of these.
    """
    feature_map.evaluate(X[: len(some)], some)
    precision: Any = "single" if some.dtype == np.float32 else "double"
    shift = some.mean(axis=0, dtype=float)
    return Moments(feature_map, n_targets, precision=precision, feature_shift=shift)


class Cost(NamedTuple):
    """What a trial took, in seconds on the clock: the map, features and their sums, errors."""

    drawing: float
    sums: float
    errors: float


class Chosen(NamedTuple):
    """What maps are drawn from at every length scale, and its seconds."""

    rows: Array
    seconds: float


@dataclass(frozen=True)
class Result:
    """A kernel and a map, cross-validated on a sample at the best penalty of the grid."""

    metric: str
    feature_map: str
    kernel: str
    length_scale: Any  # None of linear ridge
    n_rows: int
    n_components: int
    relative_mse: float  # over the variance of the target, the mean over targets
    standard_error: float  # across folds
    alpha: float
    cost: Cost = field(default=Cost(0.0, 0.0, 0.0), compare=False)
    n_folds: int = N_FOLDS
    of_folds: Sequence[float] = field(default=(), compare=False)  # relative_mse in each
    setting: Any = field(default=None, compare=False)  # that was tried

    def beats(self, other: "Result") -> bool:
        """Return whether the error is smaller by a standard error, or else fold by fold.

        That is by factors, since a few rows far out make the errors of their folds, and so the
        standard error, many times larger.
        """
        logs = np.log(np.maximum([other.of_folds, self.of_folds], np.finfo(float).tiny))
        less = logs[0] - logs[1]
        by_folds = len(less) and less.mean() > _SURE * less.std(ddof=1) / np.sqrt(len(less))
        return bool(by_folds or self.relative_mse + self.standard_error < other.relative_mse)

    def as_dict(self) -> dict[str, Any]:
        """Return what is compared as plain JSON values."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.compare}
        return values | {"length_scale": np.asarray(self.length_scale).tolist()}


@dataclass(frozen=True)
class Trial:
    """Cross-validation of a kernel and a map at a length scale."""

    # With the family of the map, and the kernel of kept inputs with numbers for its length scale.
    options: FitOptions
    n_components: int
    metric: str = ISOTROPIC
    is_guarded: bool = False  # errors are those between neighbours, at penalties that folds guard
    kernel = property(attrgetter("options.kernel"))

    def chosen(self, X: Array, weights: Floats | None = None) -> Chosen:
        begun = time.perf_counter()
        feature_map = self._map(1.0)
        rows = feature_map.chosen(X, weights) if isinstance(feature_map, FromRows) else X
        return Chosen(rows, time.perf_counter() - begun)

    def __call__(  # noqa: PLR0917  rows, folds, and what was found of rows before
        self,
        X: Array,
        y: Floats,
        factor: float,
        weights: Floats | None = None,
        folds: Array | None = None,
        chosen: Chosen | None = None,
    ) -> Result:
        """Leave out each fold in turn, at the penalties of the grid that matter."""
        if folds is None:
            cuts = np.linspace(0, len(y), N_FOLDS + 1).astype(int)[1:]
            folds = np.searchsorted(cuts, np.arange(len(y)), side="right")
        places = [np.flatnonzero(folds == number) for number in np.unique(folds)]
        rows, seconds = chosen or self.chosen(X, weights)
        begun, feature_map = time.perf_counter() - seconds, self._map(factor)
        drawn = feature_map.draw(X.shape[1], rows)
        made, summed = time.perf_counter(), gram_map(drawn)
        # Sums that are turned lose digits at long length scales, which may look like small errors.
        precision = self.options.precision if summed is drawn else "double"
        dtype = dtype_of_features(precision)
        some = np.empty((min(len(X), SHIFT_ROWS), drawn.n_components), dtype=dtype)
        empty = moments_about(summed, X, some, y.shape[1])
        sums = [empty.zero() for _ in places]
        for fold, mine in zip(sums, places, strict=True):
            fold.update(Targets(y, weights).blocks(mine, X))
        ended = time.perf_counter()
        look_at_clock()
        sums = [fold.solvable() for fold in sums]
        total = reduce(Moments.merge, sums)
        intercept = self.options.fit_intercept
        basis = Eigenbasis.of(total.centred(intercept=intercept), total.n_rows - intercept)
        curve = curve_of(basis, total, sums, is_guarded=self.is_guarded)
        best = curve.choose()
        score, error = curve.combined(best)
        return Result(
            self.metric,
            self.options.feature_map,
            self.kernel.name,
            None if self.options.is_identity else self.kernel.stretched(factor).length_scale,
            total.n_rows,
            self.n_components,
            score,
            error,
            float(curve.alphas[best[0]]),
            Cost(made - begun, ended - made, time.perf_counter() - ended),
            len(sums),
            [] if self.is_guarded else curve.fold_errors(best).tolist(),
        )

    def _map(self, factor: float) -> FeatureMap:
        if self.options.is_identity:
            return Identity()
        return self.options.map_of(self.kernel.stretched(factor), self.n_components)


def curve_of(
    basis: Eigenbasis, total: Moments, folds: Sequence[Moments], *, is_guarded: bool
) -> PenaltyCurve:
    """Return the errors of penalties about the best, from where robust GCV is least.

    Small ones take longest, and are mostly far from it; errors of others are infinite.  Of few
    rows, which say too little of where to begin, of few features and of a guarded choice all are
    tried.
    """
    alphas, D, q = default_grid(basis.spectrum), total.feature_map.n_components, total.n_targets
    best, reach = 0, len(alphas)
    # Of many targets all penalties are solved for by one decomposition.
    if not (is_guarded or q * _MANY > D or total.n_rows < _ROWS_A_COMPONENT * D):
        (start,) = PenaltyCurve.of_spectrum("gcv", alphas, basis.spectrum).choose()
        best, reach = int(start), _NEAR
    known, sse = set[int](), np.full((len(folds), len(alphas), q), np.inf)
    while new := [i for i in range(len(alphas)) if abs(i - best) <= reach and i not in known]:
        made = list[HeldOut]()
        for fold, errors in zip(folds, sse, strict=True):
            look_at_clock()
            one = held_out_errors(basis, total, Split(fold), alphas[new])
            errors[new] = one.sse
            made.append(one._replace(sse=errors))
        known.update(new)
        curve = PenaltyCurve.of_folds(alphas, made, np.ones(q))
        best = int(curve.choose()[0])
    return curve.guarded(basis.spectrum) if is_guarded else curve


def trial_bytes(
    n_rows: int, n_features: int, n_components: int, itemsize: int, n_folds: int = N_FOLDS
) -> int:
    m, p, D = n_rows, n_features, n_components
    rows = itemsize * (m * p + (_BLOCK_ROWS + SHIFT_ROWS + D) * D)
    sums = (n_folds + 2) * 8 * Triangle.size(D)
    return int(rows + sums + decomposition_bytes(D) + 8 * _SQUARES * D**2)


def map_in_words(tried: Mapping[str, Any]) -> str:
    """Return the map of a result or a configuration as a report keeps it, with its metric."""
    name: str = tried["feature_map"]
    return name if tried["metric"] == ISOTROPIC else f"{name}, {tried['metric']}"


def error_of(tried: dict[str, Any]) -> float:
    """Return the root of the mean square of an attempt, over sd(y)."""
    return math.sqrt(tried["relative_mse"])


def first_scale(tried: Mapping[str, Any]) -> float:
    """Return the length scale of an attempt, or that of its first input; 0 where it has none."""
    scale = tried["length_scale"]
    return float(np.ravel(scale)[0] if scale else 0.0)
