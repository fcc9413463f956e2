"""The moments of features and targets: all that ridge regression needs to know of the rows."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from streamkern.errors import ParameterError
from streamkern.statistics.base import Statistic
from streamkern.statistics.triangle import Triangle

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamkern._typing import Array, Floats
    from streamkern.features import FeatureMap
    from streamkern.sources import Block

Precision = Literal["single", "double"]


@dataclass(frozen=True)
class CentredMoments:
    """Moments about the weighted means, or about zero for a model without an intercept.

    Parameters
    ----------
    gram : ndarray of shape (D, D)
        G = sum s phi phi^T - N phibar phibar^T.
    cross : ndarray of shape (D, q)
        C = sum s phi y^T - N phibar ybar^T.
    target : ndarray of shape (q, q)
        S = sum s y y^T - N ybar ybar^T.
    weight : float
        N, the sum of the weights.
    feature_mean : ndarray of shape (D,)
    target_mean : ndarray of shape (q,)
        Zero for a model without an intercept, as `feature_mean`.
    precision : {'single', 'double'}
        Of the products that were summed.
    intercept : bool
    """

    gram: Floats
    cross: Floats
    target: Floats
    weight: float
    feature_mean: Floats
    target_mean: Floats
    precision: Precision = "double"
    intercept: bool = True


class Moments(Statistic):
    """Weighted sums of phi phi^T, phi y^T, y y^T, phi, y and 1 over rows.

    Products are made in the precision asked for and summed in double.  Everything is accumulated
    about a fixed shift, which keeps the subtraction of the means from losing digits; two moments
    merge only if map and shift are the same.

    Parameters
    ----------
    feature_map : FeatureMap
        Drawn, of D features.
    n_targets : int
        q.
    precision : {'single', 'double'}
    feature_shift : ndarray of shape (D,), optional
        In the units of `FeatureMap.evaluate`; zero by default.
    target_shift, target_unit : ndarray of shape (q,), optional
        Targets enter the products as (y - shift) / unit, so that neither a large mean nor an
        extreme unit costs digits; 0 and 1 by default.

    Attributes
    ----------
    weight : float
        N, the sum of the weights.
    n_rows : int
    """

    def __init__(
        self,
        feature_map: FeatureMap,
        n_targets: int = 1,
        *,
        precision: Precision = "single",
        feature_shift: Floats | None = None,
        target_shift: Floats | None = None,
        target_unit: Floats | None = None,
    ) -> None:
        if precision not in ("single", "double"):
            raise ParameterError(f"precision must be 'single' or 'double', not {precision!r}.")
        feature_map.check_drawn()
        D = feature_map.n_components
        self.feature_map = feature_map
        self.n_targets = n_targets
        self.precision: Precision = precision
        self.feature_shift = np.zeros(D) if feature_shift is None else feature_shift
        self.target_shift = np.zeros(n_targets) if target_shift is None else target_shift
        self.target_unit = np.ones(n_targets) if target_unit is None else target_unit
        self.n_rows = 0
        self.weight = 0.0
        self.gram: Triangle | None = None
        # Sums of features and targets as they enter the products; `centred` applies the units.
        self.cross = np.zeros((D, n_targets + 1))
        self.target = np.zeros((n_targets, n_targets))
        self.target_sum = np.zeros(n_targets)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the features and products."""
        return np.dtype(np.float32 if self.precision == "single" else np.float64)

    def zero(self) -> Moments:
        """Return the moments of no rows, with the same map and shift."""
        return Moments(
            self.feature_map,
            self.n_targets,
            precision=self.precision,
            feature_shift=self.feature_shift,
            target_shift=self.target_shift,
            target_unit=self.target_unit,
        )

    @np.errstate(over="ignore", invalid="ignore")  # the solve says so, with what to do about it
    def update(self, blocks: Iterable[Block]) -> None:
        """Add rows: features, one rank-k update and one narrow product for every block."""
        D = self.feature_map.n_components
        shift = self.feature_shift.astype(self.dtype)
        buffer = np.empty((0, D), dtype=self.dtype)
        product = np.empty((D, D), dtype=self.dtype)
        if self.gram is None:
            self.gram = Triangle(D)
        for block in blocks:
            self._check(block)
            if len(block) > len(buffer):
                buffer = np.empty((len(block), D), dtype=self.dtype)
            features = buffer[: len(block)]
            self.feature_map.evaluate(block.X, features, shift)
            targets = np.ones((len(block), self.n_targets + 1))
            targets[:, :-1] = (block.y - self.target_shift) / self.target_unit
            if block.weights is not None:
                roots = np.sqrt(block.weights)[:, None]
                targets *= roots
                features *= roots.astype(self.dtype)
            # A product with its own transpose is a rank-k update, at half the cost.
            np.matmul(features.T, features, out=product)
            self.gram.add(product)
            self.cross += features.T @ targets.astype(self.dtype)
            sums = targets.T @ targets
            self.target += sums[:-1, :-1]
            self.target_sum += sums[-1, :-1]
            self.weight += float(sums[-1, -1])
            self.n_rows += len(block)

    def _check(self, block: Block) -> None:
        self.feature_map.check(block.X.shape)
        if block.y.shape != (len(block), self.n_targets):
            raise ParameterError(
                f"these moments have {self.n_targets} targets, but the rows have targets of shape "
                f"{block.y.shape}; make moments with that many."
            )

    def merge(self, other: Moments) -> Moments:
        """Return the moments of both sets of rows.

        Raises
        ------
        ParameterError
            If the two have another precision, number of targets, map or shift.
        """
        if not self._alike(other):
            raise ParameterError(
                "moments merge only when map, shift, precision and targets are the same; compute "
                "both with the same options and seed."
            )
        both = self.zero()
        if self.gram is not None and other.gram is not None:
            both.gram = self.gram + other.gram
        elif self.gram is not None or other.gram is not None:
            both.gram = deepcopy(self.gram or other.gram)
        both.cross = self.cross + other.cross
        both.target = self.target + other.target
        both.target_sum = self.target_sum + other.target_sum
        both.weight = self.weight + other.weight
        both.n_rows = self.n_rows + other.n_rows
        return both

    def _alike(self, other: Moments) -> bool:
        return (
            self.precision == other.precision
            and self.n_targets == other.n_targets
            and self.feature_map.equals(other.feature_map)
            and np.array_equal(self.feature_shift, other.feature_shift)
            and np.array_equal(self.target_shift, other.target_shift)
            and np.array_equal(self.target_unit, other.target_unit)
        )

    def centred(self, *, intercept: bool = True) -> CentredMoments:
        """Return the moments about the means, or about zero where there is no intercept.

        Raises
        ------
        ParameterError
            If no row of positive weight was added.
        """
        if self.gram is None or not self.weight > 0:
            raise ParameterError("moments of no rows cannot be centred; add rows first.")
        N, unit, scale = self.weight, self.target_unit, self.feature_map.scale
        features, targets = self.cross[:, -1] / N, self.target_sum / N
        gram, cross, target = self.gram.dense(), self.cross[:, :-1].copy(), self.target.copy()
        # Means about zero, and what sums about them differ by from sums about the shift.
        feature_mean = self.feature_shift + features
        target_mean = self.target_shift / unit + targets
        corrections = [(-N, features, targets)]
        if not intercept:
            corrections.append((N, feature_mean, target_mean))
            feature_mean, target_mean = np.zeros_like(feature_mean), np.zeros_like(target_mean)
        for factor, left, right in corrections:
            _add_outer(gram, left, left, factor)
            _add_outer(cross, left, right, factor)
            _add_outer(target, right, right, factor)
        gram *= scale**2
        return CentredMoments(
            gram,
            cross * (scale * unit),
            target * np.outer(unit, unit),
            N,
            scale * feature_mean,
            unit * target_mean,
            self.precision,
            intercept,
        )


def _add_outer(matrix: Array, left: Floats, right: Floats, factor: float) -> None:
    """Add factor left right^T in place, a panel at a time so that no second matrix is made.

    The factor comes last, so that a symmetric matrix stays one to the last bit.
    """
    for start in range(0, len(left), 256):
        rows = slice(start, start + 256)
        matrix[rows] += factor * np.outer(left[rows], right)
