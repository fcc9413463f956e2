"""Leverages of rows: standard deviations of predictions, and leave-one-out errors."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.features import FeatureMap, kernel_diagonal, uncombined
from streamkern.features.base import cached_slices
from streamkern.predict.evaluation import Measure
from streamkern.predict.predictor import Predictor, Uncached
from streamkern.solve import Cholesky, NormalEquations, decomposed
from streamkern.solve.solution import are_below, are_kept
from streamkern.sources import Block
from streamkern.statistics import Triangle, joint, part, total
from streamkern.statistics.row_hashes import FirstRows

# Rows at a time.
_ROWS_AT_ONCE = 4096
# Last digits of a sum of squares that are rounding.
_DIGITS = 16
# A row with this leverage or more determines its own prediction: it has no error without itself.
WHOLE = 1.0 - 1e-9


@dataclass(frozen=True)
class Deviation(Uncached):
    """Leverages of rows, and the standard deviations of what is predicted for them.

    With c = phi(x) - phibar, the leverage of a row is h = 1/N + c^T (G + alpha I)^-1 c and the
    variance of a new target there is s2 (1 + s h + s (k(x, x) - phi(x)^T phi(x)) / alpha), s2 being
    the variance of the noise and s the weight of a row.  The last term is of kernels at landmarks:
    what is known of the function away from them is its prior.

    Rasmussen and Williams (2006), "Gaussian processes for machine learning", sections 2.1, and
    8.3.4 for landmarks.
    """

    feature_map: FeatureMap
    # phibar / scale, (D,).
    centre: Floats
    # B (D, D), in the precision of the features and with the scale of the map, and weights (D, t),
    # such that (G + alpha I)^-1 = B diag(weights) B^T; one column for all targets, or one for each.
    basis: Array
    weights: Floats
    # 1/N, or 0 without an intercept.
    base: float
    noise_variance: Floats
    alphas: Floats
    # s: 1, or the mean weight of the rows if that is less.
    row_weight: float = 1.0
    # Of k(x, x), by features that are left out, and what they add to the penalty as noise.
    beyond: float = 0.0
    noise: float = 0.0
    flat: bool = False

    @classmethod
    def of(
        cls, feature_map: FeatureMap, equations: NormalEquations, flat: bool = False
    ) -> "Deviation":
        """Factorise G + alpha I: D^3 / 3 multiply-adds, more where targets have their own alpha.

        Where there are equations of leading features, all others add what their prior does.
        """
        beyond = noise = 0.0
        if (leading := equations.leading) is not None:
            feature_map = uncombined(feature_map).first(leading.gram.order)
            equations, beyond, noise = equations.of_leading(), leading.beyond, leading.noise
        each, basis, weights = roots(equations, feature_map.scale)
        centre = equations.feature_mean / feature_map.scale
        base = 1.0 / equations.weight if equations.intercept else 0.0
        own = equations.noise_variance, each - noise, equations.row_weight, beyond, noise, flat
        return cls(feature_map, centre, basis, weights, base, *own)

    def leverages(self, X: Array) -> Floats:
        """Return h (n, t) of rows (n, p), NaN for a row with a value that is not finite."""
        return self._sums(X)[0]

    def spread(self, X: Array) -> tuple[Floats, Floats]:
        """Return leverages (n, t), and the variances of predictions over that of noise, (n, t)."""
        kernel = kernel_diagonal(self.feature_map, X)
        leverages, squares = self._sums(X, with_squares=kernel is not None)
        if kernel is None or squares is None:
            return leverages, self.variances(leverages)
        return leverages, self.variances(leverages, kernel[:, None], squares[:, None])

    def variances(self, leverages: Any, kernel: Any = None, squares: Any = None) -> Any:
        """Return the variances of predictions over that of noise, (n, t), given leverages.

        At landmarks k(x, x) and phi(x)^T phi(x) are given, too, (n, 1).
        """
        variances = self.row_weight * leverages
        alphas = np.where(self.alphas > 0, self.alphas, np.inf)
        if self.beyond:
            variances = variances * (1.0 + self.noise / alphas)
            variances = variances + self.row_weight * self.beyond / alphas
        if kernel is not None:
            left_out = kernel - squares
            # What the digits of features do not tell from nothing.
            least = _DIGITS * np.finfo(self.basis.dtype).eps * kernel
            left_out = np.where(left_out < least, 0.0, left_out)
            variances = variances + self.row_weight * left_out / alphas
        return variances

    def _sums(self, X: Array, *, with_squares: bool = False) -> tuple[Floats, Floats | None]:
        """Return the leverages (n, t) of rows (n, p), and phi(x)^T phi(x), (n,), if asked."""
        self.feature_map.check(X.shape)
        leverages = np.empty((len(X), self.weights.shape[1]))
        squares = np.empty(len(X)) if with_squares else None
        D, dtype = len(self.centre), self.basis.dtype
        buffer = np.empty((min(len(X), _ROWS_AT_ONCE), D), dtype=dtype)
        centre = self.centre.astype(dtype)
        for start in range(0, len(X), _ROWS_AT_ONCE):
            rows = X[start : start + _ROWS_AT_ONCE]
            features = buffer[: len(rows)]
            with np.errstate(invalid="ignore", over="ignore"):
                self.feature_map.evaluate(rows, features, centre)
                along = features @ self.basis
                for part in cached_slices(len(rows), D):
                    out = slice(start + part.start, start + part.stop)
                    leverages[out] = self.base + np.square(along[part], dtype=float) @ self.weights
                    if squares is not None:
                        whole = self.feature_map.scale * (features[part] + centre)
                        squares[out] = np.square(whole, dtype=float).sum(axis=1)
        leverages[~np.isfinite(leverages)] = np.nan
        return leverages, squares

    def standard_deviations(self, X: Array) -> Floats:
        """Return the standard deviations (n, q) of new targets at rows (n, p), (n,) where flat."""
        variances = 1.0 + self.spread(X)[1]
        deviations: Floats = np.sqrt(self.noise_variance * variances)
        return deviations[:, 0] if self.flat else deviations


def roots(equations: NormalEquations, scale: float = 1.0) -> tuple[Floats, Array, Floats]:
    """Return one alpha or those of targets, scale times B, (D, r), and the weights (r, t)."""
    alphas = np.unique(equations.alphas)
    if len(alphas) > 1:
        alphas = equations.alphas
    gram, floor = equations.gram, equations.floor
    dtype = gram.panels[0].dtype
    if len(alphas) == 1 and not are_below(floor, alphas[0]):
        basis = _inverse_root(gram, float(alphas[0]), scale, dtype)
        if basis is not None:
            return alphas, basis, np.ones((gram.order, 1))
    values, vectors = decomposed(gram.dense())
    vectors *= scale
    # Eigenvalues that the solution left out count for nothing here either.
    values = np.maximum(values, 0.0)[:, None]
    weights = 1.0 / np.where(are_kept(values, floor, alphas), values + alphas, np.inf)
    return alphas, vectors.astype(dtype, copy=False), weights


def _inverse_root(gram: Triangle, alpha: float, scale: float, dtype: Any) -> Array | None:
    """Return scale times B, (D, D), with (G + alpha I)^-1 = B B^T, or None if there is none."""
    try:
        factor = Cholesky.of_shifted(gram, alpha)
    except np.linalg.LinAlgError:
        return None
    basis: Array = np.zeros((gram.order, gram.order), dtype=dtype)

    def keep(columns: slice, part: Floats) -> None:
        np.multiply(part.T, scale, out=basis[columns, -len(part) :], casting="same_kind")

    factor.over_inverse(keep)
    return basis


def without_rows(
    feature_map: FeatureMap, equations: NormalEquations, X: Array, weights: Floats
) -> tuple[Floats, Floats]:
    """Return what residuals of rows are over those without each, and deviations without each.

    Without row i, of leverage h_i and weight s_i, the residual is e_i / (1 - s_i h_i) and the
    leverage h_i / (1 - s_i h_i).  A row that determines its own prediction has NaN.
    """
    leverages, variances = Deviation.of(feature_map, equations).spread(X)
    spare = 1.0 - weights[:, None] * leverages
    spare = np.where(spare > 1.0 - WHOLE, spare, np.nan)
    # What the other rows do not tell of this one is added to what all leave open.
    variance = 1.0 + variances + equations.row_weight * leverages * (1.0 / spare - 1.0)
    return spare, np.sqrt(equations.noise_variance * variance)


def predicted_in_turn(predictor: Predictor, equations: NormalEquations, rows: Block) -> Floats:
    """Return predictions (n, q) of rows of the fit, each by the model without it."""
    fitted = predictor.linear.predict(rows.X).reshape(rows.y.shape)
    spare, _ = without_rows(predictor.feature_map, equations, rows.X, rows.each_weight())
    return rows.y - (rows.y - fitted) / spare


class Largest(FirstRows):
    """The k rows of largest values (k,), descending, equal ones in the order of their places."""

    descending = True

    values: Floats = joint(0)
    places: Array = joint(0, dtype=np.int64)
    facts: Floats = joint(0, 0)


class LeaveOneOut(Measure):
    """Sums of leave-one-out errors, and the rows of largest leverage and of largest error.

    The error without row i, of the fit, is e_i / (1 - h_i) with its weighted leverage h_i.  Facts
    of rows are leverage and errors, (k, 1 + q).
    Cook and Weisberg (1982), "Residuals and influence in regression".
    """

    deviation: Deviation
    n_largest: int = 10
    weight: float = total()
    # Rows that determine their own prediction, which are left out of the sums.
    n_whole: int = total(dtype=int)
    # Numbers until there are rows: their shapes are the deviation's, which only workers have.
    # Weighted squares of errors, (q,), of residuals, of all rows, (q,), and leverages, (t,).
    squared: Floats = total()
    rss: Floats = total()
    leverage: Floats = total()
    leverages: Largest = part(lambda measure: Largest(measure.n_largest))
    errors: Largest = part(lambda measure: Largest(measure.n_largest))

    def add(self, rows: Block, predicted: Floats) -> None:
        weights = rows.each_weight()
        leverages = weights[:, None] * self.deviation.leverages(rows.X)
        residuals = rows.y - predicted
        spare, largest = 1.0 - leverages, leverages.max(axis=1)
        whole = largest >= WHOLE
        errors = np.where(whole[:, None], 0.0, residuals / np.where(whole[:, None], 1.0, spare))
        self.squared = self.squared + weights @ errors**2
        self.rss = self.rss + weights @ residuals**2
        self.leverage = self.leverage + leverages.sum(axis=0)
        self.weight += float(weights[~whole].sum())
        self.n_whole += int(whole.sum())
        facts = np.column_stack([largest, errors])
        self.leverages.add(largest, rows.places(), facts)
        self.errors.add(np.abs(errors).max(axis=1), rows.places(), facts)

    @property
    def rmse(self) -> Floats:
        """The root mean squared leave-one-out error, (q,); NaN where no row has one."""
        with np.errstate(invalid="ignore"):
            return np.sqrt(self.squared / self.weight)
