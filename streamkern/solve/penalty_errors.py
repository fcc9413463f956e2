"""Leave-one-out errors of every penalty of a grid, for every target, in one pass.

With G = V diag(d) V^T, the row c = phi(x) - phibar has the residual y - ybar - sum_j p_j z_j /
(d_j + alpha) and the leverage s (1/N + sum_j p_j^2 / (d_j + alpha)), where p = V^T c and
z = V^T C.  So p is found once a row, and serves every penalty and every target.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from streamkern._typing import Array, Block, Floats
from streamkern.features.base import FeatureMap, cached_slices, slices
from streamkern.runtime.scratch import Scratch
from streamkern.solve import Eigenbasis
from streamkern.solve.solution import are_kept
from streamkern.statistics import (
    FeatureSums,
    Statistic,
    Work,
    dtype_of_features,
    minimum,
    precision_of_features,
    total,
)

# Rows, and pairs of a penalty and a target, whose errors are made at once: they fit in the cache.
_ROWS, _PAIRS = 512, 1024
# Below this 1 - h, an error without the row itself is rounding, in the precision of the features.
_LEAST_SPARE = {"single": 1e-4, "double": 1e-10}


@dataclass(frozen=True)
class PenaltyModels:
    """Ridge models of the same rows at A penalties, as far as their residuals need them.

    Coordinates along an eigenvector are divided by sqrt(d + least alpha), so that numbers of single
    precision are neither large nor small.
    """

    feature_map: FeatureMap
    centre: Floats  # phibar / scale, (D,)
    basis: Array  # V diag(d + least alpha)^-1/2 times the scale, in the features' precision
    projections: Array  # diag(d + least alpha)^-1/2 z over the units of the targets, (D, q)
    shares: Array  # (d + least alpha) / (d + alpha), 0 for eigenvalues left out, (D, A)
    base: float  # 1/N, or 0 without an intercept
    target_mean: Floats
    target_unit: Floats  # targets are taken minus their mean, over their unit

    @classmethod
    def of(cls, feature_map: FeatureMap, basis: Eigenbasis, alphas: Floats, precision: str) -> Self:
        """Return the models that a basis has at some penalties, ascending and positive."""
        spectrum, scale = basis.spectrum, feature_map.scale
        dtype: Any = dtype_of_features(precision)
        values, floor = spectrum.values[:, None], spectrum.floor
        # Eigenvalues below the floor count for no penalty below it, as in the solution.
        kept = are_kept(values, floor, alphas)
        root = np.sqrt(spectrum.values + alphas[0])
        scaled = np.empty(basis.vectors.shape, dtype)
        np.multiply(basis.vectors, scale / root, out=scaled, casting="same_kind")
        unit = np.sqrt(spectrum.target / spectrum.weight)
        unit = np.where(unit > 0, unit, 1.0)
        projections = (spectrum.projections / root[:, None] / unit).astype(dtype)
        shares = np.where(kept, (values + alphas[0]) / (values + alphas), 0.0).astype(dtype)
        base = 1.0 / spectrum.weight if spectrum.intercept else 0.0
        centre, mean = basis.feature_mean / scale, basis.target_mean
        return cls(feature_map, centre, scaled, projections, shares, base, mean, unit)

    def along(self, X: Array, scratch: Scratch) -> Array:
        shape, dtype = (len(X), len(self.centre)), self.basis.dtype
        features = scratch.array("features", shape, dtype)
        for _ in self.feature_map.evaluated(X, features, self.centre.astype(dtype), scratch):
            pass
        return np.matmul(features, self.basis, out=scratch.array("along", shape, dtype))

    def spare(self, along: Array, weights: Floats) -> Floats:
        """Return 1 less the leverage of rows at every penalty, (n, A)."""
        spare = np.empty((len(along), self.shares.shape[1]))
        for rows in cached_slices(*along.shape):
            spare[rows] = np.square(along[rows]) @ self.shares
        spare += self.base
        spare *= -weights[:, None]
        spare += 1.0
        return spare


class PenaltyErrors(Statistic):
    """Sums of squared leave-one-out errors (Allen's PRESS) at every penalty.

    Without itself, a row of weight s, residual e and leverage h has the error e / (1 - h).
    Allen (1974), "The relationship between variable selection and data augmentation and a method
    for prediction".
    """

    models: PenaltyModels
    n_alphas: int
    n_targets: int
    weight: float = total()
    squared: Floats = total("n_alphas", "n_targets")  # of targets in the units of the models
    # The least 1 - h of a row: errors are rounding where it is.
    spare: Floats = minimum("n_alphas", start=1.0)

    @property
    def work(self) -> Work:
        D, pairs = len(self.models.centre), self.n_alphas * self.n_targets
        return Work(2.0 * D * (D + self.n_alphas + pairs), D, self.models.basis.dtype.str)

    def scores(self, variance: Floats, precision: str) -> Floats:
        """Return the mean squared errors (A, q), infinite at penalties where some are rounding.

        `variance` (q,) is that of the targets.
        """
        scores = self.squared / self.weight * np.where(variance > 0, variance, 1.0)
        scores[self.spare < _LEAST_SPARE[precision]] = np.inf
        return scores

    @staticmethod
    def working_bytes(n_components: int, itemsize: int) -> int:
        """Return what an update takes besides its rows: coefficients, and errors in the cache."""
        return itemsize * _PAIRS * (n_components + _ROWS)

    def update(self, blocks: Iterable[Block]) -> None:
        models, scratch = self.models, self.scratch or Scratch()
        dtype = models.basis.dtype
        for block in blocks:
            weights = block.each_weight()
            along = models.along(block.X, scratch)
            spare = models.spare(along, weights)
            self.spare = np.minimum(self.spare, spare.min(axis=0))
            self.weight += float(weights.sum())
            with np.errstate(divide="ignore"):
                factors = np.sqrt(weights)[:, None] / spare
            # What has no error without itself rules its penalty out, by `spare`.
            factors = np.where(spare > 0, factors, 0.0).astype(dtype)
            targets = scratch.array("targets", block.y.shape, dtype)
            np.divide(
                block.y - models.target_mean, models.target_unit, out=targets, casting="same_kind"
            )
            self._add(along, targets, factors, scratch)

    def _add(self, along: Array, targets: Array, factors: Array, scratch: Scratch) -> None:
        """Add the errors of rows, for some penalties and targets at a time."""
        D, dtype = along.shape[1], along.dtype
        n_alphas = min(self.n_alphas, _PAIRS)
        n_targets = max(min(_PAIRS // n_alphas, self.n_targets), 1)
        for a in slices(self.n_alphas, n_alphas):
            shares = self.models.shares[:, a, None]
            for t in slices(self.n_targets, n_targets):
                projections = self.models.projections[:, None, t]
                shape = shares.shape[1], projections.shape[2]
                coef = scratch.array("coefficients", (D, *shape), dtype)
                np.multiply(shares, projections, out=coef)
                for rows in slices(len(along), _ROWS):
                    parts = along[rows]
                    errors = scratch.array("errors", (len(parts), *shape), dtype)
                    np.matmul(parts, coef.reshape(D, -1), out=errors.reshape(len(parts), -1))
                    np.subtract(targets[rows, None, t], errors, out=errors)
                    errors *= factors[rows, a, None]
                    self.squared[a, t] += np.einsum("naq,naq->aq", errors, errors)


def leave_one_out_scores(
    total: FeatureSums, basis: Eigenbasis, alphas: Floats, blocks: Iterable[Block]
) -> Floats | None:
    """Return the mean squared errors (A, q) of rows without themselves, from all rows there are.

    They are infinite at penalties where some are rounding, and None if they are so at all.
    """
    precision, spectrum = precision_of_features(total.precision), basis.spectrum
    models = PenaltyModels.of(total.feature_map, basis, alphas, precision)
    errors = PenaltyErrors(models, len(alphas), len(spectrum.target))
    errors.update(blocks)
    scores = errors.scores(spectrum.target / spectrum.weight, precision)
    return scores if np.isfinite(scores).any() else None
