"""Exact kernel ridge regression: the baseline, for as many rows as n^2 numbers fit."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from streamkern._typing import Array, Floats
from streamkern.errors import DataError, InsufficientMemoryError, ParameterError
from streamkern.estimators.conventions import (
    KernelParameters,
    checked_rows,
    data_errors,
    keep_parameters,
    refuse_paths,
)
from streamkern.estimators.docstrings import documented
from streamkern.features import Standardizer
from streamkern.features.metric import (
    GivenMetric,
    check_kernel_in_metric,
    check_metric,
    checked_metric,
)
from streamkern.kernels import Kernel, ShiftInvariantKernel, as_kernel
from streamkern.kernels.shift_invariant import MEDIAN_ROWS
from streamkern.models.prediction import by_rows
from streamkern.parameters.parameters import DEFAULT_KERNEL
from streamkern.runtime.memory import available_bytes, in_words
from streamkern.solve.kernel_system import KernelBasis, solve_dual
from streamkern.solve.penalty_curve import PenaltyCurve
from streamkern.solve.penalty_grid import checked_penalty
from streamkern.sources import ArraySource, Block
from streamkern.sources.arrays import as_rows
from streamkern.sources.containers import (
    in_memory,
    keeps_coordinates,
    unwrapped,
    with_named_columns,
)
from streamkern.sources.nonfinite_rows import bad_rows_error, none_left_error
from streamkern.statistics import ColumnStatistics, RowSample

_ROWS_AT_ONCE = 1024
# One eigendecomposition serves them all: about five to a factor of ten.
_N_ALPHAS = 64


@documented
class ExactKernelRidge(KernelParameters, MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Kernel ridge regression by the n x n system: n^2 memory, n^3 / 3 multiply-adds.

    a = (K + alpha I)^-1 (y - mu), and the prediction at x is mu + sum_i a_i k(x, x_i).  The
    intercept mu is not penalised.

    Parameters
    ----------
    alpha : float, sequence of float, or 'loo'
        The penalty, as in scikit-learn's `KernelRidge`.  Or penalties to choose from by
        leave-one-out cross-validation, or 'loo' for 64 of them between the rounding of K and its
        largest eigenvalue: one eigendecomposition, of about nine times n^3 operations, serves all.
        With several targets, squared errors are divided by the targets' variances and averaged.
    metric : ndarray of shape (p, p), optional
        M, positive semi-definite: the kernel takes (x - x')^T M (x - x') for the squared distance,
        or rows turned by the symmetric root of M where it is of another distance.
    standardize : bool
        Take inputs less their means, over their standard deviations, and leave out constant ones.
    leave_one_out : bool
        Compute the leave-one-out residuals of a given alpha too, for twice as much work again.
    max_bytes : int, optional
        What the fit may use; by default the memory that is free.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n,) or (n, q)
    intercept_ : float or ndarray of shape (q,)
    alpha_ : float
        The penalty that was given or chosen.
    alpha_curve_ : dict or None
        Of a chosen alpha: the penalties, and the leave-one-out RMSE at each.
    X_fit_ : ndarray of shape (n, p)
        Of these n rows, as of `dual_coef_`, those of weight 0 are left out.
    kernel_ : Kernel
        With its length scale resolved.
    loo_residuals_ : ndarray of shape (n,) or (n, q)
        y_i less the prediction for x_i of a model fitted without row i, which is left out with all
        its weight; with `leave_one_out`, and of a chosen alpha.

    References
    ----------
    Saunders, Gammerman and Vovk (1998), "Ridge regression learning algorithm in dual variables".
    Rifkin and Lippert (2007), "Notes on regularized least squares", for leave-one-out.
    """

    def __init__(
        self,
        kernel: Kernel | str = DEFAULT_KERNEL,
        *,
        alpha: float | str | Sequence[float] | Floats = 1.0,
        metric: Array | None = None,
        standardize: bool = True,
        fit_intercept: bool = True,
        leave_one_out: bool = False,
        max_bytes: int | None = None,
    ) -> None:
        keep_parameters(self, locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve the n x n system of the rows.

        Parameters
        ----------
        X : array_like, data frame or Dask collection, of shape (n, p)
            Held in memory as float64; a source or a path is refused.
        y : array_like or Dask collection, of shape (n,) or (n, q); or names of columns of a frame
        sample_weight : array_like or Dask collection of shape (n,), or str, optional
            Predictions are those of a fit to rows that are repeated as often as they weigh, up to
            rounding, at the same alpha.  Leave-one-out differs: it leaves out a row of weight 2
            whole.

        Raises
        ------
        DataError
            If these are no tables of finite numbers of equal length, or weights are negative or all
            0; or all inputs are constant, and to be standardised.
        ParameterError
            If an option has a value that it cannot have.
        InsufficientMemoryError
            If the n x n matrices have no room.
        SingularSystemError
            If K + alpha I has no Cholesky factor.
        """
        refuse_paths(self, X)
        named = {"y": unwrapped("y", y), "sample_weight": sample_weight}
        X, y, sample_weight = map(in_memory, with_named_columns(unwrapped("X", X), **named))
        with data_errors():
            X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        alpha, kernel = _checked(self.alpha), as_kernel(self.kernel)
        metric = _checked_matrix(self.metric, kernel, X.shape[1])
        weights = None if sample_weight is None else _checked_weights(X, sample_weight)
        given, counting = (X, y), np.ones(len(X), dtype=bool) if weights is None else weights > 0
        if weights is not None:
            X, y, weights = X[counting], y[counting], weights[counting]
        check_memory(len(X), alpha, self.max_bytes)
        if not isinstance(alpha, float) and len(X) < 2:
            raise DataError("leave-one-out needs 2 rows, but there is 1 sample; add rows.")
        standardizer = self._standardizer(X, weights, metric)
        if isinstance(kernel, ShiftInvariantKernel):
            kernel.check_inputs(X.shape[1])
            sample = RowSample(MEDIAN_ROWS)
            sample.update([Block(X, np.empty((len(X), 0)), 0, weights)])
            kernel = kernel.restricted(standardizer.columns)
            kernel = kernel.resolved(standardizer(sample.X), weights=sample.counts)
        K = kernel(rows := standardizer(X), rows)
        targets = y.reshape(len(X), -1).astype(float, copy=False)
        curve = None
        if isinstance(alpha, float):
            more = {"intercept": self.fit_intercept, "leave_one_out": self.leave_one_out}
            solution = solve_dual(K, targets, alpha, weights, **more)
        else:
            basis = KernelBasis.of(K, targets, weights, intercept=self.fit_intercept)
            alphas = basis.grid(_N_ALPHAS) if alpha == "loo" else np.array(alpha)
            mean = np.average(targets, axis=0, weights=weights)
            variance = np.average((targets - mean) ** 2, axis=0, weights=weights)
            scale = np.where(variance > 0, variance, 1.0)
            curve = PenaltyCurve("loo", alphas, basis.loo_mean_squares(alphas), scale)
            alpha = float(alphas[curve.choose()[0]])
            solution = basis.solve(alpha)
        self.kernel_, self.alpha_ = kernel, alpha
        self.alpha_curve_ = curve and curve.as_dict()
        self.X_fit_, self._rows, self._standardizer_ = X, rows, standardizer
        self.dual_coef_ = np.ascontiguousarray(solution.coef).reshape(y.shape)
        self.intercept_ = solution.intercept[0] if y.ndim == 1 else solution.intercept
        self.__dict__.pop("loo_residuals_", None)  # of an earlier fit
        if solution.loo_residuals is not None:
            residuals = np.empty(given[1].shape)
            residuals[counting] = solution.loo_residuals.reshape(y.shape)
            if not counting.all():  # no model has seen those
                others = ~counting
                residuals[others] = given[1][others] - self.predict(given[0][others])
            self.loo_residuals_ = residuals
        return self

    def _standardizer(
        self, X: Floats, weights: Floats | None, metric: GivenMetric | None
    ) -> Standardizer:
        n, p = X.shape
        kept, mean, deviation = np.arange(p), np.zeros(p), np.ones(p)
        if self.standardize:
            columns = ColumnStatistics(p)
            columns.update([Block(X, np.empty((n, 0)), 0, weights)])
            kept = np.flatnonzero(~columns.constant(8 * float(np.finfo(float).eps)))
            if not len(kept):
                samples = "1 sample" if n == 1 else f"{n:,} samples"
                raise DataError(
                    f"all columns of X are constant, of {samples} and {p} inputs, so there is "
                    f"nothing to learn from; check the inputs."
                )
            variance = columns.variance[kept]
            if not (np.finfo(float).tiny <= variance.min() <= variance.max() < np.inf):
                raise DataError(
                    "inputs must have variances that numbers hold, but some underflow or overflow; "
                    "rescale them."
                )
            mean, deviation = columns.mean[kept], np.sqrt(variance)
        linear = None if metric is None else metric.linear(kept)
        return Standardizer(kept, mean, deviation, p, linear)

    @keeps_coordinates
    def predict(self, X: Any) -> Any:
        """Predict the targets of rows, a block of them at a time.

        Parameters
        ----------
        X : array_like, data frame or Dask collection, of shape (n, p)

        Returns
        -------
        ndarray of shape (n,) or (n, q), or Dask array for a Dask collection
        """
        check_is_fitted(self)
        rows = as_rows(checked_rows(self, X, first=False, finite=True, dtype=np.float64))
        n_columns = None if self.dual_coef_.ndim == 1 else self.dual_coef_.shape[1]
        fitted = self._rows, self.kernel_, self._standardizer_, self.dual_coef_, self.intercept_
        return by_rows(_predictions, rows, n_columns, fitted=fitted)


def _predictions(X: Array, fitted: Any) -> Floats:
    rows, kernel, standardizer, dual_coef, intercept = fitted
    X = standardizer(X)
    predictions = np.empty((len(X), *dual_coef.shape[1:]))
    for start in range(0, len(X), _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        predictions[block] = kernel(X[block], rows) @ dual_coef
    predictions += intercept
    return predictions


def check_memory(n_rows: int, alpha: Any, max_bytes: int | None = None) -> None:
    """Raise InsufficientMemoryError unless a fit to so many rows fits in memory."""
    allowed = available_bytes() if max_bytes is None else max_bytes
    # The kernel matrix, factorised in place, and a few rows of it in the making; or its
    # eigenvectors, with the workspace of the decomposition.
    matrices = 1 if isinstance(alpha, float) else 5
    needed = matrices * 8 * n_rows**2 + 4 * 8 * _ROWS_AT_ONCE * n_rows
    if needed > allowed:
        raise InsufficientMemoryError(
            f"exact kernel ridge regression on {n_rows:,} rows needs {in_words(needed)}, but "
            f"{in_words(allowed)} may be used; take fewer rows, or random features."
        )


def _checked_weights(X: Floats, sample_weight: Any) -> Floats:
    source = ArraySource(X, sample_weight=unwrapped("sample_weight", sample_weight))
    weights: Any = source.weights
    bad = np.flatnonzero(~np.isfinite(weights))
    if len(bad):
        raise bad_rows_error(source, len(bad), int(bad[0]))
    if not weights.any():
        raise none_left_error(source, 0, len(weights))
    return weights


def _checked_matrix(metric: Any, kernel: Kernel, n_features: int) -> GivenMetric | None:
    """Return a metric M that rows and kernel can be in, None for plain distances."""
    checked = checked_metric(metric)
    if isinstance(checked, str):
        raise ParameterError(
            f"the exact model takes a metric as a matrix (p, p), not {metric!r}; learn it with "
            f"RandomFeatureRidge, whose metric_ is one."
        )
    check_metric(checked, n_features)
    if checked is not None:
        check_kernel_in_metric(kernel)
    return checked


def _checked(alpha: Any) -> float | str | tuple[float, ...]:
    if isinstance(alpha, str) and alpha != "loo":
        raise ParameterError(
            f"alpha must be 'loo' or numbers, not {alpha!r}; give one of these: the exact model "
            f"chooses by leave-one-out."
        )
    return alpha if isinstance(alpha, str) else checked_penalty(alpha)
