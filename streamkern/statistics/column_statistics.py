"""Count, mean, variance and range of every column, and what is not a finite number."""

from collections.abc import Iterable
from copy import copy
from typing import Any, Self

import numpy as np

from streamkern._typing import Array, Block, Floats
from streamkern.errors import ParameterError
from streamkern.features.base import slices
from streamkern.runtime.sparse_rows import SparseRows
from streamkern.statistics.base import Statistic
from streamkern.statistics.declared_sums import joint, maximum, merged_by, minimum, total

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
    weight, mean, squares : ndarray of shape (p + q,)
        The sum of the weights of the finite values, their mean, and the sum of squared deviations.
    minimum, maximum : ndarray of shape (p + q,)
        Of the finite values of rows that count; infinite where there are none.
    n_nonfinite : ndarray of int, of shape (p + q,)
    n_bad_rows, first_bad_row : int, and int or None
        Rows with a value, or a weight, that is not finite, and the place of the first.

    References
    ----------
    Chan, Golub and LeVeque (1983), "Algorithms for computing the sample variance".
    """

    merges_plainly = True

    n_columns: int
    weight: Floats = joint("n_columns")
    mean: Floats = joint("n_columns")
    squares: Floats = joint("n_columns")
    minimum: Floats = minimum("n_columns")
    maximum: Floats = maximum("n_columns")
    n_nonfinite: Array = total("n_columns", dtype=np.int64)
    n_bad_rows: int = total(dtype=int)
    first_bad_row: int | None = merged_by(
        lambda *rows: min((row for row in rows if row is not None), default=None)
    )

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
            return ~(self.maximum - self.minimum > noise)

    def update(self, blocks: Iterable[Block]) -> None:
        step, zero = max(_VALUES_AT_ONCE // self.n_columns, 1), self.zero()
        for block in blocks:
            if isinstance(block.X, SparseRows):
                self._add_sparse(block, block.X)
                continue
            for rows in slices(len(block), step):
                values = np.concatenate([block.X[rows], block.y[rows]], axis=1, dtype=float)
                weights = None if block.weights is None else block.weights[rows]
                part = copy(zero)
                part.replace_by(values, weights, block.places()[rows])
                vars(self).update(self.merged(part))

    def replace_by(self, values: Floats, weights: Floats | None, places: Array) -> None:
        """Put the statistics of some rows in the place of these."""
        if weights is None:
            with np.errstate(over="ignore", invalid="ignore"):
                self.minimum, self.maximum = values.min(axis=0), values.max(axis=0)
                # What is not finite would be one of these.
                if np.isfinite(self.minimum).all() and np.isfinite(self.maximum).all():
                    self.weight = np.full(len(self.mean), float(len(values)))
                    self.mean = values.mean(axis=0)
                    values -= self.mean
                    values *= values
                    self.squares = values.sum(axis=0)
                    return
        finite = np.isfinite(values)
        bad = ~finite.all(axis=1)
        if weights is not None:
            counted = np.isfinite(weights)
            bad |= ~counted
            weights = np.where(counted, weights, 0.0)
        if bad.any():
            self.n_bad_rows = int(bad.sum())
            self.first_bad_row = int(places[bad][0])
            self.n_nonfinite = (~finite).sum(axis=0)
        shares = finite.astype(float) if weights is None else finite * weights[:, None]
        known = np.where(finite, values, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            self.weight = shares.sum(axis=0)
            divisor = np.where(self.weight > 0, self.weight, 1.0)
            self.mean = (shares * known).sum(axis=0) / divisor
            self.squares = (shares * (known - self.mean) ** 2).sum(axis=0)
        counted = shares > 0
        self.minimum = np.where(counted, values, np.inf).min(axis=0)
        self.maximum = np.where(counted, values, -np.inf).max(axis=0)

    def _add_sparse(self, block: Block, X: SparseRows) -> None:
        """Add rows whose inputs are sparse: what is stored, the zeros that are not, and targets."""
        weights = block.each_weight()
        inputs = _of_stored(X, np.where(np.isfinite(weights), weights, 0.0))
        targets = ColumnStatistics(self.n_columns - X.shape[1])
        targets.replace_by(block.y.astype(float), block.weights, block.places())
        part, bad = copy(self.zero()), ~(np.isfinite(block.y).all(axis=1) & np.isfinite(weights))
        bad[X.nonfinite()[0]] = True
        for name in ("weight", "mean", "squares", "minimum", "maximum", "n_nonfinite"):
            setattr(part, name, np.concatenate([getattr(inputs, name), getattr(targets, name)]))
        if bad.any():
            part.n_bad_rows, part.first_bad_row = int(bad.sum()), int(block.places()[bad][0])
        vars(self).update(self.merged(part))

    def compatible(self, other: Self) -> Self:
        if self.n_columns != other.n_columns:
            raise ParameterError(
                f"statistics of {self.n_columns} and {other.n_columns} columns do not merge; "
                f"merge those of the same columns."
            )
        return other

    def merged_jointly(self, other: Self) -> dict[str, Any]:
        weight = self.weight + other.weight
        share = other.weight / np.where(weight > 0, weight, 1.0)
        step = other.mean - self.mean
        return {
            "weight": weight,
            "mean": self.mean + share * step,
            "squares": self.squares + other.squares + step**2 * share * self.weight,
        }


@np.errstate(over="ignore", invalid="ignore")
def _of_stored(X: SparseRows, weights: Floats) -> ColumnStatistics:
    """Return the statistics of sparse inputs (n, p) of rows of finite weights (n,)."""
    p, columns = X.shape[1], X.csr.tocsc()
    starts, rows, values = columns.indptr, columns.indices, columns.data.astype(float)
    filled, sizes, finite = np.flatnonzero(np.diff(starts)), np.diff(starts), np.isfinite(values)
    values, shares = np.where(finite, values, 0.0), np.where(finite, weights[rows], 0.0)

    def by_column(stored: Array, reduced: Any = np.add, empty: float = 0.0) -> Floats:
        found = np.full(p, empty)
        found[filled] = reduced.reduceat(stored, starts[filled]) if len(filled) else empty
        return found

    stored, zeros = ColumnStatistics(p), ColumnStatistics(p)
    stored.weight = by_column(shares)
    stored.mean = by_column(shares * values) / np.where(stored.weight > 0, stored.weight, 1.0)
    stored.squares = by_column(shares * (values - np.repeat(stored.mean, sizes)) ** 2)
    stored.minimum = by_column(np.where(shares > 0, values, np.inf), np.minimum, np.inf)
    stored.maximum = by_column(np.where(shares > 0, values, -np.inf), np.maximum, -np.inf)
    stored.n_nonfinite = X.nonfinite()[1]
    has_zeros = by_column(1.0 * (weights[rows] > 0)) < np.count_nonzero(weights)
    zeros.weight = np.where(has_zeros, weights.sum() - by_column(weights[rows]), 0.0)
    zeros.minimum[has_zeros] = zeros.maximum[has_zeros] = 0.0
    return stored.merge(zeros)
