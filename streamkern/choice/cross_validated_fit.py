"""A cross-validated small fit: an eigenbasis of the sums has the errors of all penalties."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.choice.small_fit import (
    BLOCK_ROWS,
    SHIFT_ROWS,
    Landmarks,
    SmallFit,
    blocks,
    empty_moments,
)
from streamkern.choice.time_limit import look_at_clock
from streamkern.features import LandmarkFolds, gram_map
from streamkern.parameters.fit_options import has_few_rows
from streamkern.solve import Eigenbasis, decomposition_bytes
from streamkern.solve.cross_validation import HeldOut, held_out_errors
from streamkern.solve.penalty_curve import PenaltyCurve
from streamkern.solve.penalty_errors import leave_one_out_scores
from streamkern.solve.penalty_grid import default_grid
from streamkern.statistics import Moments, Split, Triangle

N_FOLDS = 3
# Standard errors by which a mean over folds is not 0.
_SURE = 3.0
# Penalties on both sides of the best that are tried, of rows that are not few and of many features
# for every target; else all are.
_NEAR, _MANY = 2, 1024
# Square matrices that are held while a fold is scored.
_SQUARES = 7


class Cost(NamedTuple):
    """What a fit took, in seconds on the clock: the map, features and their sums, errors."""

    drawing: float
    sums: float
    errors: float


class Result(NamedTuple):
    """A kernel at a length scale, and its errors on folds at the best penalty."""

    kernel: Any
    n_rows: int
    n_components: int
    relative_mse: float  # over the variance of the target, the mean over targets
    standard_error: float  # across folds
    alpha: float
    cost: Cost = Cost(0.0, 0.0, 0.0)
    n_folds: int = N_FOLDS
    of_folds: Sequence[float] = ()  # relative_mse in each
    setting: Any = None  # of a search, that was tried

    def beats(self, other: "Result") -> bool:
        """Return whether the error is smaller by a standard error, or else fold by fold.

        That is by factors, since a few rows far out make the errors of their folds, and so the
        standard error, many times larger.
        """
        logs = np.log(np.maximum([other.of_folds, self.of_folds], np.finfo(float).tiny))
        less = logs[0] - logs[1]
        by_folds = len(less) and less.mean() > _SURE * less.std(ddof=1) / np.sqrt(len(less))
        return bool(by_folds or self.relative_mse + self.standard_error < other.relative_mse)


@dataclass(frozen=True)
class CrossValidatedFit(SmallFit):
    """Fits to all rows without each fold in turn."""

    def cross_validated(  # noqa: PLR0917  rows, and how they are left out
        self,
        kernel: Any,
        X: Array,
        y: Floats,
        weights: Floats | None = None,
        folds: Array | None = None,
        is_guarded: bool = False,
        landmarks: Landmarks | None = None,
    ) -> Result:
        """Leave out each fold in turn, at the penalties of the grid that matter.

        Guarded errors are those between neighbours, at penalties that the folds guard.
        """
        fit = self if landmarks is None else replace(self, landmarks=landmarks)
        if folds is None:
            cuts = np.linspace(0, len(y), N_FOLDS + 1).astype(int)[1:]
            folds = np.searchsorted(cuts, np.arange(len(y)), side="right")
        places = [np.flatnonzero(folds == number) for number in np.unique(folds)]
        begun = time.perf_counter() - (fit.landmarks.seconds if fit.landmarks else 0.0)
        drawn = fit.drawn(kernel, X, weights)
        made, summed = time.perf_counter(), gram_map(drawn)
        # Sums that are turned lose digits at long length scales, which may look like small errors.
        empty = empty_moments(
            summed, X, y.shape[1], self.options.precision if summed is drawn else "double"
        )
        sums = [empty.zero() for _ in places]
        for fold, mine in zip(sums, places, strict=True):
            fold.update(blocks(X, y, weights, mine))
        ended = time.perf_counter()
        look_at_clock()
        sums = [fold.solvable() for fold in sums]
        total, intercept = reduce(Moments.merge, sums), self.options.fit_intercept
        basis = Eigenbasis.of(total.centred(intercept=intercept), total.n_rows - intercept)
        spans: list[Any] = [None] * len(sums)
        few = has_few_rows(len(y), drawn.n_components)
        dealt = LandmarkFolds.of(drawn, X, folds) if is_guarded or few else None
        if dealt is not None:
            spans = [dealt.span_without(fold, len(basis.vectors)) for fold in np.unique(folds)]
        splits = [Split(fold, span=span) for fold, span in zip(sums, spans, strict=True)]
        every = blocks(X, y, weights, np.arange(len(y))) if few else None
        curve = curve_of(basis, total, splits, every, is_guarded=is_guarded)
        best = curve.choose()
        score, error = curve.combined(best)
        cost = Cost(made - begun, ended - made, time.perf_counter() - ended)
        of_folds = [] if is_guarded else curve.fold_errors(best).tolist()
        sizes, alpha = (total.n_rows, self.n_components), float(curve.alphas[best[0]])
        return Result(kernel, *sizes, score, error, alpha, cost, len(sums), of_folds)


def curve_of(
    basis: Eigenbasis,
    total: Moments,
    splits: Sequence[Split],
    rows: Any = None,
    *,
    is_guarded: bool,
) -> PenaltyCurve:
    """Return the errors of penalties about the best, from where robust GCV is least.

    Small ones take longest, and are mostly far from it; errors of others are infinite.  Of few
    rows, which say too little of where to begin, of few features and of a guarded choice all are
    tried.  The rows of a guarded choice are given where they are few.
    """
    alphas, D, q = default_grid(basis.spectrum), total.feature_map.n_components, total.n_targets
    best, reach = 0, len(alphas)
    # Of many targets all penalties are solved for by one decomposition.
    if not (is_guarded or q * _MANY > D or has_few_rows(total.n_rows, D)):
        (start,) = PenaltyCurve.of_spectrum("gcv", alphas, basis.spectrum).choose()
        best, reach = int(start), _NEAR
    known, sse = set[int](), np.full((len(splits), len(alphas), q), np.inf)
    while new := [i for i in range(len(alphas)) if abs(i - best) <= reach and i not in known]:
        made = list[HeldOut]()
        for split, errors in zip(splits, sse, strict=True):
            look_at_clock()
            one = held_out_errors(basis, total, split, alphas[new])
            errors[new] = one.sse
            made.append(one._replace(sse=errors))
        known.update(new)
        curve = PenaltyCurve.of_folds(alphas, made, np.ones(q))
        best = int(curve.choose()[0])
    if not is_guarded:
        return curve
    near = None if rows is None else leave_one_out_scores(total, basis, alphas, rows)
    return curve.guarded(basis.spectrum, made, near)


def fit_bytes(
    n_rows: int, n_features: int, n_components: int, itemsize: int, n_folds: int = N_FOLDS
) -> int:
    """Return the bytes that a fit to rows of a sample takes, by its sizes and those of features."""
    m, p, D = n_rows, n_features, n_components
    rows = itemsize * (m * p + (BLOCK_ROWS + SHIFT_ROWS + D) * D)
    sums = (n_folds + 2) * 8 * Triangle.size(D)
    return int(rows + sums + decomposition_bytes(D) + 8 * _SQUARES * D**2)
