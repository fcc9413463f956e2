"""Fields of statistics that say how a sum starts, and how those of two sets of rows become one."""

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Sum:
    """How one attribute starts, and how those of two sets of rows become one."""

    start: Any = 0
    shape: tuple[int | str, ...] = ()  # a name is that of an attribute, which may have dots
    dtype: Any = float  # so is that of a dtype
    merge: Callable[[Any, Any], Any] | None = operator.add
    subtract: Callable[[Any, Any], Any] | None = None  # undoes the merge, where anything does

    def zero(self, holder: Any, name: str) -> Any:  # noqa: ARG002  for sums that consist of parts
        if not self.shape:
            return self.start if self.start is None else self.dtype(self.start)
        *shape, dtype = (
            operator.attrgetter(n)(holder) if isinstance(n, str) else n
            for n in (*self.shape, self.dtype)
        )
        return np.full(shape, self.start, dtype) if self.start else np.zeros(shape, dtype)

    def detached(self, value: Any) -> Any:
        """Return what travels and is saved."""
        return value

    def attached(self, holder: Any, name: str, value: Any) -> Any:  # noqa: ARG002  as of `zero`
        return value


def declared(way: Sum) -> Any:
    return field(init=False, metadata={"sum": way})


def total(*shape: int | str, dtype: Any = float) -> Any:
    """Declare an attribute that is added, and starts at 0: a number, or an array of a shape."""
    return declared(Sum(0, shape, dtype, subtract=operator.sub))


def minimum(*shape: int | str, start: float = np.inf) -> Any:
    """Declare an attribute that is the smallest of its values."""
    return declared(Sum(start, shape, merge=np.minimum))


def maximum(*shape: int | str, start: float = -np.inf) -> Any:
    """Declare an attribute that is the largest of its values."""
    return declared(Sum(start, shape, merge=np.maximum))


def concatenated(dtype: Any = float) -> Any:
    """Declare an array (n,) that grows with the rows."""
    return declared(Sum(0, (0,), dtype, lambda mine, theirs: np.concatenate([mine, theirs])))


def merged_by(
    merge: Callable[[Any, Any], Any], subtract: Callable[[Any, Any], Any] | None = None
) -> Any:
    """Declare an attribute that is merged, and subtracted, by functions; None for no rows."""
    return declared(Sum(None, merge=merge, subtract=subtract))


def joint(*shape: int | str, dtype: Any = float) -> Any:
    """Declare an attribute, 0 for no rows, that `Sums.merged_jointly` merges with others."""
    return declared(Sum(0, shape, dtype, None))


class _Parts(Sum):
    """A tuple of `Sums`, which its holder is given."""

    def zero(self, holder: Any, name: str) -> Any:
        return tuple(one.zero() for one in getattr(holder, name))

    def detached(self, value: Any) -> Any:
        return [one.detached() for one in value]

    def attached(self, holder: Any, name: str, value: Any) -> Any:
        held = getattr(holder, name)
        return tuple(one.attached(sums) for one, sums in zip(held, value, strict=True))


class _Part(Sum):
    """One object that is `Sums`; its holder makes it, and the start is how."""

    def zero(self, holder: Any, name: str) -> Any:  # noqa: ARG002
        return self.start(holder)

    def detached(self, value: Any) -> Any:
        return value.detached()

    def attached(self, holder: Any, name: str, value: Any) -> Any:
        return getattr(holder, name).attached(value)


def parts() -> Any:
    """Declare a parameter that is a tuple of `Sums`, which merge one by one."""

    def merge(mine: Any, theirs: Any) -> Any:
        return tuple(one.merge(other) for one, other in zip(mine, theirs, strict=True))

    return field(metadata={"sum": _Parts(merge=merge)})


def part(of: Callable[[Any], Any]) -> Any:
    """Declare an attribute that has sums of its own, which a function of its holder makes."""
    return declared(_Part(of, merge=lambda mine, theirs: mine.merge(theirs)))
