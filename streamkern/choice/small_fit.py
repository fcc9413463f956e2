"""A small fit: rows of a sample in few features, a grid of penalties, and errors on other rows.

Sums are taken about the mean of a few rows' features.  A kernel and a map are cross-validated, and
the eigenbasis of the sums gives the errors of the whole grid; or a quarter of the rows is held out,
and a few factors are enough.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.choice.time_limit import look_at_clock
from streamkern.engine.scheduler import scatter
from streamkern.errors import ParameterError
from streamkern.features import (
    FeatureMap,
    FromRows,
    Identity,
    LandmarkFolds,
    Standardized,
    Standardizer,
    drawn_from,
    gram_map,
)
from streamkern.kernels import ShiftInvariantKernel
from streamkern.parameters.cost_estimate import fit_flops
from streamkern.parameters.fit_options import FitOptions
from streamkern.passes.column_summary import ColumnSummary
from streamkern.predict.gradients import GradientOuterProduct
from streamkern.predict.predictor import Predictor
from streamkern.solve import Cholesky, Eigenbasis, decomposition_bytes
from streamkern.solve.cross_validation import HeldOut, held_out_errors
from streamkern.solve.penalty_curve import PenaltyCurve
from streamkern.solve.penalty_grid import default_grid, even_grid
from streamkern.solve.ridge import largest_eigenvalue
from streamkern.solve.solution import precision_floor
from streamkern.sources import Block
from streamkern.statistics import Moments, Split, Triangle, dtype_of_features, precision_of_features

ISOTROPIC = "isotropic"  # the metric of plain distances
N_FOLDS = 3
# Of rows that are held out, the part that is fitted.
TRAINING = 3 / 4
# Features of a fit with rows held out at the least, and rows a feature.
_FEWEST_COMPONENTS, _ROWS_A_FEATURE = 256, 2
_BLOCK_ROWS, _SHIFT_ROWS = 4096, 2048
# Standard errors by which a mean over folds is not 0.
_SURE = 3.0
# Penalties on both sides of the best that are tried, of so many rows a feature and of many
# features for every target; else all are.
_NEAR, _ROWS_A_COMPONENT, _MANY = 2, 4, 1024
# How far from the best penalty of the grid, at first the middle one, factors are tried next.
_WIDTHS = 8, 4, 2, 1
# Penalties of rows that are left out one by one, over the largest eigenvalue.
_FEW_PENALTIES = np.geomspace(1e-7, 1.0, 8)
# Square matrices that are held while a fold is scored.
_SQUARES = 7
# How many length scales rows are apart where that is far, and factors of their distance.
_TIGHT, _ABOUT = 10.0, (0.5, 1.0, 2.0, 4.0)


class Sample(NamedTuple):
    """The rows of the sample and their weights, here and where the tasks run; the targets there."""

    rows: Array
    weights: Floats | None
    X: Any
    y: Any
    s: Any
    clock: Any = None  # which says whether more are tried

    @classmethod
    def of(cls, summary: ColumnSummary, n_rows: int, clock: Any = None) -> "Sample":
        """Return the first rows, which are in the order of their hashes: a sample too."""
        rows, weights = summary.sample.X[:n_rows], summary.weights
        weights = None if weights is None else weights[:n_rows]
        sent = scatter(rows), scatter(summary.targets[:n_rows]), scatter(weights)
        return cls(rows, weights, *sent, clock)


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


class HeldOutResult(NamedTuple):
    """A kernel at a length scale, and its errors on the rows held out at the best penalty."""

    kernel: ShiftInvariantKernel
    relative_mse: float
    alpha: float
    coef: Floats
    squares: Floats  # of the errors of rows, the means over targets
    weights: Floats  # how often these count

    def beats(self, other: "HeldOutResult") -> bool:
        """Return whether the error is smaller by more than a standard error of the difference."""
        less, weights = other.squares - self.squares, self.weights
        mean = np.average(less, weights=weights)
        return bool(mean * weights.sum() > np.linalg.norm(weights * (less - mean)))


class Landmarks(NamedTuple):
    """What maps are drawn from at every length scale, and the seconds that it took."""

    rows: Array
    seconds: float


@dataclass(frozen=True)
class SmallFit:
    """Fits of so many features to the first rows of a sample, for any kernel."""

    options: FitOptions  # with the family of the map
    n_components: int
    n_rows: int
    standardizer: Any = None  # with the metric, of rows that are not in it
    training: float = 1.0  # the part that is fitted, where others are held out
    landmarks: Landmarks | None = None  # if they were found already

    @classmethod
    def of(cls, options: FitOptions, standardizer: Standardizer, n_rows: int) -> "SmallFit":
        """Return the fit with rows held out, at no more features than the others can bear."""
        made = cls(options, 0, n_rows, standardizer, TRAINING)
        return made.sized(n_rows, max(options.n_components, _FEWEST_COMPONENTS))

    def sized(self, n_rows: int, D: int) -> "SmallFit":
        D = min(D, max(int(self.training * n_rows) // _ROWS_A_FEATURE, 2))
        return replace(self, n_rows=n_rows, n_components=D - D % 2, landmarks=None)

    @property
    def n_training(self) -> int:
        return int(self.training * self.n_rows)

    @property
    def flops(self) -> float:
        return fit_flops(self.n_training, self.standardizer.n_outputs, self.n_components, 1)

    def found_landmarks(
        self, kernel: Any, X: Array, weights: Floats | None = None
    ) -> Landmarks | None:
        """Return what maps of the kernel are drawn from, where that is rows."""
        begun, inner = time.perf_counter(), self._map(kernel)
        if not isinstance(inner, FromRows):
            return None
        rows = inner.chosen(*self._fitted(X, weights))
        return Landmarks(rows, time.perf_counter() - begun)

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
        empty = _about_some(
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
        dealt = LandmarkFolds.of(drawn, X, folds) if is_guarded else None
        if dealt is not None:
            spans = [dealt.span_without(fold, len(basis.vectors)) for fold in np.unique(folds)]
        splits = [Split(fold, span=span) for fold, span in zip(sums, spans, strict=True)]
        curve = curve_of(basis, total, splits, is_guarded=is_guarded)
        best = curve.choose()
        score, error = curve.combined(best)
        cost = Cost(made - begun, ended - made, time.perf_counter() - ended)
        of_folds = [] if is_guarded else curve.fold_errors(best).tolist()
        sizes, alpha = (total.n_rows, self.n_components), float(curve.alphas[best[0]])
        return Result(kernel, *sizes, score, error, alpha, cost, len(sums), of_folds)

    def held_out(
        self,
        kernel: ShiftInvariantKernel,
        X: Array,
        y: Floats,
        weights: Floats | None = None,
        keeps_coef: bool = True,
    ) -> HeldOutResult:
        """Fit the training part at the best of a grid of penalties, found by halving steps.

        Fewer rows than features are solved for by one unknown a row, which is the same.
        """
        n, X, y = self.n_training, X[: self.n_rows], y[: self.n_rows]
        counted = np.ones(len(X) - n) if weights is None else weights[n : self.n_rows]
        dtype = dtype_of_features(self.options.precision)
        feature_map = self.drawn(kernel, X, weights)
        moments = _about_some(feature_map, X[:n], y.shape[1], self.options.precision)
        moments.update(blocks(X, y, weights, np.arange(n)))
        centred = moments.centred(intercept=self.options.fit_intercept)
        shift, shape = moments.feature_shift, (len(X) - n, feature_map.n_components)
        features = np.empty(shape, dtype)
        feature_map.evaluate(X[n:], features, shift.astype(dtype))
        beside = feature_map.scale * shift - centred.feature_mean
        largest = largest_eigenvalue(centred.gram)
        alphas = even_grid(precision_floor(centred, largest), largest)
        gram, cross, scale = centred.gram, centred.cross, feature_map.scale
        if by_rows := n < len(shift):  # one unknown a row is less
            rows = np.empty((n, len(shift)), dtype)
            feature_map.evaluate(X[:n], rows, shift.astype(dtype))
            fitted, held = scale * rows + beside, scale * features + beside
            roots = np.ones((n, 1)) if weights is None else np.sqrt(weights[:n, None])
            fitted *= roots
            gram, cross = Triangle.of(fitted @ fitted.T), roots * (y[:n] - centred.target_mean)
            features, scale, beside = held @ fitted.T, 1.0, np.zeros(n)

        def tried(alpha: float) -> HeldOutResult:
            look_at_clock()
            try:
                coef = Cholesky.of_shifted(gram, alpha, 1).solve(cross)
            except np.linalg.LinAlgError:  # so small a penalty is lost in rounding
                return HeldOutResult(kernel, np.inf, alpha, cross, counted, counted)
            constant = centred.target_mean + beside @ coef
            errors = features @ (scale * coef).astype(features.dtype) + constant - y[n:]
            squares = np.square(errors).mean(axis=1)
            error = float(np.average(squares, weights=counted))
            return HeldOutResult(kernel, error, alpha, coef, squares, counted)

        found: dict[int, HeldOutResult] = {}
        for width in _WIDTHS:
            near = min(found, key=lambda i: found[i].relative_mse, default=len(alphas) // 2)
            for i in (near - width, near, near + width):
                if i not in found and 0 <= i < len(alphas):
                    found[i] = tried(float(alphas[i]))
        best = min(found.values(), key=lambda each: each.relative_mse)
        if not keeps_coef:
            return best._replace(coef=best.coef[:0])
        return best._replace(coef=fitted.T @ best.coef) if by_rows else best

    def held_out_call(
        self, name: str, kernel: Any, step: int, sample: Sample, *, keeps_coef: bool = True
    ) -> tuple[Any, ...]:
        """Return the task of a kernel so many half octaves from its own length scale."""
        rows = sample.X, sample.y, sample.s
        return name, self.held_out, kernel.stretched(2.0 ** (step / 2)), *rows, keeps_coef

    def gradients(self, best: HeldOutResult, X: Array, weights: Floats | None) -> Floats:
        """Return the average gradient outer product on the training part, before the metric."""
        feature_map, zero = self.drawn(best.kernel, X, weights), np.zeros(best.coef.shape[1])
        precision = precision_of_features(self.options.precision)
        outer = GradientOuterProduct(Predictor(feature_map, best.coef, zero, precision=precision))
        outer.update(blocks(X, np.empty((len(X), 0)), weights, np.arange(self.n_training)))
        return outer.mean

    def left_out(
        self,
        kernel: Any,
        X: Array,
        y: Floats,
        partitions: Sequence[Sequence[Array]],
        *,
        own_penalty: bool = False,
    ) -> list[Floats]:
        """Return errors of the parts (K, 2) of partitions: each row left out, or all of a part.

        They are mean squares, at the penalty that is best for single rows, or for parts at the one
        that is best for these.  Of the residuals r and their hat matrix H, rows that are left out
        have the errors (I - H)^-1 r.
        """
        features, y = self.drawn(kernel, X, None).transform(X), y - y.mean(axis=0)
        features -= features.mean(axis=0)
        values, vectors = np.linalg.eigh(features.T @ features)
        along, found = features @ vectors, list[tuple[Floats, Floats, Floats]]()
        for alpha in _FEW_PENALTIES * values[-1]:
            shrunk = 1.0 / (np.maximum(values, 0.0) + alpha)
            residuals = y - along @ (shrunk[:, None] * (along.T @ y))
            spare = 1.0 - 1.0 / len(y) - np.square(along) @ shrunk
            of_rows = np.square(residuals / spare[:, None]).mean(axis=1)
            found.append((of_rows, residuals, shrunk))
        best = min(found, key=lambda each: each[0].mean())

        def together(part: Array, residuals: Floats, shrunk: Floats) -> float:
            hat = (along[part] * shrunk) @ along[part].T + 1.0 / len(y)
            errors = np.linalg.solve(np.eye(len(part)) - hat, residuals[part])
            return float(np.square(errors).mean())

        pairs = list[Floats]()
        for parts in partitions:
            alone, sizes = [best[0][part].mean() for part in parts], list(map(len, parts))
            several = [
                [together(part, *one[1:]) for part in parts]
                for one in (found if own_penalty else [best])
            ]
            least = min(several, key=lambda each: np.average(each, weights=sizes))
            pairs.append(np.column_stack([alone, least]))
        return pairs

    def _map(self, kernel: Any) -> FeatureMap:
        if self.options.is_identity:
            return Identity()
        return self.options.map_of(kernel, self.n_components)

    def drawn(self, kernel: Any, X: Array, weights: Floats | None) -> FeatureMap:
        """Return the map of a kernel, drawn for the rows that are fitted."""
        inner, known = self._map(kernel), self.landmarks
        if known is None:
            drawn = drawn_from(inner, *self._fitted(X, weights))
        else:
            drawn = inner.draw(known.rows.shape[1], known.rows)
        return drawn if self.standardizer is None else Standardized(self.standardizer, drawn)

    def _fitted(self, X: Array, weights: Floats | None) -> tuple[Array, Floats | None]:
        there = slice(self.n_training)
        rows = X[there] if self.standardizer is None else self.standardizer(X[there])
        return rows, None if weights is None else weights[there]


def blocks(X: Array, y: Floats, weights: Floats | None, places: Array) -> Iterator[Block]:
    """Yield the rows at some places, some at a time."""
    for start in range(0, len(places), _BLOCK_ROWS):
        look_at_clock()
        rows = places[start : start + _BLOCK_ROWS]
        yield Block(X[rows], y[rows], int(rows[0]), None if weights is None else weights[rows])


def _about_some(feature_map: FeatureMap, X: Array, n_targets: int, precision: str) -> Moments:
    """Return the moments of no rows, about the mean of features of the first."""
    shape = min(len(X), _SHIFT_ROWS), feature_map.n_components
    some = np.empty(shape, dtype_of_features(precision))
    feature_map.evaluate(X[: len(some)], some)
    shift, precise = some.mean(axis=0, dtype=float), precision_of_features(precision)
    return Moments(feature_map, n_targets, precision=precise, feature_shift=shift)


def curve_of(
    basis: Eigenbasis, total: Moments, splits: Sequence[Split], *, is_guarded: bool
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
    return curve.guarded(basis.spectrum, made) if is_guarded else curve


def fit_bytes(
    n_rows: int, n_features: int, n_components: int, itemsize: int, n_folds: int = N_FOLDS
) -> int:
    m, p, D = n_rows, n_features, n_components
    rows = itemsize * (m * p + (_BLOCK_ROWS + _SHIFT_ROWS + D) * D)
    sums = (n_folds + 2) * 8 * Triangle.size(D)
    return int(rows + sums + decomposition_bytes(D) + 8 * _SQUARES * D**2)


def far_steps(kernel: Any, rows: Floats) -> list[int]:
    """Return half octaves from a length scale to try as well, where rows are far apart beside it.

    That is in the root of the mean square: most distances of rows in a tight cluster are short, and
    the median says nothing of the others.
    """
    scale = np.asarray(getattr(kernel, "length_scale", None))
    if scale.ndim or scale.dtype.kind != "f":
        return []
    with np.errstate(over="ignore", invalid="ignore"):
        apart = math.sqrt(2.0 * rows.var(axis=0).sum()) / float(scale)
    if not _TIGHT < apart < np.inf:
        return []
    return [round(2.0 * math.log2(apart * factor)) for factor in _ABOUT]


def kernels_of_map(kernels: Sequence[Any], options: FitOptions, n_features: int) -> list[Any]:
    """Return the kernels that the map of the options has features of."""
    found = []
    for kernel in kernels:
        with suppress(ParameterError):
            replace(options, kernel=kernel).check_map(n_features)
            found.append(kernel)
    return found


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
