"""What every statistic offers: a zero, an update and a merge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamkern.runtime.scratch import Scratch
    from streamkern.sources import Block
    from streamkern.statistics.work import Work


class Statistic(ABC):
    """An element of a commutative monoid of sums over rows.

    A statistic carries its parameters and its sums.  What it says must not depend, beyond
    rounding, on how the rows were cut into blocks, nor on the order of the merges.

    Attributes
    ----------
    scratch : Scratch, optional
        Lent for updates, by one thread at a time; without it every update takes its own.
    stays_behind : tuple of str
        Names of parameters, which every statistic of a pass has in common; all other attributes
        are sums.
    """

    scratch: Scratch | None = None
    stays_behind: ClassVar[tuple[str, ...]] = ()

    @property
    def work(self) -> Work | None:
        """The arithmetic of an update; None where hardly any of it is products."""
        return None

    @abstractmethod
    def zero(self) -> Self:
        """Return a statistic of no rows, with the same parameters."""

    @abstractmethod
    def update(self, blocks: Iterable[Block]) -> None:
        """Add rows, in place.

        A block may be overwritten when the next one is asked for.
        """

    @abstractmethod
    def merge(self, other: Self) -> Self:
        """Return the statistic of both sets of rows, leaving the two as they are."""

    def detached(self) -> Any:
        """Return the sums by name, without what is known where they go: `stays_behind`."""
        known = {*self.stays_behind, "scratch"}
        return {name: value for name, value in vars(self).items() if name not in known}

    def attached(self, sums: Any) -> Self:
        """Return the statistic of sums that `detached` gave, with the parameters of this one."""
        statistic: Self = copy(self)
        vars(statistic).update(sums)
        return statistic


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
                part.scratch = self.scratch
                part.update([block])
                part.scratch = None

    def merge(self, other: Together) -> Together:
        """Merge part by part."""
        pairs = zip(self.parts, other.parts, strict=True)
        return Together(*(mine.merge(theirs) for mine, theirs in pairs))

    def detached(self) -> list[Any]:
        """Return the sums of every part."""
        return [part.detached() for part in self.parts]

    def attached(self, sums: list[Any]) -> Together:
        """Return the parts with their parameters."""
        return Together(*(part.attached(s) for part, s in zip(self.parts, sums, strict=True)))
