"""One fit of the search for a metric: to a part of the sample, with its errors on the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamkern.engine.scheduler import task
from streamkern.features import Standardized
from streamkern.parameters.cost_estimate import fit_flops
from streamkern.predict.gradients import GradientOuterProduct
from streamkern.predict.predictor import Predictor
from streamkern.solve import Eigenbasis
from streamkern.solve.penalty_curve import default_grid
from streamkern.sources import Block
from streamkern.statistics import Moments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamkern._typing import Array, Floats
    from streamkern.features import FeatureMap, Standardizer
    from streamkern.kernels import ShiftInvariantKernel
    from streamkern.parameters.fit_options import FitOptions

# Features of a trial at the least and most, and of rows a feature at the least.
_COMPONENTS, _ROWS_A_FEATURE = (256, 1024), 2
# Of the sample, the part that fits.
_TRAINING = 3 / 4
_BLOCK_ROWS, _SHIFT_ROWS = 4096, 2048


class Sample(NamedTuple):
    """The rows of the sample and their weights, here and where the tasks run; the targets there."""

    rows: Array
    weights: Floats | None
    X: Any
    y: Any
    s: Any


class Tried(NamedTuple):
    """What one length scale came to; coefficients are those of the training part.

    `squares` are the squared errors of the rows that are held out, the means over targets, and
    `weights` how often these rows count.
    """

    kernel: ShiftInvariantKernel
    relative_mse: float
    alpha: float
    coef: Floats
    squares: Floats
    weights: Floats

    def beats(self, other: Tried) -> bool:
        """Return whether the error is smaller by more than a standard error of the difference."""
        less, weights = other.squares - self.squares, self.weights
        mean = np.average(less, weights=weights)
        return bool(mean * weights.sum() > np.linalg.norm(weights * (less - mean)))


@dataclass(frozen=True)
class Trial:
    """What all fits of a round have in common.

    Parameters
    ----------
    options : FitOptions
    standardizer : Standardizer
        With the metric.
    n_components : int
    n_rows : int
        Rows of the sample that count, the first ones; of these the first fit, and the others are
        held out.
    made_from : ndarray, optional
        What maps are drawn from, where that was found already.
    """

    options: FitOptions
    standardizer: Standardizer
    n_components: int
    n_rows: int
    made_from: Array | None = None

    @classmethod
    def of(cls, options: FitOptions, standardizer: Standardizer, n_rows: int) -> Trial:
        """Return the fits to so many rows, at no more features than these can bear."""
        return cls(options, standardizer, _n_components(options, n_rows), n_rows)

    @property
    def n_training(self) -> int:
        """The number of rows that fit."""
        return int(_TRAINING * self.n_rows)

    @property
    def flops(self) -> float:
        """The multiply-adds of a fit."""
        return fit_flops(self.n_training, self.standardizer.n_outputs, self.n_components, 1)

    def task(self, kernel: ShiftInvariantKernel, step: int, sample: Sample) -> Any:
        """Return the task of a fit, at so many half octaves from the kernel's length scale."""
        stretched = kernel.stretched(2.0 ** (step / 2))
        return task(self, stretched, sample.X, sample.y, sample.s, name="metric-try")

    def representatives(
        self, kernel: ShiftInvariantKernel, X: Array, weights: Floats | None
    ) -> Array | None:
        """Return what maps of the kernel are drawn from at every length scale, if that is so."""
        there = slice(self.n_training)
        rows, weights = self.standardizer(X[there]), None if weights is None else weights[there]
        return self.options.map_of(kernel, self.n_components).representatives(rows, weights)

    def __call__(
        self, kernel: ShiftInvariantKernel, X: Array, y: Floats, weights: Floats | None
    ) -> Tried:
        """Fit the training part at the best of a grid of penalties."""
        X, y = X[: self.n_rows], y[: self.n_rows]
        counted = np.ones(len(X) - self.n_training)
        if weights is not None:
            counted = weights[self.n_training : self.n_rows]
        feature_map, intercept = self._map(kernel, X, weights), self.options.fit_intercept
        D, dtype = feature_map.n_components, self._dtype
        features = np.empty((max(len(X) - self.n_training, _SHIFT_ROWS), D), dtype)
        some = features[: min(self.n_training, _SHIFT_ROWS)]
        feature_map.evaluate(X[: len(some)], some)
        shift = some.mean(axis=0, dtype=float)
        moments = Moments(
            feature_map, y.shape[1], precision=self.options.precision, feature_shift=shift
        )
        moments.update(self._training(X, y, weights))
        basis = Eigenbasis.of(moments.centred(intercept=intercept), self.n_training - intercept)
        held, targets = X[self.n_training :], y[self.n_training :]
        features = features[: len(held)]
        feature_map.evaluate(held, features, shift.astype(dtype))
        best = Tried(kernel, np.inf, 0.0, np.zeros((D, y.shape[1])), counted, counted)
        for alpha in default_grid(basis.spectrum).tolist():
            shifted = basis.spectrum.values[:, None] + alpha
            coef = basis.vectors @ (basis.spectrum.projections / shifted)
            beside = feature_map.scale * shift - basis.feature_mean
            constant = basis.target_mean + beside @ coef
            errors = features @ (feature_map.scale * coef).astype(dtype) + constant - targets
            squares = np.square(errors).mean(axis=1)
            relative_mse = float(np.average(squares, weights=counted))
            if relative_mse < best.relative_mse:
                best = Tried(kernel, relative_mse, alpha, coef, squares, counted)
        return best

    def gradients(self, best: Tried, X: Array, weights: Floats | None) -> Floats:
        """Return the average gradient outer product on the training part, before the metric."""
        feature_map = self._map(best.kernel, X, weights)
        predictor = self._predictor(feature_map, best.coef, np.zeros(best.coef.shape[1]))
        outer = GradientOuterProduct(predictor)
        outer.update(self._training(X, np.empty((len(X), 0)), weights))
        return outer.mean

    @property
    def _dtype(self) -> Any:
        return np.float32 if self.options.precision == "single" else np.float64

    def _map(self, kernel: ShiftInvariantKernel, X: Array, weights: Floats | None) -> FeatureMap:
        rows, inner = self.made_from, self.options.map_of(kernel, self.n_components)
        if rows is None:
            there = slice(self.n_training)
            weights = None if weights is None else weights[there]
            rows = inner.chosen(self.standardizer(X[there]), weights)
        return Standardized(self.standardizer, inner.draw(self.standardizer.n_outputs, rows))

    def _predictor(self, feature_map: FeatureMap, coef: Floats, intercept: Floats) -> Predictor:
        return Predictor(feature_map, coef, intercept, precision=self.options.precision)

    def _training(self, X: Array, y: Floats, weights: Floats | None) -> Iterator[Block]:
        for start in range(0, self.n_training, _BLOCK_ROWS):
            rows = slice(start, min(start + _BLOCK_ROWS, self.n_training))
            yield Block(X[rows], y[rows], start, None if weights is None else weights[rows])


def _n_components(options: FitOptions, n_rows: int) -> int:
    """Return how many features a round takes."""
    fewest, most = _COMPONENTS
    D = min(max(options.n_components, fewest), most)
    D = min(D, max(int(_TRAINING * n_rows) // _ROWS_A_FEATURE, 2))
    return D - D % 2
