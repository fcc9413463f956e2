"""Held-out trials: a fit to a part of the sample, and its errors on the rest."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.choice.time_limit import look_at_clock
from streamkern.choice.trials import SHIFT_ROWS, Targets, moments_about
from streamkern.engine.scheduler import scatter
from streamkern.features import FeatureMap, FromRows, Standardized, Standardizer, drawn_from
from streamkern.kernels import ShiftInvariantKernel
from streamkern.parameters.cost_estimate import fit_flops
from streamkern.parameters.fit_options import FitOptions
from streamkern.passes.column_summary import ColumnSummary
from streamkern.predict.gradients import GradientOuterProduct
from streamkern.predict.predictor import Predictor
from streamkern.solve import Cholesky
from streamkern.solve.penalty_grid import even_grid
from streamkern.solve.ridge import largest_eigenvalue
from streamkern.solve.solution import precision_floor
from streamkern.sources import Block
from streamkern.statistics import dtype_of_features, precision_of_features

# Features of a trial at the least, and rows a feature.
_FEWEST_COMPONENTS, _ROWS_A_FEATURE = 256, 2
# How far from the best penalty of the grid, at first the middle one, the next are that are tried.
_WIDTHS = 8, 4, 2, 1
# Of the sample, the part that fits.
TRAINING = 3 / 4
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


class HeldOutResult(NamedTuple):
    """What one length scale came to."""

    kernel: ShiftInvariantKernel
    relative_mse: float
    alpha: float
    coef: Floats  # of the training part
    squares: Floats  # of the errors of rows that are held out, the means over targets
    weights: Floats  # how often these rows count

    def beats(self, other: "HeldOutResult") -> bool:
        """Return whether the error is smaller by more than a standard error of the difference."""
        less, weights = other.squares - self.squares, self.weights
        mean = np.average(less, weights=weights)
        return bool(mean * weights.sum() > np.linalg.norm(weights * (less - mean)))


@dataclass(frozen=True)
class HeldOutTrial:
    """Fits of one round: to the first rows of the sample, with errors on the others that count."""

    options: FitOptions
    standardizer: Standardizer  # with the metric
    n_components: int
    n_rows: int
    made_from: Array | None = None  # what maps are drawn from, where that was found already

    @classmethod
    def of(cls, options: FitOptions, standardizer: Standardizer, n_rows: int) -> "HeldOutTrial":
        """Return the fits to so many rows, at no more features than these can bear."""
        made = cls(options, standardizer, options.n_components, n_rows)
        return made.with_components(max(options.n_components, _FEWEST_COMPONENTS))

    def with_components(self, D: int) -> "HeldOutTrial":
        D = min(D, max(self.n_training // _ROWS_A_FEATURE, 2))
        return replace(self, n_components=D - D % 2, made_from=None)

    @property
    def n_training(self) -> int:
        return int(TRAINING * self.n_rows)

    @property
    def flops(self) -> float:
        return fit_flops(self.n_training, self.standardizer.n_outputs, self.n_components, 1)

    def call(self, kernel: ShiftInvariantKernel, step: int, sample: Sample) -> tuple[Any, ...]:
        stretched = kernel.stretched(2.0 ** (step / 2))
        return "metric-try", self, stretched, sample.X, sample.y, sample.s

    def representatives(
        self, kernel: ShiftInvariantKernel, X: Array, weights: Floats | None
    ) -> Array | None:
        """Return what maps of the kernel are drawn from at every length scale, if that is so."""
        inner = self.options.map_of(kernel, self.n_components)
        given = self._standardized(X, weights)
        return inner.chosen(*given) if isinstance(inner, FromRows) else None

    def __call__(
        self, kernel: ShiftInvariantKernel, X: Array, y: Floats, weights: Floats | None
    ) -> HeldOutResult:
        """Fit the training part at the best of a grid of penalties."""
        n, X, y = self.n_training, X[: self.n_rows], y[: self.n_rows]
        counted = np.ones(len(X) - n) if weights is None else weights[n : self.n_rows]
        dtype = dtype_of_features(self.options.precision)
        feature_map = self._map(kernel, X, weights)
        features = np.empty((max(len(X) - n, SHIFT_ROWS), feature_map.n_components), dtype)
        some = features[: min(n, SHIFT_ROWS)]
        moments = moments_about(feature_map, X, some, y.shape[1])
        moments.update(self._training(X, y, weights))
        centred = moments.centred(intercept=self.options.fit_intercept)
        held, targets, shift = X[n:], y[n:], moments.feature_shift
        features = features[: len(held)]
        feature_map.evaluate(held, features, shift.astype(dtype))
        beside = feature_map.scale * shift - centred.feature_mean
        largest = largest_eigenvalue(centred.gram)
        alphas = even_grid(precision_floor(centred, largest), largest)

        def tried(alpha: float) -> HeldOutResult:
            look_at_clock()
            try:
                coef = Cholesky.of_shifted(centred.gram, alpha, 1).solve(centred.cross)
            except np.linalg.LinAlgError:  # so small a penalty is lost in rounding
                return HeldOutResult(kernel, np.inf, alpha, centred.cross, counted, counted)
            constant = centred.target_mean + beside @ coef
            errors = features @ (feature_map.scale * coef).astype(dtype) + constant - targets
            squares = np.square(errors).mean(axis=1)
            error = float(np.average(squares, weights=counted))
            return HeldOutResult(kernel, error, alpha, coef, squares, counted)

        found: dict[int, HeldOutResult] = {}
        for width in _WIDTHS:
            near = min(found, key=lambda i: found[i].relative_mse, default=len(alphas) // 2)
            for i in (near - width, near, near + width):
                if i not in found and 0 <= i < len(alphas):
                    found[i] = tried(float(alphas[i]))
        return min(found.values(), key=lambda each: each.relative_mse)

    def gradients(self, best: HeldOutResult, X: Array, weights: Floats | None) -> Floats:
        """Return the average gradient outer product on the training part, before the metric."""
        feature_map, zero = self._map(best.kernel, X, weights), np.zeros(best.coef.shape[1])
        precision = precision_of_features(self.options.precision)
        outer = GradientOuterProduct(Predictor(feature_map, best.coef, zero, precision=precision))
        outer.update(self._training(X, np.empty((len(X), 0)), weights))
        return outer.mean

    def _map(self, kernel: ShiftInvariantKernel, X: Array, weights: Floats | None) -> FeatureMap:
        inner, known = self.options.map_of(kernel, self.n_components), self.made_from
        if known is None:
            drawn = drawn_from(inner, *self._standardized(X, weights))
        else:
            drawn = inner.draw(known.shape[1], known)
        return Standardized(self.standardizer, drawn)

    def _standardized(self, X: Array, weights: Floats | None) -> tuple[Array, Floats | None]:
        there = slice(self.n_training)
        return self.standardizer(X[there]), None if weights is None else weights[there]

    def _training(self, X: Array, y: Floats, weights: Floats | None) -> Iterator[Block]:
        return Targets(y, weights).blocks(np.arange(self.n_training), X)


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
