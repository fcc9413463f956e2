"""One weight an input, by descent of the cross-validated error of exact ridge on some rows.

Gradients of a fitted function say which inputs it changes along, and not how fast; few rows and
all their kernel values say both.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.kernels import Laplacian, RadialKernel

# Folds, the logarithm of weights that is one deviation before any row, and the steps at the most.
_FOLDS, _DEVIATION, _STEPS = 10, 0.5, 40
# Where the penalty begins, its bounds and those of factors on weights, and what ends the descent.
_PENALTY, _PENALTIES, _WEIGHTS, _TOLERANCE = 1e-2, (1e-6, 10.0), (1e-4, 1e4), 1e-4
# Length scales, beyond which kernels are 0.
_FARTHEST = 1e9
# What a descent takes, as multiply-adds over n^3, n^2 and p n^2, as it was measured.
_FLOPS = 25.0, 5000.0, 700.0


class WeightDescent(NamedTuple):
    """The descent for a kernel of one length scale, from equal weights.

    Sundararajan and Keerthi (2001), "Predictive approaches for choosing hyperparameters in Gaussian
    processes"; Ginsbourger and Schaerer (2021), "Fast calculation of Gaussian process multiple-fold
    cross-validation residuals and their covariances".
    """

    kernel: Any  # of distances

    @staticmethod
    def suits(kernel: Any) -> bool:
        return isinstance(kernel, (Laplacian, RadialKernel))

    @staticmethod
    def flops(n_rows: int, n_features: int) -> float:
        cubes, squares, products = _FLOPS
        return n_rows**2 * (cubes * n_rows + squares + products * n_features)

    def weights(self, X: Array, y: Floats, counts: Floats | None) -> Floats:
        """Return weights (p,) of standardised inputs (n, p), whose mean square is 1.

        Of targets (m, q) and counts (m,), which may be those of more rows, the first n are taken.
        """
        from scipy.optimize import minimize  # noqa: PLC0415  slow, and for searches alone

        n, p = X.shape
        counts = np.ones(n) if counts is None else counts[:n] / counts[:n].mean()
        y = y[:n] - np.average(y[:n], axis=0, weights=counts)
        folds = np.array_split(np.random.default_rng(0).permutation(n), _FOLDS)
        start = np.log([*np.full(p, 1.0 / self.kernel.length_scale), _PENALTY])
        within = start[:-1, None] + np.log(_WEIGHTS)
        how: Any = {"bounds": [*within, np.log(_PENALTIES)], "method": "L-BFGS-B", "jac": True}
        how["options"] = {"maxiter": _STEPS, "maxfun": 2 * _STEPS, "ftol": _TOLERANCE}
        best = minimize(self.objective, start, (X, y, counts, folds), **how)
        weights = np.exp(best.x[:-1])
        return weights / np.sqrt(np.mean(weights**2))

    def objective(
        self, numbers: Floats, X: Array, y: Floats, counts: Floats, folds: Sequence[Array]
    ) -> tuple[float, Floats]:
        """Return the logarithm of the error, with what uneven weights cost, and its slopes.

        `numbers` (p + 1,) are the logarithms of the weights and of the penalty.
        """
        weights, penalty = np.exp(numbers[:-1]), np.exp(numbers[-1])
        Z = np.clip(X * weights, -_FARTHEST, _FARTHEST)
        apart = self.kernel.distance(Z, Z)
        K = self.kernel.profile(apart)
        error, outer = _held_out(K + np.diag(penalty / counts), y, counts, folds)
        of_penalty = penalty * (np.diagonal(outer) / counts).sum()
        slopes = np.append(self._slopes(Z, apart, K, outer), of_penalty) / error
        # Weights that differ need a reason; their common size does not.
        off = numbers[:-1] - numbers[:-1].mean()
        slopes[:-1] += 2.0 * off / (_DEVIATION**2 * len(X))
        return np.log(error) + off @ off / (_DEVIATION**2 * len(X)), slopes

    def _slopes(self, Z: Floats, apart: Floats, K: Floats, outer: Floats) -> Floats:
        """Return the derivatives (p,) by the logarithms of weights, of sum_ij outer_ij k_ij."""
        if self.kernel.along_axes:
            H = -outer * K
            return np.array([np.vdot(H, np.abs(z[:, None] - z)) for z in Z.T])
        H = outer * self.kernel.slope(apart)
        return 2.0 * (H.sum(axis=1) @ Z**2 - np.einsum("ij,ij->j", Z, H @ Z))


def _held_out(
    shifted: Floats, y: Floats, counts: Floats, folds: Sequence[Array]
) -> tuple[float, Floats]:
    """Return the mean square error of rows held out, and its derivatives (n, n) by the kernel."""
    from scipy.linalg import cho_factor, cho_solve, lapack  # noqa: PLC0415  as above

    inverse, _ = lapack.dpotri(cho_factor(shifted, lower=True)[0], lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    coef, size = inverse @ y, counts.sum() * y.shape[1]
    errors, pulls = np.empty_like(y), np.empty_like(y)
    left, right = [], []
    for rows in folds:
        factor = cho_factor(inverse[np.ix_(rows, rows)], lower=True)
        errors[rows] = cho_solve(factor, coef[rows])
        pulls[rows] = 2.0 / size * cho_solve(factor, counts[rows, None] * errors[rows])
        left.append(inverse[:, rows] @ pulls[rows])
        right.append(inverse[:, rows] @ errors[rows])
    outer = np.hstack([-inverse @ pulls, *left]) @ np.hstack([coef, *right]).T
    error = max((counts[:, None] * errors**2).sum() / size, np.finfo(float).tiny)
    return float(error), (outer + outer.T) / 2.0
