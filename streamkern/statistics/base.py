"""What every statistic offers: a zero, an update and a merge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamkern._typing import Array
    from streamkern.sources import Block


class Scratch:
    """Working memory by name, taken once and used again: new memory costs as much as writing it."""

    def __init__(self) -> None:
        self._held: dict[str, Array] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return an array with any values, the same memory as under this name before if it fits."""
        size = int(np.prod(shape))
        held = self._held.get(name)
        if held is None or held.dtype != dtype or held.size < size:
            held = self._held[name] = np.empty(size, dtype=dtype)
        return held[:size].reshape(shape)


class Statistic(ABC):
    """An element of a commutative monoid of sums over rows.

    A statistic carries its parameters and its sums.  What it says must not depend, beyond
    rounding, on how the rows were cut into blocks, nor on the order of the merges.

    Attributes
    ----------
    scratch : Scratch, optional
        Lent for updates, by one thread at a time; without it every update takes its own.
    stays_behind : tuple of str
        Names of large parameters that every statistic of a pass has in common.
    """

    scratch: Scratch | None = None
    stays_behind: ClassVar[tuple[str, ...]] = ()

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
        """Return the sums without what is large and known where they go: `stays_behind`."""
        sums = copy(self)
        for name in self.stays_behind:
            delattr(sums, name)
        return sums

    def attached(self, sums: Any) -> Self:
        """Return sums that `detached` gave, with what this statistic has of what stayed behind."""
        statistic: Self = copy(sums)
        for name in self.stays_behind:
            setattr(statistic, name, getattr(self, name))
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
