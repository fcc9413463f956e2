"""The normal equations of a fitted ridge regression, kept beside its coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streamkern.statistics.centred_moments import CentredMoments

if TYPE_CHECKING:
    from streamkern._typing import Floats
    from streamkern.solve.solution import RidgeSolution
    from streamkern.statistics.triangle import Triangle


@dataclass(frozen=True)
class NormalEquations:
    """(G + alpha I) w = C, as far as the coefficients w do not tell it.

    Intervals, leverages and sparse models need G again; C is (G + alpha I) w.
    """

    gram: Triangle  # G, in the precision of its products
    feature_mean: Floats  # phibar (D,), zero without an intercept
    alphas: Floats  # (q,), as the next two vectors
    weight: float  # N
    effective_dof: Floats
    train_rss: Floats
    intercept: bool
    floor: float  # eigenvalues of G below it were left out for alphas below it
    row_weight: float = 1.0  # the mean weight of the rows where that is less than 1

    @classmethod
    def of(
        cls, moments: CentredMoments, solution: RidgeSolution, gram: Triangle | None = None
    ) -> NormalEquations:
        """Return the equations that a solution was found from.

        `gram` is what `kept_gram` returned, if the triangle of the moments was overwritten since.
        """
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

    @property
    def noise_variance(self) -> Floats:
        """The estimated variance of the noise, RSS / (N - df), (q,).

        Weights whose mean is below 1 do not count rows, and are taken over their mean.
        """
        spare = self.weight - self.effective_dof * self.row_weight
        with np.errstate(divide="ignore", invalid="ignore"):
            variance: Floats = np.where(spare > 0, self.train_rss / spare, np.inf)
        return variance


def kept_gram(moments: CentredMoments) -> Triangle:
    """Return a copy of G in the precision that its products were made in."""
    return moments.gram.astype(np.float32 if moments.precision == "single" else np.float64)
