"""A small fit to three quarters of its rows, at a penalty that is found by errors on the others.

A few factors are enough for that, where cross-validation takes an eigenbasis.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.choice.small_fit import Sample, SmallFit, blocks, empty_moments
from streamkern.choice.time_limit import look_at_clock
from streamkern.features import Standardizer
from streamkern.kernels import ShiftInvariantKernel
from streamkern.parameters.cost_estimate import fit_flops
from streamkern.parameters.fit_options import FitOptions
from streamkern.predict.gradients import GradientOuterProduct
from streamkern.predict.predictor import Predictor
from streamkern.solve import Cholesky
from streamkern.solve.penalty_grid import even_grid
from streamkern.solve.ridge import largest_eigenvalue
from streamkern.solve.solution import precision_floor
from streamkern.statistics import Triangle, dtype_of_features, precision_of_features

# The part of the rows that is fitted.
TRAINING = 3 / 4
# Features at the least that are asked for, and rows a feature.
_FEWEST_COMPONENTS, _ROWS_A_FEATURE = 256, 2
# How far from the best penalty of the grid, at first the middle one, factors are tried next.
_WIDTHS = 8, 4, 2, 1
# How many length scales rows are apart where that is far, and factors of their distance.
_TIGHT, _ABOUT = 10.0, (0.5, 1.0, 2.0, 4.0)


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


class _System(NamedTuple):
    """Normal equations of as many unknowns as there are features, or as rows that are fitted."""

    gram: Triangle
    cross: Floats
    # Predictions of the rows held out are `held` (m, k) times these unknowns, times `scale`, and
    # `beside` (k,) times them.
    held: Array
    scale: float
    beside: Floats
    rows: Any = None  # (n, D) that turn unknowns of rows into coefficients


@dataclass(frozen=True)
class HeldOutFit(SmallFit):
    """Fits to the first rows of a sample, which others of it judge."""

    @classmethod
    def of(cls, options: FitOptions, standardizer: Standardizer, n_rows: int) -> "HeldOutFit":
        """Return the fit at no more features than rows can bear."""
        made = cls(options, 0, n_rows, standardizer)
        return made.sized(n_rows, max(options.n_components, _FEWEST_COMPONENTS))

    def sized(self, n_rows: int, D: int) -> "HeldOutFit":
        D = min(D, max(int(TRAINING * n_rows) // _ROWS_A_FEATURE, 2))
        return replace(self, n_rows=n_rows, n_components=D - D % 2, landmarks=None)

    @property
    def n_fitted(self) -> int:
        return int(TRAINING * self.n_rows)

    @property
    def flops(self) -> float:
        return fit_flops(self.n_fitted, self.standardizer.n_outputs, self.n_components, 1)

    def held_out(
        self,
        kernel: ShiftInvariantKernel,
        X: Array,
        y: Floats,
        weights: Floats | None = None,
        keeps_coef: bool = True,
    ) -> HeldOutResult:
        """Fit at the best of a grid of penalties, found by halving steps.

        Fewer rows than features are solved for by one unknown a row, which is the same.
        """
        n, X, y = self.n_fitted, X[: self.n_rows], y[: self.n_rows]
        counted = np.ones(len(X) - n) if weights is None else weights[n : self.n_rows]
        feature_map = self.drawn(kernel, X, weights)
        moments = empty_moments(feature_map, X[:n], y.shape[1], self.options.precision)
        moments.update(blocks(X, y, weights, np.arange(n)))
        centred = moments.centred(intercept=self.options.fit_intercept)
        largest, shift = largest_eigenvalue(centred.gram), moments.feature_shift
        alphas = even_grid(precision_floor(centred, largest), largest)

        def features(rows: Array) -> Array:
            """Return features about their shift, over their scale."""
            made = np.empty((len(rows), len(shift)), dtype_of_features(self.options.precision))
            feature_map.evaluate(rows, made, shift.astype(made.dtype))
            return made

        scale = feature_map.scale
        beside = scale * shift - centred.feature_mean
        system = _System(centred.gram, centred.cross, features(X[n:]), scale, beside)
        if n < len(shift):
            targets = y[:n] - centred.target_mean
            system = _by_rows(system, features(X[:n]), targets, weights)

        def tried(alpha: float) -> HeldOutResult:
            look_at_clock()
            try:
                coef = Cholesky.of_shifted(system.gram, alpha, 1).solve(system.cross)
            except np.linalg.LinAlgError:  # so small a penalty is lost in rounding
                return HeldOutResult(kernel, np.inf, alpha, system.cross, counted, counted)
            constant = centred.target_mean + system.beside @ coef
            errors = system.held @ (system.scale * coef).astype(system.held.dtype)
            squares = np.square(errors + constant - y[n:]).mean(axis=1)
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
        return best if system.rows is None else best._replace(coef=system.rows.T @ best.coef)

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
        outer.update(blocks(X, np.empty((len(X), 0)), weights, np.arange(self.n_fitted)))
        return outer.mean


def _by_rows(system: _System, features: Array, targets: Floats, weights: Floats | None) -> _System:
    """Return the system of one unknown a row, from the features and targets of those fitted."""
    n = len(features)
    rows, held = (system.scale * each + system.beside for each in (features, system.held))
    roots = np.ones((n, 1)) if weights is None else np.sqrt(weights[:n, None])
    rows *= roots
    gram = Triangle.of(rows @ rows.T)
    return _System(gram, roots * targets, held @ rows.T, 1.0, np.zeros(n), rows)


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
