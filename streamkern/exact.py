"""Exact kernel ridge regression: the baseline, for as many rows as n^2 numbers fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.linalg import lapack
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from streamkern.errors import InsufficientMemoryError, SingularSystemError
from streamkern.kernels import Gaussian, Kernel
from streamkern.memory import available_bytes, in_words
from streamkern.solve import checked_alpha

if TYPE_CHECKING:
    from streamkern._typing import Floats

_ROWS_AT_ONCE = 1024


class ExactKernelRidge(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Kernel ridge regression by the n x n system: n^2 memory, n^3 / 3 multiply-adds.

    a = (K + alpha I)^-1 (y - mu), and the prediction at x is mu + sum_i a_i k(x, x_i).  The
    intercept mu is not penalised.

    Parameters
    ----------
    kernel : Kernel
        With a numeric length scale.
    alpha : float
        The penalty, as in scikit-learn's `KernelRidge`.
    fit_intercept : bool
    leave_one_out : bool
        Compute the leave-one-out residuals too, for twice as much work again.
    max_bytes : int, optional
        What the fit may use; by default the memory that is free.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n,) or (n, q)
    intercept_ : float or ndarray of shape (q,)
    X_fit_ : ndarray of shape (n, p)
    loo_residuals_ : ndarray of shape (n,) or (n, q)
        y_i less the prediction for x_i of a model fitted without row i; with `leave_one_out`.

    References
    ----------
    Saunders, Gammerman and Vovk (1998), "Ridge regression learning algorithm in dual variables".
    Rifkin and Lippert (2007), "Notes on regularized least squares", for leave-one-out.
    """

    def __init__(
        self,
        kernel: Kernel = Gaussian(),  # noqa: B008  immutable
        *,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        leave_one_out: bool = False,
        max_bytes: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.leave_one_out = leave_one_out
        self.max_bytes = max_bytes

    def fit(self, X: Any, y: Any) -> Self:
        """Solve the n x n system.

        Parameters
        ----------
        X : array_like of shape (n, p)
        y : array_like of shape (n,) or (n, q)

        Raises
        ------
        InsufficientMemoryError
            If the n x n matrices do not fit.
        SingularSystemError
            If K + alpha I has no Cholesky factor.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        alpha = checked_alpha(self.alpha)
        n = len(X)
        self._refuse_beyond_memory(n)
        targets = np.asfortranarray(y.reshape(n, -1), dtype=float)
        factor = self.kernel(X, X).T  # symmetric, and now in the order that LAPACK works in place
        factor[np.diag_indices(n)] += alpha
        factor, failed = lapack.dpotrf(factor, lower=1, overwrite_a=1, clean=0)
        if failed:
            raise SingularSystemError(
                f"K + alpha I is singular at alpha {alpha:g}; give a larger alpha, or remove rows "
                f"that occur twice."
            )
        dual, _ = lapack.dpotrs(factor, targets, lower=1)
        intercept = np.zeros(targets.shape[1])
        ones: Floats = np.zeros(n)
        if self.fit_intercept:
            # The stationary mu: 1^T (K + alpha I)^-1 (y - mu) = 0.
            ones, _ = lapack.dpotrs(factor, np.ones(n), lower=1)
            intercept = dual.sum(axis=0) / ones.sum()
            dual -= np.outer(ones, intercept)
        if self.leave_one_out:
            # a_i over the i-th diagonal of the matrix that takes y to a.
            inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
            leverage = np.diagonal(inverse).copy()
            if self.fit_intercept:
                leverage -= ones**2 / ones.sum()
            residuals = dual / leverage[:, None]
            self.loo_residuals_ = residuals[:, 0] if y.ndim == 1 else residuals
        self.X_fit_ = X
        self.dual_coef_ = dual[:, 0] if y.ndim == 1 else np.ascontiguousarray(dual)
        self.intercept_ = intercept[0] if y.ndim == 1 else intercept
        return self

    def _refuse_beyond_memory(self, n: int) -> None:
        allowed = available_bytes() if self.max_bytes is None else self.max_bytes
        # The kernel matrix, factorised in place, and a few rows of it in the making.
        needed = 8 * n**2 + 4 * 8 * _ROWS_AT_ONCE * n
        if needed > allowed:
            raise InsufficientMemoryError(
                f"exact kernel ridge regression on {n:,} rows needs {in_words(needed)}, but "
                f"{in_words(allowed)} may be used; take fewer rows, or random features."
            )

    def predict(self, X: Any) -> Floats:
        """Return predictions (n,) or (n, q) for rows (n, p), a block of rows at a time."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        parts: list[Any] = [
            self.kernel(X[start : start + _ROWS_AT_ONCE], self.X_fit_) @ self.dual_coef_
            for start in range(0, len(X), _ROWS_AT_ONCE)
        ]
        predictions: Floats = np.concatenate(parts) + self.intercept_
        return predictions
