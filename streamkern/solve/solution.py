"""The solution of a ridge regression, its normal equations, and how far sums can be trusted."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Floats
from streamkern.errors import OverflowedError
from streamkern.statistics import CentredMoments, Precision, Triangle

_EPS = float(np.finfo(float).eps)
# Relative to the largest eigenvalue of G: the noise that products leave in it.  In single
# precision the measured error of G is 1e-8 to 1e-7 of its norm; in double, a few units of D eps.
_SINGLE_NOISE = 1e-7
# Relative to its terms: the rounding in a sum of squared residuals that sums in double tell.
_DOUBLE_ROUNDING = 16.0 * _EPS
# Of a precision floor: what is as near to it is on it, as estimates of it differ.
_NEAR_FLOOR = 0.99


@dataclass(frozen=True)
class RidgeSolution:
    """Coefficients of a ridge regression, and its diagnostics."""

    coef: Floats  # (D, q)
    intercept: Floats  # (q,)
    alpha: float | Floats  # one penalty for all targets, or one for each (q,)
    solver: str  # 'cholesky' or 'eigen'
    # Of G + alpha I: estimated in the 1-norm for 'cholesky', of the eigenvalues that were kept for
    # 'eigen'; the largest where there are several penalties.
    condition: float
    effective_dof: float | Floats  # tr (G + alpha I)^-1 G, plus 1 for an intercept; as alpha
    train_rss: Floats  # residual sum of squares of the rows (q,), `rss_rounding` at least
    rss_rounding: Floats  # how far rounding may have moved it
    floor: float  # the penalty below which the precision of G decides the solution, not the data
    n_clipped: int = 0  # eigenvalues of G that were left out, since they and alpha are below it
    note: str = ""  # one sentence where the solution is not the plain one


def precision_floor(moments: CentredMoments, largest: float) -> float:
    """Return the size of eigenvalues of G that its precision cannot tell from zero."""
    return relative_floor(moments.precision, moments.gram.order) * min(largest, moments.most)


def are_below(floor: float, alphas: Any) -> Any:
    """Say which penalties lie below a precision floor, or are 0."""
    return (alphas < _NEAR_FLOOR * floor) | (alphas <= 0)


def are_kept(values: Floats, floor: float, alphas: Floats) -> Any:
    """Say which eigenvalues (D, 1) count for which penalties (A,): above the floor those of all."""
    return (values > floor) | ~are_below(floor, alphas)


def is_on_or_below(floor: float, alpha: float) -> bool:
    """Say whether a penalty is on a precision floor or below it."""
    return bool(_NEAR_FLOOR * alpha <= floor)


def relative_floor(precision: Precision, n_components: int) -> float:
    """Return that size for a largest eigenvalue of 1."""
    return _SINGLE_NOISE if precision == "single" else 4.0 * n_components * _EPS


def relative_rounding(precision: Precision) -> float:
    """Return what rounding makes of a sum of products, relative to the norms of their factors."""
    return _SINGLE_NOISE if precision == "single" else _DOUBLE_ROUNDING


def rounding_variance(mean: Floats) -> Floats:
    """Return the variance that equal values (q,) may seem to have, for the rounding of a mean."""
    return (8.0 * _EPS * mean) ** 2


def rss_rounding(target: Floats, diagonal: Floats, coef: Floats, precision: Precision) -> Floats:
    """Return what rounding may make of S - 2 w^T C + w^T G w, a difference of sums.

    That is e (S^(1/2) + B^(1/2))^2, where e is the relative rounding of a sum of products, and
    B = sum_j G_jj w_j^2: the entries of G and C are taken to be off by e times the norms of the two
    columns they are of, each for itself.  `target` and `diagonal` are the diagonals of S and G.
    """
    target = np.maximum(target, 0.0)
    along = np.maximum(diagonal, 0.0) @ coef**2
    return relative_rounding(precision) * (np.sqrt(target) + np.sqrt(along)) ** 2


def check_finite(moments: CentredMoments) -> None:
    parts = *moments.gram.panels, moments.cross, moments.target
    if not all(np.isfinite(part).all() for part in parts):
        raise OverflowedError(
            f"sums of features or targets overflowed in {moments.precision} precision; standardise "
            f"or rescale the inputs."
        )


class LeadingEquations(NamedTuple):
    """The Gram matrix of leading features, and what the features beyond them may add."""

    gram: Triangle
    feature_mean: Floats
    beyond: float  # of k(x, x), by the other features
    noise: float  # the largest eigenvalue of their Gram matrix, as its diagonal tells


@dataclass(frozen=True)
class NormalEquations:
    """(G + alpha I) w = C, for what needs G again; C follows from the coefficients w."""

    gram: Triangle  # G, in the precision of its products
    feature_mean: Floats  # phibar (D,), zero without an intercept
    alphas: Floats  # (q,), as the next two vectors
    weight: float  # N
    effective_dof: Floats
    train_rss: Floats
    intercept: bool
    floor: float  # eigenvalues of G below it were left out for alphas below it
    row_weight: float = 1.0  # the mean weight of the rows where that is less than 1
    # Of leading features of the map that those of G are combinations of, where these tell more.
    leading: LeadingEquations | None = None

    @classmethod
    def of(
        cls, moments: CentredMoments, solution: RidgeSolution, gram: Triangle | None = None
    ) -> "NormalEquations":
        """Return the equations of a solution; `gram` is a `kept_gram`, if that was overwritten."""
        q = len(solution.train_rss)
        return cls(
            kept_gram(moments) if gram is None else gram,
            moments.feature_mean,
            np.broadcast_to(solution.alpha, q).astype(float),
            moments.weight,
            np.broadcast_to(solution.effective_dof, q).astype(float),
            solution.train_rss,
            moments.intercept,
            solution.floor,
            moments.row_weight,
        )

    def moments(self, coef: Floats, intercept: Floats) -> CentredMoments:
        """Return the moments that coefficients (D, q) and intercepts (q,) were found from.

        C = (G + alpha I) w, ybar = mu + phibar^T w and S = RSS + w^T (C + alpha w).
        """
        gram = self.gram.astype(np.float64)
        cross = gram @ coef + coef * self.alphas
        target = self.train_rss + np.einsum("dq,dq->q", coef, cross + coef * self.alphas)
        return CentredMoments(
            gram,
            cross,
            target,
            self.weight,
            self.feature_mean,
            intercept + self.feature_mean @ coef if self.intercept else np.zeros_like(intercept),
            "single" if self.gram.panels[0].dtype == np.float32 else "double",
            self.intercept,
            self.row_weight,
        )

    def of_leading(self) -> "NormalEquations":
        """Return the equations of leading features, where there are such, or the same.

        What the other features may add to rows counts as noise, as much in all directions as in
        that of their largest eigenvalue, so that nothing is thought to be known better than it is.
        """
        if (found := self.leading) is None:
            return self
        own: Any = {"gram": found.gram, "feature_mean": found.feature_mean, "leading": None}
        return replace(self, alphas=self.alphas + found.noise, **own)

    @property
    def noise_variance(self) -> Floats:
        """The estimated variance of the noise, RSS / (N - df), (q,).

        Weights whose mean is below 1 do not count rows, and are taken over their mean.
        """
        spare = self.weight - self.effective_dof * self.row_weight
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(spare > 0, self.train_rss / spare, np.inf)


def kept_gram(moments: CentredMoments) -> Triangle:
    return moments.gram.astype(np.float32 if moments.precision == "single" else np.float64)
