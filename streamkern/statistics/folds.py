"""Rows dealt to folds by a rule, and a statistic of every fold in one reading."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from streamkern.errors import ParameterError
from streamkern.statistics.base import Statistic
from streamkern.statistics.spread_sample import hashed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from streamkern._typing import Array
    from streamkern.sources import Block, Shard
    from streamkern.statistics.work import Work


@dataclass(frozen=True)
class Folds(ABC):
    """A rule that deals every row to one of K folds, by its place in the source.

    Parameters
    ----------
    n_folds : int
        K.
    """

    n_folds: int

    @abstractmethod
    def of(self, places: Array) -> Array:
        """Return the fold of every place, (rows,), int."""


@dataclass(frozen=True)
class RangeFolds(Folds):
    """Contiguous ranges of rows, each in one fold.

    Parameters
    ----------
    n_folds : int
    starts : ndarray of shape (r,), int64
        The first place of every range, ascending from 0.
    folds : ndarray of shape (r,), int
    """

    starts: Array
    folds: Array

    def of(self, places: Array) -> Array:
        """Return the fold of the range that every place is in."""
        found: Array = self.folds[np.searchsorted(self.starts, places, side="right") - 1]
        return found


@dataclass(frozen=True)
class ListedFolds(Folds):
    """A fold for every place, by name.

    Parameters
    ----------
    n_folds : int
    folds : ndarray of shape (n,), int
    """

    folds: Array

    def of(self, places: Array) -> Array:
        """Return the fold that is listed for every place."""
        found: Array = self.folds[places]
        return found


def unplaced_folds(n_folds: int) -> ListedFolds:
    """Return the rule of rows that have no place in one source: they came from several."""
    return ListedFolds(n_folds, np.empty(0, dtype=np.int64))


@dataclass(frozen=True)
class RowFolds(Folds):
    """The rows gK to (g + 1)K - 1 go to K different folds, turned by a hash of g.

    Parameters
    ----------
    n_folds : int
    random_state : int
    """

    random_state: int

    def of(self, places: Array) -> Array:
        """Return the place modulo K, turned by the hash of the place over K."""
        turns = hashed(places // self.n_folds, self.random_state) % np.uint64(self.n_folds)
        return (places + turns.astype(np.int64)) % self.n_folds


def shard_folds(shards: Sequence[Shard], n_folds: int, random_state: int) -> RangeFolds:
    """Deal whole shards to folds by a seeded shuffle, the largest first, each to the emptiest."""
    hashes = hashed(np.array([shard.index for shard in shards]), random_state)
    sizes = np.array([shard.n_rows for shard in shards])
    folds = np.empty(len(shards), dtype=np.int64)
    dealt = np.zeros(n_folds, dtype=np.int64)
    for i in np.lexsort((hashes, -sizes)):
        folds[i] = dealt.argmin()
        dealt[folds[i]] += sizes[i]
    return RangeFolds(n_folds, np.array([shard.start for shard in shards]), folds)


def block_folds(n_rows: int, n_folds: int) -> RangeFolds:
    """Cut the rows into K contiguous folds, for rows in the order of time.

    They are those of `sklearn.model_selection.KFold`: where K does not divide the rows, the first
    folds have one more.
    """
    numbers = np.arange(n_folds)
    size, more = divmod(n_rows, n_folds)
    return RangeFolds(n_folds, numbers * size + np.minimum(numbers, more), numbers)


class Weighting(Protocol):
    """What weighs rows anew where they are read."""

    def reweighted(self, block: Block) -> Block:
        """Return the rows with their new weights."""
        ...


class ByFold(Statistic):
    """A statistic of every fold.

    Parameters
    ----------
    rule : Folds
    empty : Statistic
        Its parameters are those of every fold's.
    weighting : Weighting, optional
        Whose weights rows are given before they are dealt.

    Attributes
    ----------
    parts : dict of int to Statistic
        By fold; a fold without rows has none.
    shared : set of int
        Folds whose part another statistic holds too, so that it is copied before it changes.
    """

    def __init__(self, rule: Folds, empty: Statistic, weighting: Weighting | None = None) -> None:
        self.rule = rule
        self.empty = empty
        self.weighting = weighting
        self.parts: dict[int, Statistic] = {}
        self.shared: set[int] = set()

    @property
    def work(self) -> Work | None:
        """That of one fold, since every row is in one."""
        return self.empty.work

    def zero(self) -> ByFold:
        """Return the statistics of no rows."""
        return ByFold(self.rule, self.empty, self.weighting)

    def update(self, blocks: Iterable[Block]) -> None:
        """Add rows, each to its fold's statistic; consecutive blocks of a fold go together."""
        for fold, dealt in groupby(self._dealt(blocks), key=itemgetter(0)):
            part = self.parts.setdefault(fold, self.empty.zero())
            if fold in self.shared:
                part = self.parts[fold] = part.merge(self.empty.zero())
                self.shared.discard(fold)
            part.scratch = self.scratch
            part.update(block for _, block in dealt)
            part.scratch = None

    def _dealt(self, blocks: Iterable[Block]) -> Iterator[tuple[int, Block]]:
        for block in blocks:
            rows = block if self.weighting is None else self.weighting.reweighted(block)
            folds = self.rule.of(rows.places())
            for fold in np.unique(folds).tolist():
                yield fold, rows.where(folds == fold)

    def merge(self, other: ByFold) -> ByFold:
        """Merge fold by fold; what only one side has is passed on as it is."""
        if self.rule.n_folds != other.rule.n_folds:
            raise ParameterError(
                f"statistics merge only with as many folds, not {self.rule.n_folds} and "
                f"{other.rule.n_folds}; compute both with the same number."
            )
        both = self.zero()
        for fold in sorted(self.parts.keys() | other.parts.keys()):
            mine, theirs = self.parts.get(fold), other.parts.get(fold)
            if mine is not None and theirs is not None:
                both.parts[fold] = mine.merge(theirs)
                continue
            lender = self if theirs is None else other
            both.parts[fold] = lender.parts[fold]
            both.shared.add(fold)
            lender.shared.add(fold)
        return both

    def detached(self) -> dict[int, Any]:
        """Return the sums of every fold that has rows."""
        return {fold: part.detached() for fold, part in self.parts.items()}

    def attached(self, sums: dict[int, Any]) -> ByFold:
        """Return the statistics with their parameters."""
        whole = self.zero()
        whole.parts = {fold: self.empty.attached(part) for fold, part in sums.items()}
        # Sums that came by may still be held by whoever sent them.
        whole.shared = set(sums)
        return whole
