"""The eigendecomposition of G: one factorisation for every penalty.

With G = V diag(d) V^T and z = V^T C, what ridge regression yields at a penalty alpha are sums over
d and z: w = V z / (d + alpha), RSS = S - sum z^2 (d + 2 alpha) / (d + alpha)^2, and
df = sum d / (d + alpha).
"""

from dataclasses import dataclass, replace

import numpy as np

from streamkern._typing import Floats
from streamkern.errors import SingularSystemError
from streamkern.features.base import slices
from streamkern.solve.eigendecomposition import decomposed, decomposed_in_range
from streamkern.solve.solution import (
    RidgeSolution,
    are_kept,
    check_finite,
    precision_floor,
    rss_rounding,
)
from streamkern.statistics import CentredMoments, Precision

# A rank below this share of D is worth looking for the range.
_LOW_RANK = 0.375
# Targets that are solved for at once.
_TARGETS = 256


@dataclass(frozen=True)
class Spectrum:
    """The eigenvalues of G, and the projections of the targets on its eigenvectors."""

    values: Floats  # d (D,), ascending, not negative
    projections: Floats  # z = V^T C, (D, q)
    target: Floats  # the diagonal of S, (q,)
    weight: float  # N
    floor: float  # eigenvalues of G below it are noise of its precision
    intercept: bool
    precision: Precision = "double"  # of the products that G and C are sums of
    row_weight: float = 1.0  # the mean weight of the rows where that is less than 1
    left_out: float = 0.0  # of the kernel by the features, as a penalty
    most: float = np.inf  # eigenvalues but for those of a trend

    @property
    def largest(self) -> float:
        """The largest eigenvalue, but for those of a trend."""
        return min(float(self.values[-1]), self.most)

    def counting_rows(self) -> "Spectrum":
        """Return the spectrum with weights over their mean, where they do not count rows."""
        if self.row_weight == 1.0:
            return self
        parts = ["values", "projections", "target", "weight", "floor", "row_weight", "left_out"]
        parts.append("most")
        return replace(self, **{name: getattr(self, name) / self.row_weight for name in parts})

    def rss(self, alphas: Floats) -> Floats:
        """Return the residual sum of squares at every penalty (A,), of every target: (A, q)."""
        factors = (self.values + 2.0 * alphas[:, None]) / (self.values + alphas[:, None]) ** 2
        return np.maximum(self.target - factors @ self.projections**2, 0.0)

    def effective_dof(self, alphas: Floats) -> Floats:
        """Return tr (G + alpha I)^-1 G, plus 1 for an intercept, at every penalty (A,)."""
        return (self.values / (self.values + alphas[:, None])).sum(axis=1) + self.intercept

    def gcv(self, alphas: Floats) -> Floats:
        """Return generalised cross-validation, N RSS / (N - df)^2, (A, q).

        Golub, Heath and Wahba (1979), "Generalized cross-validation as a method for choosing a good
        ridge parameter".
        """
        # Noise in the eigenvalues can use up more degrees of freedom than there are rows.
        spare = (self.weight - self.effective_dof(alphas))[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = self.weight * self.rss(alphas) / spare**2
        return np.where(spare > 0, scores, np.inf)

    def log_evidence(self, alphas: Floats) -> Floats:
        """Return the log marginal likelihood with the noise profiled out, (A, q).

        -(m/2) log(2 pi s2) - (1/2) sum log(1 + d/alpha) - m/2 with s2 = (S - C^T w) / m, where
        m = N - 1, or N without an intercept.

        MacKay (1992), "Bayesian interpolation".
        """
        m = self.weight - self.intercept
        explained = (1.0 / (self.values + alphas[:, None])) @ self.projections**2
        variance = (self.target - explained) / m
        volume = np.log1p(self.values / alphas[:, None]).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            fit = np.log(2.0 * np.pi * np.maximum(variance, 0.0))
        return -0.5 * (m * fit + volume[:, None] + m)


@dataclass(frozen=True)
class Eigenbasis:
    """A spectrum with its eigenvectors, which gives the solution at any penalty."""

    spectrum: Spectrum
    vectors: Floats  # V (D, D), in columns; 0 where the number of rows says that the eigenvalue is
    feature_mean: Floats  # (D,)
    target_mean: Floats  # (q,)

    @classmethod
    def of(cls, moments: CentredMoments, rank: int | None = None) -> "Eigenbasis":
        """Decompose: 5 D^3 multiply-adds, or 3 D^2 rank where rows allow a rank far below D."""
        check_finite(moments)
        if rank is not None and rank < _LOW_RANK * moments.gram.order:
            values, vectors = decomposed_in_range(moments.gram, rank)
        else:
            values, vectors = decomposed(moments.gram.dense())
        values = np.maximum(values, 0.0)
        spectrum = Spectrum(
            values=values,
            projections=vectors.T @ moments.cross,
            target=moments.target,
            weight=moments.weight,
            floor=precision_floor(moments, float(values[-1])),
            intercept=moments.intercept,
            precision=moments.precision,
            row_weight=moments.row_weight,
            left_out=moments.left_out,
            most=moments.most,
        )
        return cls(spectrum, vectors, moments.feature_mean, moments.target_mean)

    def solve(self, alpha: float | Floats) -> RidgeSolution:
        """Return the solution with one penalty for all targets, or one for each (q,).

        Where a penalty lies below the precision floor, the eigenvalues below the floor are left
        out for it, or SingularSystemError is raised if it is 0.
        """
        values, floor = self.spectrum.values[:, None], self.spectrum.floor
        # Penalties that several targets share are one.
        alphas, which = np.unique(np.asarray(alpha, dtype=float), return_inverse=True)
        kept = are_kept(values, floor, alphas)
        n_clipped = int((~kept).sum(axis=0).max())
        note = ""
        if n_clipped:
            smallest = float(alphas.min())
            if not smallest:
                raise SingularSystemError(
                    f"alpha 0 needs a system of full rank, but {n_clipped:,} of {len(values):,} "
                    f"eigenvalues lie below the precision floor {floor:.3g}; give an alpha of at "
                    f"least that."
                )
            note = (
                f"{n_clipped:,} of {len(values):,} eigenvalues lie below the precision floor "
                f"{floor:.3g}, are noise beside alpha {smallest:.3g}, and were left out; a larger "
                f"alpha or double precision keeps them."
            )
        shifted = np.where(kept, values + alphas, np.inf)
        q = len(self.target_mean)
        which = np.broadcast_to(which, q)
        coef, fitted = np.empty((len(values), q)), np.empty(q)
        for part in slices(q, _TARGETS):
            own, along = shifted[:, which[part]], self.spectrum.projections[:, part]
            inside = along / own
            np.matmul(self.vectors, inside, out=coef[:, part])
            along = along * (1.0 + alphas[which[part]] / own)
            fitted[part] = np.einsum("dq,dq->q", along, inside)
        effective = (values / shifted).sum(axis=0) + self.spectrum.intercept
        extremes = shifted[kept]
        diagonal = np.square(self.vectors) @ self.spectrum.values
        target = self.spectrum.target
        rounding = rss_rounding(target, diagonal, coef, self.spectrum.precision)
        return RidgeSolution(
            coef=coef,
            intercept=self.target_mean - self.feature_mean @ coef,
            alpha=alpha,
            solver="eigen",
            condition=float(extremes.max() / extremes.min()) if len(extremes) else 1.0,
            effective_dof=effective[which] if np.ndim(alpha) else float(effective[0]),
            train_rss=np.maximum(target - fitted, rounding),
            rss_rounding=rounding,
            floor=floor,
            n_clipped=n_clipped,
            note=note,
        )
