"""Hashes of the values of rows, by which rows are known again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.errors import ParameterError
from streamkern.statistics.base import Statistic, concatenated
from streamkern.statistics.spread_sample import mixed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamkern._typing import Array, Floats
    from streamkern.sources import Block
    from streamkern.statistics.folds import Folds

# Few enough values for the cache.
_VALUES_AT_ONCE = 15_000


class RowIndex(Statistic):
    """A hash of the values of every row, whatever their type, and the fold or place of the row.

    Unlike other statistics it grows with the number of rows: by 9 bytes a row with up to 256
    folds, by 16 with places, which are kept where there is no rule.  Of n rows, two with different
    values have the same hash with a probability of about n^2 / 2^65.
    """

    rule: Folds | None = None
    hashes: Array = concatenated(np.uint64)
    labels: Array = concatenated("label_type")

    @property
    def label_type(self) -> np.dtype[Any]:
        """The smallest that holds every fold, or that of places."""
        return (
            np.dtype(np.int64) if self.rule is None else np.min_scalar_type(self.rule.n_folds - 1)
        )

    @classmethod
    def of(cls, hashes: Array, labels: Array, rule: Folds | None = None) -> RowIndex:
        """Return the index that holds these hashes and labels."""
        index = cls(rule)
        index.hashes, index.labels = hashes, labels.astype(index.label_type, copy=False)
        return index

    def __len__(self) -> int:
        return len(self.hashes)

    def update(self, blocks: Iterable[Block]) -> None:
        """Add rows, a few at a time."""
        hashes, labels = [self.hashes], [self.labels]
        for block in blocks:
            columns = block.X.shape[1] + block.y.shape[1] + 1
            step = max(_VALUES_AT_ONCE // columns, 1)
            weights = np.ones(len(block)) if block.weights is None else block.weights
            for start in range(0, len(block), step):
                few = slice(start, start + step)
                values = block.X[few], block.y[few], weights[few, None]
                hashes.append(row_hashes(np.concatenate(values, axis=1, dtype=float)))
            places = block.places()
            labels.append(places if self.rule is None else self.rule.of(places))
        self.hashes = np.concatenate(hashes)
        self.labels = np.concatenate([each.astype(self.label_type, copy=False) for each in labels])

    def compatible(self, other: RowIndex) -> RowIndex:
        """Raise ParameterError unless both hold places, or as many folds."""
        mine, theirs = (index.rule and index.rule.n_folds for index in (self, other))
        if mine != theirs:
            raise ParameterError(
                "indices merge only with as many folds each, or places in both; index both alike."
            )
        return other

    def in_order(self) -> RowIndex:
        """Return the index with its rows ascending by hash, and then by label."""
        return self.taking(np.lexsort((self.labels, self.hashes)))

    def taking(self, which: Array) -> RowIndex:
        """Return the index of the rows at these positions, or where a mask is true."""
        return RowIndex.of(self.hashes[which], self.labels[which], self.rule)

    def positions(self, hashes: Array) -> Array:
        """Return where rows are in this index, each row of it for one of them: (m,), int64.

        Both are ascending by hash.  The position is -1 for a row that is not there, or there less
        often than it is asked for.
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
