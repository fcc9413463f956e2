"""Bottom-k sampling: a uniform sample of rows, whatever the cuts and their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.errors import ParameterError
from streamkern.statistics.base import Statistic, joint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamkern._typing import Array, Floats
    from streamkern.sources import Block


class RowSample(Statistic):
    """The k rows whose places have the smallest hashes, in the order of these.

    All rows count the same in the draw, whatever their weights.

    References
    ----------
    Cohen and Kaplan (2007), "Summarizing data using bottom-k sketches".
    """

    n_rows: int
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

    def update(self, blocks: Iterable[Block]) -> None:
        """Consider rows."""
        for block in blocks:
            places = block.places()
            hashes = hashed(places, self.random_state)
            if len(self.hashes) == self.n_rows:
                chosen = np.flatnonzero(hashes < self.hashes[-1])
            else:
                chosen = np.arange(len(hashes))
            if len(chosen) > self.n_rows:
                chosen = chosen[np.argpartition(hashes[chosen], self.n_rows)[: self.n_rows]]
            if len(chosen):
                weights = np.ones(len(chosen)) if block.weights is None else block.weights[chosen]
                rows = places[chosen], block.X[chosen], block.y[chosen], weights
                vars(self).update(self._smallest(hashes[chosen], *rows))

    def _smallest(self, *rows: Array) -> dict[str, Any]:
        """Return the rows with the smallest hashes of those here and others."""
        names = "hashes", "places", "X", "y", "weights"
        if len(self.hashes):
            mine = (getattr(self, name) for name in names)
            rows = tuple(np.concatenate(pair) for pair in zip(mine, rows, strict=True))
        order = np.argsort(rows[0], kind="stable")[: self.n_rows]
        return {name: values[order] for name, values in zip(names, rows, strict=True)}

    def compatible(self, other: RowSample) -> RowSample:
        """Raise ParameterError unless both have the same size and seed."""
        if (self.n_rows, self.random_state) != (other.n_rows, other.random_state):
            raise ParameterError(
                "samples merge only when their size and seed are the same; draw both alike."
            )
        return other

    def merged_jointly(self, other: RowSample) -> dict[str, Any]:
        """Return the sample of both sets of rows."""
        if not len(other.hashes):
            return dict(self.detached())
        return self._smallest(other.hashes, other.places, other.X, other.y, other.weights)


def hashed(places: Array, seed: int) -> Array:
    """Return a 64-bit hash of every row number."""
    key = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    return mixed(places.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + key)


def mixed(words: Array) -> Array:
    """Return 64-bit words, mixed one to one so that every bit depends on all bits.

    References
    ----------
    Steele, Lea and Flood (2014), "Fast splittable pseudorandom number generators", for the mixer.
    """
    z: Array = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z
