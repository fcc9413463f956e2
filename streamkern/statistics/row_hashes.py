"""Hashes of rows: of places, for uniform samples, and of values, to know rows again."""

from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np

from streamkern._typing import Array, Block, Floats
from streamkern.errors import ParameterError
from streamkern.features.base import slices
from streamkern.statistics.base import Statistic, Sums
from streamkern.statistics.declared_sums import concatenated, joint

# Few enough values for the cache.
_VALUES_AT_ONCE = 15_000


class FirstRows(Sums):
    """The first k rows by the first of its sums, then by the second; all sums are `joint`."""

    merges_plainly = True
    descending: ClassVar[bool] = False  # by the first sum

    n_rows: int

    def add(self, *rows: Array) -> None:
        """Add rows, as a value for each of the sums, (m, ...)."""
        names, mine = zip(*self.detached().items(), strict=True)
        both = [each for each in (mine, rows) if len(each[0])] or [rows]
        keys, places, *others = map(np.concatenate, zip(*both, strict=True))
        first = np.lexsort((places, -keys if self.descending else keys))[: self.n_rows]
        sums = (values[first] for values in (keys, places, *others))
        vars(self).update(zip(names, sums, strict=True))

    def merged_jointly(self, other: Self) -> dict[str, Any]:
        both = self._with({})
        both.add(*other.detached().values())
        return dict(both.detached())


class RowSample(FirstRows, Statistic):
    """The k rows whose places have the smallest hashes, in their order, whatever they weigh.

    Cohen and Kaplan (2007), "Summarizing data using bottom-k sketches".
    """

    merges_plainly = True

    random_state: int = 0
    hashes: Array = joint(0, dtype=np.uint64)
    places: Array = joint(0, dtype=np.int64)
    X: Array = joint(0, 0)
    y: Array = joint(0, 0)
    weights: Floats = joint(0)

    def __post_init__(self) -> None:
        if self.n_rows < 1:
            raise ParameterError(f"a sample has at least 1 row, not {self.n_rows}; ask for some.")
        super().__post_init__()

    @property
    def counts(self) -> Floats | None:
        """The weights, (k,), None where all rows count once."""
        return None if (self.weights == 1.0).all() else self.weights

    def first(self, n_rows: int) -> "RowSample":
        found = RowSample(n_rows, self.random_state)
        found.add(*self.detached().values())
        return found

    def update(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            places = block.places()
            hashes = hashed(places, self.random_state)
            is_full = len(self.hashes) == self.n_rows
            chosen = np.flatnonzero(hashes < self.hashes[-1]) if is_full else np.arange(len(block))
            if len(chosen) > self.n_rows:
                chosen = chosen[np.argpartition(hashes[chosen], self.n_rows)[: self.n_rows]]
            if len(chosen):
                weights = block.each_weight()[chosen]
                rows = np.asarray(block.X[chosen]), block.y[chosen], weights
                self.add(hashes[chosen], places[chosen], *rows)

    def compatible(self, other: Self) -> Self:
        if (self.n_rows, self.random_state) != (other.n_rows, other.random_state):
            raise ParameterError(
                "samples merge only when their size and seed are the same; draw both alike."
            )
        return other


class RowIndex(Statistic):
    """A hash of the values of every row, whatever their type, and the fold or place of the row.

    Unlike other statistics it grows with the number of rows: by 9 bytes a row with up to 256
    folds, by 16 with places, which are kept where there is no rule.  Of n rows, two with different
    values have the same hash with a probability of about n^2 / 2^65.
    """

    merges_plainly = True

    rule: Any = None  # the Folds that rows are dealt to
    hashes: Array = concatenated(np.uint64)
    labels: Array = concatenated("label_type")

    @property
    def label_type(self) -> np.dtype[Any]:
        """The smallest that holds every fold, or that of places."""
        return (
            np.dtype(np.int64) if self.rule is None else np.min_scalar_type(self.rule.n_folds - 1)
        )

    @classmethod
    def of(cls, hashes: Array, labels: Array, rule: Any = None) -> "RowIndex":
        index = cls(rule)
        index.hashes, index.labels = hashes, labels.astype(index.label_type, copy=False)
        return index

    def __len__(self) -> int:
        return len(self.hashes)

    def update(self, blocks: Iterable[Block]) -> None:
        hashes, labels = [self.hashes], [self.labels]
        for block in blocks:
            step = max(_VALUES_AT_ONCE // (block.X.shape[1] + block.y.shape[1] + 1), 1)
            weights = block.each_weight()
            for few in slices(len(block), step):
                values = block.X[few], block.y[few], weights[few, None]
                hashes.append(row_hashes(np.concatenate(values, axis=1, dtype=float)))
            labels.append(block.places() if self.rule is None else self.rule.of(block))
        self.hashes = np.concatenate(hashes)
        self.labels = np.concatenate([each.astype(self.label_type, copy=False) for each in labels])

    def compatible(self, other: Self) -> Self:
        mine, theirs = (index.rule and index.rule.n_folds for index in (self, other))
        if mine != theirs:
            raise ParameterError(
                "indices merge only with as many folds each, or places in both; index both alike."
            )
        return other

    def in_order(self) -> "RowIndex":
        """Return the index with its rows ascending by hash, and then by label."""
        return self.taking(np.lexsort((self.labels, self.hashes)))

    def taking(self, which: Array) -> "RowIndex":
        """Return the index of the rows at these positions, or where a mask is true."""
        return RowIndex.of(self.hashes[which], self.labels[which], self.rule)

    def positions(self, hashes: Array) -> Array:
        """Return where rows, ascending as here, are in this index, each once, else -1, (m,)."""
        nth = np.arange(len(hashes)) - np.searchsorted(hashes, hashes)
        position = np.searchsorted(self.hashes, hashes) + nth
        there = position < len(self)
        there[there] = self.hashes[position[there]] == hashes[there]
        return np.where(there, position, -1)


def hashed(places: Array, seed: int) -> Array:
    """Return a 64-bit hash of every row number."""
    key = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    return mixed(places.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + key)


def mixed(words: Array) -> Array:
    """Return 64-bit words, mixed one to one so that every bit depends on all bits.

    Steele, Lea and Flood (2014), "Fast splittable pseudorandom number generators", for the mixer.
    """
    z: Array = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def row_hashes(values: Floats) -> Array:
    """Return a 64-bit hash of every row of values (n, c), (n,) uint64.

    Words are mixed first: those of small integers end in many zeros, which a multilinear hash
    would keep.
    Lemire and Kaser (2014), "Strongly universal string hashing is fast", for multilinear hashing.
    """
    positions = np.arange(1, values.shape[1] + 1, dtype=np.uint64)
    multipliers = mixed(positions * np.uint64(0x9E3779B97F4A7C15)) | np.uint64(1)
    words = mixed((values + 0.0).view(np.uint64))  # -0.0 + 0.0 is 0.0
    return mixed(words @ multipliers)
