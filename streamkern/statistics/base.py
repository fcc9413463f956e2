"""What every statistic offers: a zero, an update and a merge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamkern.sources import Block


class Statistic(ABC):
    """An element of a commutative monoid of sums over rows.

    A statistic carries its parameters and its sums.  What it says must not depend, beyond
    rounding, on how the rows were cut into blocks, nor on the order of the merges.
    """

    @abstractmethod
    def zero(self) -> Self:
        """Return a statistic of no rows, with the same parameters."""

    @abstractmethod
    def update(self, blocks: Iterable[Block]) -> None:
        """Add rows, in place.

        Blocks come together so that working memory is taken once for all of them.  A block may be
        overwritten when the next one is asked for.
        """

    @abstractmethod
    def merge(self, other: Self) -> Self:
        """Return the statistic of both sets of rows, leaving the two as they are."""


class Together(Statistic):
    """Several statistics of the same rows, for one reading.

    Parameters
    ----------
    *parts : Statistic
    """

    def __init__(self, *parts: Statistic) -> None:
        self.parts = parts

    def zero(self) -> Together:
        """Return the zeros of the parts."""
        return Together(*(part.zero() for part in self.parts))

    def update(self, blocks: Iterable[Block]) -> None:
        """Add rows to every part."""
        for block in blocks:
            for part in self.parts:
                part.update([block])

    def merge(self, other: Together) -> Together:
        """Merge part by part."""
        pairs = zip(self.parts, other.parts, strict=True)
        return Together(*(mine.merge(theirs) for mine, theirs in pairs))
