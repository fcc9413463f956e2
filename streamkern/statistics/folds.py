"""Folds of cross-validation: rules that deal rows to them, and a statistic of every fold."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from streamkern._typing import Array, Block, Floats, Shard
from streamkern.errors import ParameterError
from streamkern.statistics.base import Statistic
from streamkern.statistics.declared_sums import Sum, declared
from streamkern.statistics.row_hashes import hashed
from streamkern.statistics.work import Work


@dataclass(frozen=True)
class Folds(ABC):
    """A rule that deals every row to one of K folds, by its place in the source or its inputs."""

    n_folds: int

    @abstractmethod
    def of(self, rows: Block) -> Array:
        """Return the fold of every row, (rows,), int."""

    @property
    def windows(self) -> "tuple[Window, ...]":
        """What is predicted from what came before; none where a fold is from all others."""
        return ()

    def of_tests(self) -> "Folds":
        """Return the rule of what is predicted: folds, or windows, with -1 for rows of none."""
        return self


class PlacedFolds(Folds):
    """A rule that needs no more of a row than its place in the source."""

    @abstractmethod
    def at(self, places: Array) -> Array:
        """Return the fold of every place, (rows,), int."""

    def of(self, rows: Block) -> Array:
        return self.at(rows.places())


@dataclass(frozen=True)
class RangeFolds(PlacedFolds):
    """Contiguous ranges of rows, each in one fold, by their first places, ascending from 0."""

    starts: Array
    folds: Array

    def at(self, places: Array) -> Array:
        return self.folds[np.searchsorted(self.starts, places, side="right") - 1]


@dataclass(frozen=True)
class ListedFolds(PlacedFolds):
    """A fold for every place, (n,)."""

    folds: Array

    def at(self, places: Array) -> Array:
        return self.folds[places]


class Window(NamedTuple):
    """Parts of time, by number: those before `trained` predict those from `start` to `stop`."""

    trained: int
    start: int
    stop: int


@dataclass(frozen=True)
class WindowFolds(ListedFolds):
    """Consecutive parts of time, some of which are predicted from those before them."""

    windows: tuple[Window, ...] = ()

    def of_tests(self) -> ListedFolds:
        tests = np.full(self.n_folds, -1, dtype=np.int16)
        for number, (_, start, stop) in enumerate(self.windows):
            tests[start:stop] = number
        return ListedFolds(len(self.windows), tests[self.folds])


def unplaced_folds(n_folds: int) -> ListedFolds:
    """Return the rule of rows that have no place in one source: they came from several."""
    return ListedFolds(n_folds, np.empty(0, dtype=np.int64))


@dataclass(frozen=True)
class RowFolds(PlacedFolds):
    """The rows gK to (g + 1)K - 1 go to K different folds, turned by a hash of g."""

    random_state: int

    def at(self, places: Array) -> Array:
        turns = hashed(places // self.n_folds, self.random_state) % np.uint64(self.n_folds)
        return (places + turns.astype(np.int64)) % self.n_folds


@dataclass(frozen=True)
class TurnedFolds(PlacedFolds):
    """Another rule, with folds that are so many further on."""

    rule: PlacedFolds
    turn: int

    def at(self, places: Array) -> Array:
        return (self.rule.at(places) + self.turn) % self.n_folds


@dataclass(frozen=True)
class RegionFolds(Folds):
    """Cells of the inputs' space, each in one fold: a row goes with the nearest centre."""

    standardizer: Any  # of rows, as features are made of them
    centres: Floats  # (m, p')
    folds: Array  # (m,)

    def of(self, rows: Block) -> Array:
        z, nearest, least = self.standardizer(rows.X), np.zeros(len(rows), int), np.inf
        for cell, centre in enumerate(self.centres):
            # Row by row, so that nothing depends on how many come together.
            distances = np.square(z - centre).sum(axis=1)
            nearest = np.where(distances < least, cell, nearest)
            least = np.minimum(distances, least)
        return self.folds[nearest]


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
    """Cut rows in the order of time into the K contiguous folds of `sklearn.model_selection.KFold`.

    Where K does not divide the rows, the first folds have one more.
    """
    numbers = np.arange(n_folds)
    size, more = divmod(n_rows, n_folds)
    return RangeFolds(n_folds, numbers * size + np.minimum(numbers, more), numbers)


def rows_by_fold(rule: Folds, block: Block) -> Iterator[tuple[int, Block]]:
    """Yield every fold that has rows of a block, with these."""
    folds = rule.of(block)
    for fold in np.unique(folds).tolist():
        yield fold, block.where(folds == fold)


class Weighting(ABC):
    """What weighs rows anew before they are dealt to folds, by a model that there is already."""

    keeps_targets: ClassVar[bool] = True  # whether rows have the targets that they came with

    @abstractmethod
    def reweighted(self, block: Block, sums: Any) -> Block:
        """Return the rows of a block with other weights; `sums` of folds may note what it saw."""

    def by_fold(self, rule: Folds, empty: Any) -> "FoldStatistics":
        """Return the statistic of folds of such rows."""
        return FoldStatistics(rule, empty, self)


class _OfFolds(Sum):
    """Statistics by fold.  What only one side has is passed on as it is, and then is shared."""

    def detached(self, value: Any) -> Any:
        return {fold: part.detached() for fold, part in value.items()}

    def attached(self, holder: Any, name: str, value: Any) -> Any:  # noqa: ARG002
        parts = {fold: holder.empty.attached(sums) for fold, sums in value.items()}
        for part in parts.values():
            part.shared = True  # whoever sent the sums may still hold them
        return parts


def _merge_folds(mine: dict[int, Any], theirs: dict[int, Any]) -> dict[int, Any]:
    both = {}
    for fold in sorted(mine.keys() | theirs.keys()):
        if fold in mine and fold in theirs:
            both[fold] = mine[fold].merge(theirs[fold])
        else:
            both[fold] = mine[fold] if fold in mine else theirs[fold]
            both[fold].shared = True
    return both


class Split(NamedTuple):
    """Sums of rows that are predicted, and of those that predict them: None for all others."""

    held_out: Any
    before: Any = None
    # Orthonormal columns (D, r): the coefficients that may differ from 0, None for all.
    span: Any = None

    def training(self, total: Any) -> Any:
        """Return the sums of the rows that predict, of those of all rows."""
        return total.without(self.held_out) if self.before is None else self.before


class FoldStatistics(Statistic):
    """A statistic of every fold that has rows, in one reading."""

    merges_plainly = True

    rule: Folds
    empty: Any  # a Statistic with the parameters of every fold's
    weighting: Weighting | None = None
    parts: dict[int, Any] = declared(_OfFolds(dtype=dict, start=(), merge=_merge_folds))

    @classmethod
    def of(cls, rule: Folds, parts: dict[int, Any]) -> Self:
        """Return what there is of every fold, together."""
        whole = cls(rule, next(iter(parts.values())).zero())
        whole.parts = parts
        return whole

    @property
    def work(self) -> Work | None:
        return self.empty.work

    def numbers(self) -> list[int]:
        """Return the folds that have rows."""
        return sorted(self.parts)

    def part(self, fold: int, n_components: int | None = None) -> Any:
        """Return what there is of a fold, of all or of the leading features."""
        part = self.parts[fold]
        return part if n_components is None else part.leading(n_components)

    def total(self, n_components: int | None = None) -> Any:
        """Return what there is of all folds together, of all or of the leading features."""
        return self._sum(self.numbers(), n_components)

    def _sum(self, folds: Iterable[int], n_components: int | None) -> Any:
        parts = (self.part(fold, n_components) for fold in folds)
        return reduce(lambda one, other: one.merge(other), parts)

    def tests(self) -> list[int]:
        """Return the numbers of what is predicted in turn: folds with rows, or windows."""
        return list(range(len(self.rule.windows))) or self.numbers()

    def split(self, test: int, n_components: int | None = None) -> Split:
        """Return the sums of what is predicted, of all or of the leading features."""
        if not self.rule.windows:
            return Split(self.part(test, n_components))
        trained, start, stop = self.rule.windows[test]
        sums = (range(start, stop), range(trained))
        return Split(*(self._sum(parts, n_components) for parts in sums))

    def update(self, blocks: Iterable[Block]) -> None:
        """Add rows, each to its fold's statistic; consecutive blocks of a fold go together."""
        dealt = (each for block in self.weighed(blocks) for each in rows_by_fold(self.rule, block))
        for fold, rows in groupby(dealt, key=itemgetter(0)):
            part = self.parts.setdefault(fold, self.empty.zero())
            if part.shared:
                part = self.parts[fold] = part.merge(self.empty.zero())
            part.scratch = self.scratch
            part.update(block for _, block in rows)
            part.scratch = None

    def weighed(self, blocks: Iterable[Block]) -> Iterable[Block]:
        """Return the rows as they count."""
        if self.weighting is None:
            return blocks
        return (self.weighting.reweighted(block, self) for block in blocks)

    def compatible(self, other: Self) -> Self:
        if self.rule.n_folds != other.rule.n_folds:
            raise ParameterError(
                f"statistics merge only with as many folds, not {self.rule.n_folds} and "
                f"{other.rule.n_folds}; compute both with the same number."
            )
        return other
