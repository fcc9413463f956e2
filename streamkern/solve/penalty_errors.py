"""Leave-one-out errors of every penalty of a grid, for every target, in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamkern.runtime.scratch import Scratch
from streamkern.statistics import Statistic, Work, minimum, total

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamkern._typing import Array, Floats
    from streamkern.solve.penalty_models import PenaltyModels
    from streamkern.sources import Block

# Rows, and pairs of a penalty and a target, whose errors are made at once: they fit in the cache.
_ROWS, _PAIRS = 512, 1024


class PenaltyErrors(Statistic):
    """Sums of squared leave-one-out errors (Allen's PRESS) at every penalty.

    A row of weight s has the error e / (1 - h) without itself, e being its residual and h its
    leverage, which needs no second fit.

    `squared` (A, q) are of targets in the units of the models; `spare` (A,) is the least 1 - h of a
    row, and errors are rounding where it is.

    References
    ----------
    Allen (1974), "The relationship between variable selection and data augmentation and a method
    for prediction".
    """

    models: PenaltyModels
    n_alphas: int
    n_targets: int
    weight: float = total()
    n_rows: int = total(dtype=int)
    squared: Floats = total("n_alphas", "n_targets")
    spare: Floats = minimum("n_alphas", start=1.0)

    @property
    def work(self) -> Work:
        """The products with the basis, and with what every penalty makes of every target."""
        D, pairs = len(self.models.centre), self.n_alphas * self.n_targets
        return Work(2.0 * D * (D + self.n_alphas + pairs), D, self.models.basis.dtype.str)

    @staticmethod
    def working_bytes(n_components: int, itemsize: int) -> int:
        """Return what an update takes besides its rows: coefficients, and errors in the cache."""
        return itemsize * _PAIRS * (n_components + _ROWS)

    def update(self, blocks: Iterable[Block]) -> None:
        """Add rows."""
        models, scratch = self.models, self.scratch or Scratch()
        dtype = models.basis.dtype
        for block in blocks:
            weights = np.ones(len(block)) if block.weights is None else block.weights
            along = models.along(block.X, scratch)
            spare = models.spare(along, weights)
            self.spare = np.minimum(self.spare, spare.min(axis=0))
            self.weight += float(weights.sum())
            self.n_rows += len(block)
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
        for first in range(0, self.n_alphas, n_alphas):
            a = slice(first, first + n_alphas)
            shares = self.models.shares[:, a, None]
            for begin in range(0, self.n_targets, n_targets):
                t = slice(begin, begin + n_targets)
                projections = self.models.projections[:, None, t]
                shape = shares.shape[1], projections.shape[2]
                coef = scratch.array("coefficients", (D, *shape), dtype)
                np.multiply(shares, projections, out=coef)
                for start in range(0, len(along), _ROWS):
                    rows = slice(start, start + _ROWS)
                    parts = along[rows]
                    errors = scratch.array("errors", (len(parts), *shape), dtype)
                    flat = errors.reshape(len(parts), -1)
                    np.matmul(parts, coef.reshape(D, -1), out=flat)
                    np.subtract(targets[rows, None, t], errors, out=errors)
                    errors *= factors[rows, a, None]
                    self.squared[a, t] += np.einsum("naq,naq->aq", errors, errors)
