"""Trials of a search: a fit to a sample in some features, and its errors on held-out rows.

Of every trial sums are taken about the mean of a few rows' features, and the eigenbasis of the sums
gives the errors of a whole grid of penalties.  Kernels and maps are cross-validated on the sample;
`metric_rounds` holds a part of it out.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from streamkern.features import FeatureMap, Identity, RandomFourierFeatures
from streamkern.features.base import cached_slices
from streamkern.runtime.scratch import Scratch
from streamkern.solve import Eigenbasis, decomposition_bytes
from streamkern.solve.cross_validation import HeldOut, held_out_errors
from streamkern.solve.penalty_curve import PenaltyCurve
from streamkern.solve.penalty_grid import default_grid
from streamkern.sources import Block
from streamkern.statistics import Moments, Triangle, dtype_of_features

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from streamkern._typing import Array, Floats
    from streamkern.kernels import ShiftInvariantKernel
    from streamkern.parameters.fit_options import FitOptions

# The metric of plain distances, what it is called of inputs that are standardised where another
# scale was chosen, and those of kernels that are added.
ISOTROPIC, LEARNT, STANDARD, ADDED = "isotropic", "learnt", "standard scale", "a metric each"
N_FOLDS = 3
_BLOCK_ROWS = 4096
SHIFT_ROWS = 2048
# Standard errors by which a mean over folds is not 0.
_SURE = 2.0
# Penalties on both sides of the best that are tried, of so many rows a feature and of many
# features for every target; else all are.
_NEAR, _ROWS_A_COMPONENT, _MANY = 2, 4, 1024
# Square matrices that are held while a fold is scored.
_SQUARES = 7


class Targets(NamedTuple):
    values: Floats
    weights: Floats | None

    def blocks(self, places: Array, features: Callable[[Any], Array]) -> Iterator[Block]:
        """Yield the rows at some places, some at a time, with what `features` makes of each."""
        for start in range(0, len(places), _BLOCK_ROWS):
            rows = places[start : start + _BLOCK_ROWS]
            weights = None if self.weights is None else self.weights[rows]
            yield Block(features(rows), self.values[rows], int(rows[0]), weights)


def moments_about(feature_map: FeatureMap, some: Array, n_targets: int) -> Moments:
    """Return the moments of no rows, about the mean of some features and in their precision."""
    precision: Any = "single" if some.dtype == np.float32 else "double"
    shift = some.mean(axis=0, dtype=float)
    return Moments(feature_map, n_targets, precision=precision, feature_shift=shift)


class Cost(NamedTuple):
    """What a trial took, in seconds of its thread: the map, features and their sums, errors."""

    drawing: float
    sums: float
    errors: float


@dataclass(frozen=True)
class Attempt:
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

    def beats(self, other: Attempt) -> bool:
        """Return whether the error is smaller by a standard error, or else fold by fold.

        That is by factors, since a few rows far out make the errors of their folds, and so the
        standard error, many times larger.
        """
        logs = np.log(np.maximum([other.of_folds, self.of_folds], np.finfo(float).tiny))
        less = logs[0] - logs[1]
        by_folds = less.mean() > _SURE * less.std(ddof=1) / np.sqrt(len(less))
        return bool(by_folds or self.relative_mse + self.standard_error < other.relative_mse)

    def as_dict(self) -> dict[str, Any]:
        """Return all but the cost and errors by fold as plain JSON values."""
        values = asdict(self) | {"length_scale": np.asarray(self.length_scale).tolist()}
        del values["cost"], values["of_folds"]
        return values


@dataclass(frozen=True)
class Trial:
    """Cross-validation of a kernel and a map at several length scales, in one task."""

    # With the family of the map, and the kernel of kept inputs with numbers for its length scale.
    options: FitOptions
    n_components: int
    metric: str = ISOTROPIC

    @property
    def kernel(self) -> ShiftInvariantKernel:
        return cast("ShiftInvariantKernel", self.options.kernel)

    def __call__(
        self,
        X: Array,
        y: Floats,
        factors: Sequence[float],
        weights: Floats | None = None,
        folds: Array | None = None,
    ) -> list[Attempt]:
        if folds is None:
            cuts = np.linspace(0, len(y), N_FOLDS + 1).astype(int)[1:]
            folds = np.searchsorted(cuts, np.arange(len(y)), side="right")
        places = [np.flatnonzero(folds == number) for number in np.unique(folds)]
        targets = Targets(y, weights)
        feature_map = self._map(1.0)
        if isinstance(feature_map, RandomFourierFeatures) and self.kernel.stretches_frequencies:
            return self._with_shared_angles(feature_map, X, targets, places, factors)
        begun = time.thread_time()
        chosen = feature_map.representatives(X, weights)
        made_from = (X, weights) if chosen is None else (chosen, None)
        once = time.thread_time() - begun
        return [
            self._alone(X, targets, places, factor, made_from=made_from, once=once)
            for factor in factors
        ]

    def _map(self, factor: float) -> FeatureMap:
        if self.options.is_identity:
            return Identity()
        return self.options.map_of(self.kernel.stretched(factor), self.n_components)

    def _with_shared_angles(
        self,
        feature_map: RandomFourierFeatures,
        X: Array,
        y: Targets,
        places: list[Array],
        factors: Sequence[float],
    ) -> list[Attempt]:
        """Cross-validate on projections that are made once: the factors divide them."""
        begun = time.thread_time()
        drawn = feature_map.draw(X.shape[1], X)
        made = time.thread_time()
        angles = X @ drawn.frequencies.T.astype(X.dtype)
        drawing, once = made - begun, time.thread_time() - made
        held = np.empty((min(_BLOCK_ROWS, len(X)), drawn.n_components), dtype=X.dtype)
        attempts = []
        for factor in factors:
            begun = time.thread_time() - once
            waves = _Waves(drawn, angles, factor, held)
            some = waves.features(slice(0, min(len(X), SHIFT_ROWS)))
            empty = moments_about(Identity().draw(drawn.n_components), some, y.values.shape[1])
            folds = _summed(empty, y, places, waves.features)
            attempt = self._attempt(folds, factor, (drawing, time.thread_time() - begun))
            attempts.append(replace(attempt, alpha=attempt.alpha * drawn.scale**2))
        return attempts

    def _alone(
        self,
        X: Array,
        y: Targets,
        places: list[Array],
        factor: float,
        *,
        made_from: tuple[Array, Floats | None],
        once: float,
    ) -> Attempt:
        """Cross-validate a map that is drawn from rows, on the features that a pass would sum."""
        begun = time.thread_time() - once
        feature_map = self._map(factor)
        drawn = feature_map.draw(X.shape[1], feature_map.chosen(*made_from))
        made, summed = time.thread_time(), drawn.summed()
        # Sums that are turned lose digits at long length scales, which may look like small errors.
        precision = self.options.precision if summed is drawn else "double"
        dtype = dtype_of_features(precision)
        some = np.empty((min(len(X), SHIFT_ROWS), drawn.n_components), dtype=dtype)
        summed.evaluate(X[: len(some)], some)
        empty = moments_about(summed, some, y.values.shape[1])
        folds = _summed(empty, y, places, X.__getitem__)
        cost = made - begun, time.thread_time() - made
        return self._attempt([fold.solvable() for fold in folds], factor, cost)

    def _attempt(self, folds: list[Moments], factor: float, cost: tuple[float, float]) -> Attempt:
        """Leave out each fold in turn, at the penalties of the grid that matter."""
        begun = time.thread_time()
        total = reduce(Moments.merge, folds)
        intercept = self.options.fit_intercept
        basis = Eigenbasis.of(total.centred(intercept=intercept), total.n_rows - intercept)
        curve = _near_the_best(basis, total, folds)
        chosen = curve.choose()
        score, error = curve.combined(chosen)
        kernel = None if self.options.is_identity else self.kernel.stretched(factor)
        return Attempt(
            self.metric,
            self.options.feature_map,
            self.kernel.name,
            None if kernel is None else kernel.length_scale,
            total.n_rows,
            self.n_components,
            score,
            error,
            float(curve.alphas[chosen[0]]),
            Cost(*cost, time.thread_time() - begun),
            len(folds),
            curve.fold_errors(chosen).tolist(),
        )


def _near_the_best(basis: Eigenbasis, total: Moments, folds: Sequence[Moments]) -> PenaltyCurve:
    """Return the errors of penalties about the best, from where robust GCV is least.

    Small ones take longest, and are mostly far from it.  Of few rows, which say too little of where
    to begin, and of few features all are tried.
    """
    alphas, D, q = default_grid(basis.spectrum), total.feature_map.n_components, total.n_targets
    best, reach = 0, len(alphas)
    # Of many targets all penalties are solved for by one decomposition.
    if not (q * _MANY > D or total.n_rows < _ROWS_A_COMPONENT * D):
        (start,) = PenaltyCurve.of_spectrum("gcv", alphas, basis.spectrum).choose()
        best, reach = int(start), _NEAR
    known: dict[int, list[HeldOut]] = {}
    while new := [i for i in range(len(alphas)) if abs(i - best) <= reach and i not in known]:
        made = [held_out_errors(basis, total, fold, alphas[new]) for fold in folds]
        for j, i in enumerate(new):
            known[i] = [each._replace(sse=each.sse[[j]]) for each in made]
        places = sorted(known)
        several = [
            each[0]._replace(sse=np.vstack([part.sse for part in each]))
            for each in zip(*(known[i] for i in places), strict=True)
        ]
        curve = PenaltyCurve.of_folds(alphas[places], several, np.ones(q))
        best = places[curve.choose()[0]]
    return curve


def _summed(
    empty: Moments, y: Targets, places: list[Array], features: Callable[[Any], Array]
) -> list[Moments]:
    folds = [empty.zero() for _ in places]
    for fold, mine in zip(folds, places, strict=True):
        fold.update(y.blocks(mine, features))
    return folds


class _Waves(NamedTuple):
    """Features of projections (m, L), without phases, at a multiple of their length scale."""

    map: RandomFourierFeatures
    angles: Array
    factor: float
    held: Array

    def features(self, rows: Array | slice) -> Array:
        """Return the features of some rows, without their scale, in memory that is used again."""
        inside, dtype, scratch = self.angles[rows], self.angles.dtype, Scratch()
        offsets, out = self.map.offsets.astype(dtype), self.held[: len(inside)]
        for part in cached_slices(len(out), self.map.n_components):
            self.map.waves(inside[part] / dtype.type(self.factor) + offsets, out[part], scratch)
        return out


def trial_bytes(
    n_rows: int, n_features: int, n_components: int, itemsize: int, n_folds: int = N_FOLDS
) -> int:
    m, p, D = n_rows, n_features, n_components
    rows = itemsize * (m * (p + D) + (_BLOCK_ROWS + D) * D)
    sums = (n_folds + 2) * 8 * Triangle.size(D)
    return int(rows + sums + decomposition_bytes(D) + 8 * _SQUARES * D**2)
