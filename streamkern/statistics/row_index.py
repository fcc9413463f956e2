"""Which rows were read: a hash of every row's values, so that they can be known again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamkern.errors import ParameterError
from streamkern.statistics.base import Statistic
from streamkern.statistics.spread_sample import mixed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamkern._typing import Array, Floats
    from streamkern.sources import Block
    from streamkern.statistics.folds import Folds

# Few enough values for the cache.
_VALUES_AT_ONCE = 15_000


class RowIndex(Statistic):
    """A hash of the values of every row, and the fold it is dealt to, or its place.

    Unlike other statistics it grows with the number of rows: by 9 bytes a row with up to 256
    folds, by 16 with places.  Of n rows, two with different values have the same hash with a
    probability of about n^2 / 2^65.

    Parameters
    ----------
    rule : Folds, optional
        How rows are dealt to folds; without it the places of the rows are kept.

    Attributes
    ----------
    hashes : ndarray of shape (n,), uint64
        Of inputs, targets and weight by value, whatever the type they are stored in.
    labels : ndarray of shape (n,), int
        The fold or the place of every row.
    """

    stays_behind = ("rule",)

    def __init__(self, rule: Folds | None = None) -> None:
        self.rule = rule
        self.hashes = np.empty(0, dtype=np.uint64)
        kind = np.int64 if rule is None else np.min_scalar_type(rule.n_folds - 1)
        self.labels: Array = np.empty(0, dtype=kind)

    @classmethod
    def of(cls, hashes: Array, labels: Array, rule: Folds | None = None) -> RowIndex:
        """Return the index that holds these hashes and labels."""
        index = cls(rule)
        index.hashes, index.labels = hashes, labels.astype(index.labels.dtype, copy=False)
        return index

    def __len__(self) -> int:
        return len(self.hashes)

    def zero(self) -> RowIndex:
        """Return the index of no rows."""
        return RowIndex(self.rule)

    def update(self, blocks: Iterable[Block]) -> None:
        """Add rows, a few at a time."""
        hashes, labels = [self.hashes], [self.labels]
        for block in blocks:
            columns = block.X.shape[1] + block.y.shape[1] + 1
            step = max(_VALUES_AT_ONCE // columns, 1)
            weights = np.ones(len(block)) if block.weights is None else block.weights
            for start in range(0, len(block), step):
                part = slice(start, start + step)
                parts = (block.X[part], block.y[part], weights[part, None])
                hashes.append(row_hashes(np.concatenate(parts, axis=1, dtype=float)))
            places = block.places()
            labels.append(places if self.rule is None else self.rule.of(places))
        kind = self.labels.dtype
        self.hashes = np.concatenate(hashes)
        self.labels = np.concatenate([part.astype(kind, copy=False) for part in labels])

    def merge(self, other: RowIndex) -> RowIndex:
        """Return the index of both sets of rows.

        Raises
        ------
        ParameterError
            If one holds folds and the other places, or another number of folds.
        """
        mine, theirs = (index.rule and index.rule.n_folds for index in (self, other))
        if mine != theirs:
            raise ParameterError(
                "indices merge only with as many folds each, or places in both; index both alike."
            )
        return RowIndex.of(
            np.concatenate([self.hashes, other.hashes]),
            np.concatenate([self.labels, other.labels]),
            self.rule,
        )

    def in_order(self) -> RowIndex:
        """Return the index with its rows ascending by hash, and then by label."""
        return self.taking(np.lexsort((self.labels, self.hashes)))

    def taking(self, which: Array) -> RowIndex:
        """Return the index of the rows at these positions, or where a mask is true."""
        return RowIndex.of(self.hashes[which], self.labels[which], self.rule)

    def positions(self, hashes: Array) -> Array:
        """Return where rows are in this index, each row of it for one of them: (m,), int64.

        Parameters
        ----------
        hashes : ndarray of shape (m,), uint64
            Ascending, as those of this index must be.

        Returns
        -------
        ndarray
            -1 for a row that is not there, or there less often than it is asked for.
        """
        nth = np.arange(len(hashes)) - np.searchsorted(hashes, hashes)
        position = np.searchsorted(self.hashes, hashes) + nth
        there = position < len(self)
        there[there] = self.hashes[position[there]] == hashes[there]
        return np.where(there, position, -1)


def row_hashes(values: Floats) -> Array:
    """Return a 64-bit hash of every row of values (n, c), (n,) uint64.

    Words are mixed first: those of small integers end in many zeros, which a multilinear hash
    would keep.

    References
    ----------
    Lemire and Kaser (2014), "Strongly universal string hashing is fast", for multilinear hashing.
    """
    positions = np.arange(1, values.shape[1] + 1, dtype=np.uint64)
    multipliers = mixed(positions * np.uint64(0x9E3779B97F4A7C15)) | np.uint64(1)
    words = mixed((values + 0.0).view(np.uint64))  # -0.0 + 0.0 is 0.0
    return mixed(words @ multipliers)
