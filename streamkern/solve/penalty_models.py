"""The models of all rows at every penalty of a grid, in the eigenbasis of G.

With G = V diag(d) V^T, the row c = phi(x) - phibar has the residual y - ybar - sum_j p_j z_j /
(d_j + alpha) and the leverage s (1/N + sum_j p_j^2 / (d_j + alpha)), where p = V^T c and
z = V^T C.  So p is found once a row, and serves every penalty and every target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.features.base import cached_slices

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats
    from streamkern.features import FeatureMap
    from streamkern.runtime.scratch import Scratch
    from streamkern.solve import Eigenbasis


@dataclass(frozen=True)
class PenaltyModels:
    """Ridge models of the same rows at A penalties, as far as their residuals need them.

    What is along an eigenvector is divided by sqrt(d + least alpha), so that numbers of single
    precision are neither large nor small.

    Parameters
    ----------
    feature_map : FeatureMap
    centre : ndarray of shape (D,)
        phibar / scale.
    basis : ndarray of shape (D, D)
        V diag(d + least alpha)^-1/2, times the scale of the map, in the precision of the features.
    projections : ndarray of shape (D, q)
        diag(d + least alpha)^-1/2 z, over the units of the targets.
    shares : ndarray of shape (D, A)
        (d + least alpha) / (d + alpha), and 0 for the eigenvalues that a solution leaves out.
    base : float
        1/N, or 0 without an intercept.
    target_mean, target_unit : ndarray of shape (q,)
        Targets are taken less the first, over the second.
    """

    feature_map: FeatureMap
    centre: Floats
    basis: Array
    projections: Array
    shares: Array
    base: float
    target_mean: Floats
    target_unit: Floats

    @classmethod
    def of(
        cls, feature_map: FeatureMap, basis: Eigenbasis, alphas: Floats, precision: str
    ) -> PenaltyModels:
        """Return the models that a basis has at some penalties, ascending and positive."""
        spectrum, scale = basis.spectrum, feature_map.scale
        dtype: Any = np.float32 if precision == "single" else np.float64
        values, floor = spectrum.values[:, None], spectrum.floor
        # Eigenvalues below the floor count for no penalty below it, as in the solution.
        kept = (values > floor) | (alphas >= floor)
        root = np.sqrt(spectrum.values + alphas[0])
        scaled = np.empty(basis.vectors.shape, dtype)
        np.multiply(basis.vectors, scale / root, out=scaled, casting="same_kind")
        unit = np.sqrt(spectrum.target / spectrum.weight)
        unit = np.where(unit > 0, unit, 1.0)
        return cls(
            feature_map,
            basis.feature_mean / scale,
            scaled,
            (spectrum.projections / root[:, None] / unit).astype(dtype),
            np.where(kept, (values + alphas[0]) / (values + alphas), 0.0).astype(dtype),
            1.0 / spectrum.weight if spectrum.intercept else 0.0,
            basis.target_mean,
            unit,
        )

    def along(self, X: Array, scratch: Scratch) -> Array:
        """Return p (n, D) of rows (n, p)."""
        shape, dtype = (len(X), len(self.centre)), self.basis.dtype
        features = scratch.array("features", shape, dtype)
        centre = self.centre.astype(dtype)
        for _ in self.feature_map.evaluated(X, features, centre, scratch):
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
