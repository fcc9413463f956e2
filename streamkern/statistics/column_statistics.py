"""Count, mean, variance and range of every column, and what is not a finite number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamkern.errors import ParameterError
from streamkern.statistics.base import Statistic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamkern._typing import Array, Floats
    from streamkern.sources import Block

# Few enough values for the cache, and for memory that is reused rather than mapped anew.
_VALUES_AT_ONCE = 15_000
# Larger numbers are whole because they are rounded.
_EXACT = 2.0**53


class ColumnStatistics(Statistic):
    """Statistics of the p inputs and q targets, the targets last, over their finite values.

    Parameters
    ----------
    n_columns : int
        p + q.

    Attributes
    ----------
    weight : ndarray of shape (p + q,)
        The sum of the weights of the finite values.
    mean, minimum, maximum : ndarray of shape (p + q,)
    n_nonfinite : ndarray of shape (p + q,), int
    n_bad_rows : int
        Rows with a value, or a weight, that is not finite.
    first_bad_row : int or None

    References
    ----------
    Chan, Golub and LeVeque (1983), "Algorithms for computing the sample variance".
    """

    def __init__(self, n_columns: int) -> None:
        self.weight = np.zeros(n_columns)
        self.mean = np.zeros(n_columns)
        self.squares = np.zeros(n_columns)
        self.minimum = np.full(n_columns, np.inf)
        self.maximum = np.full(n_columns, -np.inf)
        self.n_nonfinite = np.zeros(n_columns, dtype=np.int64)
        self.n_bad_rows = 0
        self.first_bad_row: int | None = None

    @property
    def variance(self) -> Floats:
        """The weighted mean of squared deviations from the mean, (p + q,)."""
        return self.squares / np.where(self.weight > 0, self.weight, 1.0)

    def constant(self, tolerance: float) -> Array:
        """Say which columns have one value only, up to `tolerance` times its size, (p + q,).

        The range is tested, since the variance of a constant column can be rounding noise.  Whole
        numbers, such as years, are exact: there is no tolerance for a range between two of them.
        """
        size = np.maximum(np.abs(self.minimum), np.abs(self.maximum))
        with np.errstate(invalid="ignore", over="ignore"):
            whole = (self.minimum % 1.0 == 0.0) & (self.maximum % 1.0 == 0.0) & (size <= _EXACT)
            noise = np.where(whole, 0.0, tolerance * size)
            constant: Array = ~(self.maximum - self.minimum > noise)
        return constant

    def zero(self) -> ColumnStatistics:
        """Return the statistics of no rows."""
        return ColumnStatistics(len(self.weight))

    def update(self, blocks: Iterable[Block]) -> None:
        """Add rows, a few at a time."""
        step = max(_VALUES_AT_ONCE // len(self.weight), 1)
        for block in blocks:
            for start in range(0, len(block), step):
                rows = slice(start, start + step)
                values = np.concatenate([block.X[rows], block.y[rows]], axis=1, dtype=float)
                weights = None if block.weights is None else block.weights[rows]
                part = self._of_rows(values, weights, block.places()[rows])
                vars(self).update(vars(self.merge(part)))

    def _of_rows(self, values: Floats, weights: Floats | None, places: Array) -> ColumnStatistics:
        part = self.zero()
        if weights is None:
            with np.errstate(over="ignore", invalid="ignore"):
                part.minimum, part.maximum = values.min(axis=0), values.max(axis=0)
                # What is not finite would be one of these.
                if np.isfinite(part.minimum).all() and np.isfinite(part.maximum).all():
                    part.weight[:] = len(values)
                    part.mean = values.mean(axis=0)
                    values -= part.mean
                    values *= values
                    part.squares = values.sum(axis=0)
                    return part
        finite = np.isfinite(values)
        bad = ~finite.all(axis=1)
        if weights is not None:
            counted = np.isfinite(weights)
            bad |= ~counted
            weights = np.where(counted, weights, 0.0)
        if bad.any():
            part.n_bad_rows = int(bad.sum())
            part.first_bad_row = int(places[bad][0])
            part.n_nonfinite = (~finite).sum(axis=0)
        shares = finite.astype(float) if weights is None else finite * weights[:, None]
        part.weight = shares.sum(axis=0)
        divisor = np.where(part.weight > 0, part.weight, 1.0)
        known = np.where(finite, values, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            part.mean = (shares * known).sum(axis=0) / divisor
            part.squares = (shares * (known - part.mean) ** 2).sum(axis=0)
        counted = shares > 0
        part.minimum = np.where(counted, values, np.inf).min(axis=0)
        part.maximum = np.where(counted, values, -np.inf).max(axis=0)
        return part

    def merge(self, other: ColumnStatistics) -> ColumnStatistics:
        """Return the statistics of both sets of rows, without cancellation."""
        if len(self.weight) != len(other.weight):
            raise ParameterError(
                f"statistics of {len(self.weight)} and {len(other.weight)} columns do not merge; "
                f"merge those of the same columns."
            )
        both = self.zero()
        both.weight = self.weight + other.weight
        share = other.weight / np.where(both.weight > 0, both.weight, 1.0)
        with np.errstate(over="ignore", invalid="ignore"):
            step = other.mean - self.mean
            both.mean = self.mean + share * step
            both.squares = self.squares + other.squares + step**2 * share * self.weight
        both.minimum = np.minimum(self.minimum, other.minimum)
        both.maximum = np.maximum(self.maximum, other.maximum)
        both.n_nonfinite = self.n_nonfinite + other.n_nonfinite
        both.n_bad_rows = self.n_bad_rows + other.n_bad_rows
        first = [row for row in (self.first_bad_row, other.first_bad_row) if row is not None]
        both.first_bad_row = min(first, default=None)
        return both
