"""A uniform sample of rows, spread over the whole source, whatever the cuts and their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamkern.errors import ParameterError
from streamkern.statistics.base import Statistic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamkern._typing import Array, Floats
    from streamkern.sources import Block


class RowSample(Statistic):
    """The k rows whose places have the smallest hashes: bottom-k sampling.

    Parameters
    ----------
    n_rows : int
        k; all rows where there are fewer.
    random_state : int
        Seed of the hash.

    Attributes
    ----------
    places : ndarray of shape (k,), int64
        Where in the source the rows are, in the order of their hashes.
    X : ndarray of shape (k, p)
    y : ndarray of shape (k, q)
    weights : ndarray of shape (k,)
        What the rows count; they are drawn as if all counted the same.

    References
    ----------
    Cohen and Kaplan (2007), "Summarizing data using bottom-k sketches".
    """

    stays_behind = ("n_rows", "random_state")

    def __init__(self, n_rows: int, random_state: int = 0) -> None:
        if n_rows < 1:
            raise ParameterError(f"a sample has at least 1 row, not {n_rows}; ask for some.")
        self.n_rows = n_rows
        self.random_state = random_state
        self.hashes = np.empty(0, dtype=np.uint64)
        self.places = np.empty(0, dtype=np.int64)
        self.X: Array = np.empty((0, 0))
        self.y: Array = np.empty((0, 0))
        self.weights = np.empty(0)

    @property
    def counts(self) -> Floats | None:
        """The weights, (k,), None where all rows count once."""
        return None if (self.weights == 1.0).all() else self.weights

    def zero(self) -> RowSample:
        """Return the sample of no rows."""
        return RowSample(self.n_rows, self.random_state)

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
                weights = np.ones(len(chosen))
                if block.weights is not None:
                    weights = block.weights[chosen]
                rows = block.X[chosen], block.y[chosen], weights
                self.keep(hashes[chosen], places[chosen], *rows)

    def keep(self, hashes: Array, places: Array, X: Array, y: Array, weights: Array) -> None:
        """Add rows with their hashes, and keep the k with the smallest."""
        if len(self.hashes):
            hashes = np.concatenate([self.hashes, hashes])
            places = np.concatenate([self.places, places])
            X, y = np.concatenate([self.X, X]), np.concatenate([self.y, y])
            weights = np.concatenate([self.weights, weights])
        order = np.argsort(hashes, kind="stable")[: self.n_rows]
        self.hashes, self.places, self.X, self.y = hashes[order], places[order], X[order], y[order]
        self.weights = weights[order]

    def merge(self, other: RowSample) -> RowSample:
        """Return the sample of both sets of rows."""
        if (self.n_rows, self.random_state) != (other.n_rows, other.random_state):
            raise ParameterError(
                "samples merge only when their size and seed are the same; draw both alike."
            )
        both = self.zero()
        for part in (self, other):
            if len(part.hashes):
                both.keep(part.hashes, part.places, part.X, part.y, part.weights)
        return both


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
