"""Additive statistics: declared sums, and the zero, the merge and the wire form that follow."""

from __future__ import annotations

import operator
import time
from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self, dataclass_transform

import numpy as np

from streamkern.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from streamkern.runtime.scratch import Scratch
    from streamkern.sources import Block

# Rows and columns of the product that is measured: as fast as large ones, and done in 20 ms.
_ROWS, _COLUMNS = 2048, 1024
_TIMES = 2


@dataclass(frozen=True)
class Sum:
    """How one attribute starts, and how those of two sets of rows become one."""

    start: Any = 0
    shape: tuple[int | str, ...] = ()  # a name is that of an attribute, which may have dots
    dtype: Any = float  # so is that of a dtype
    merge: Callable[[Any, Any], Any] | None = operator.add

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
    return declared(Sum(0, shape, dtype))


def minimum(*shape: int | str, start: float = np.inf) -> Any:
    """Declare an attribute that is the smallest of its values."""
    return declared(Sum(start, shape, merge=np.minimum))


def maximum(*shape: int | str, start: float = -np.inf) -> Any:
    """Declare an attribute that is the largest of its values."""
    return declared(Sum(start, shape, merge=np.maximum))


def concatenated(dtype: Any = float) -> Any:
    """Declare an array (n,) that grows with the rows."""
    return declared(Sum(0, (0,), dtype, lambda mine, theirs: np.concatenate([mine, theirs])))


def merged_by(merge: Callable[[Any, Any], Any]) -> Any:
    """Declare an attribute that a function merges, and that is None for no rows."""
    return declared(Sum(None, merge=merge))


def joint(*shape: int | str, dtype: Any = float) -> Any:
    """Declare an attribute, 0 for no rows, that `Sums.merged_jointly` merges with others."""
    return declared(Sum(0, shape, dtype, None))


class _Parts(Sum):
    """A tuple of `Sums`, which whoever makes the object gives."""

    def zero(self, holder: Any, name: str) -> Any:
        return tuple(part.zero() for part in getattr(holder, name))

    def detached(self, value: Any) -> Any:
        return [part.detached() for part in value]

    def attached(self, holder: Any, name: str, value: Any) -> Any:
        pairs = zip(getattr(holder, name), value, strict=True)
        return tuple(part.attached(sums) for part, sums in pairs)


def parts() -> Any:
    """Declare a parameter that is a tuple of `Sums`, which merge one by one."""

    def merge(mine: Any, theirs: Any) -> Any:
        return tuple(one.merge(other) for one, other in zip(mine, theirs, strict=True))

    return field(metadata={"sum": _Parts(merge=merge)})


@dataclass(frozen=True)
class _Part(Sum):
    """One object of `Sums`, made of parameters of its holder."""

    of: Callable[[Any], Sums] = None  # type: ignore[assignment]  # after fields with defaults

    def zero(self, holder: Any, name: str) -> Any:  # noqa: ARG002
        return self.of(holder)

    def detached(self, value: Any) -> Any:
        return value.detached()

    def attached(self, holder: Any, name: str, value: Any) -> Any:
        return getattr(holder, name).attached(value)


def part(of: Callable[[Any], Sums]) -> Any:
    """Declare an attribute that has sums of its own, which a function of its holder makes."""
    return declared(_Part(merge=lambda mine, theirs: mine.merge(theirs), of=of))


@cache
def _sums_of(kind: type) -> dict[str, Sum]:
    found = {each.name: each.metadata["sum"] for each in fields(kind) if "sum" in each.metadata}
    if not found:
        raise ParameterError(
            f"{kind.__name__} declares no sums, so nothing of it would be merged; declare them by "
            f"total, minimum, maximum, concatenated, merged_by or part."
        )
    return found


@dataclass_transform(eq_default=False)
class Sums(ABC):  # noqa: B024  subclasses have what adds rows
    """An element of a commutative monoid: parameters, and declared sums over rows.

    Every subclass is made a dataclass.  Its fields are its parameters, and the sums that `total`,
    `minimum`, `maximum`, `concatenated`, `part` and their like declare.
    """

    # Lent for updates, by one thread at a time; without it every update takes its own.
    scratch: Scratch | None = None
    # Whether another object holds these sums too, so that they are copied before they change.
    shared: bool = False

    def __init_subclass__(cls) -> None:
        dataclass(eq=False, repr=False)(cls)

    def __post_init__(self) -> None:
        for name, each in _sums_of(type(self)).items():
            if name not in vars(self):
                setattr(self, name, each.zero(self, name))

    def zero(self) -> Self:
        """Return the sums over no rows, with the same parameters."""
        return self._with({n: each.zero(self, n) for n, each in _sums_of(type(self)).items()})

    def merge(self, other: Self) -> Self:
        """Return the sums over both sets of rows, leaving the two as they are."""
        return self._with(self.merged(other))

    def merged(self, other: Self) -> dict[str, Any]:
        """Return the sums over both sets of rows by name."""
        other = self.compatible(other)
        with np.errstate(over="ignore", invalid="ignore"):  # looked for in the sums
            sums = {
                name: each.merge(getattr(self, name), getattr(other, name))
                for name, each in _sums_of(type(self)).items()
                if each.merge is not None
            }
            return sums | self.merged_jointly(other)

    def compatible(self, other: Self) -> Self:
        """Return what `merge` adds in the place of `other`; raise if they do not go together."""
        return other

    def merged_jointly(self, other: Self) -> dict[str, Any]:  # noqa: ARG002  of those that have some
        """Return the `joint` sums over both sets of rows by name."""
        return {}

    def detached(self) -> Any:
        """Return the sums by name, or the only one: what travels and is saved."""
        ways = _sums_of(type(self))
        sums = {name: way.detached(getattr(self, name)) for name, way in ways.items()}
        return sums.popitem()[1] if len(sums) == 1 else sums

    def attached(self, sums: Any) -> Self:
        """Return the sums that `detached` gave, with the parameters of this object."""
        ways = _sums_of(type(self))
        named = dict.fromkeys(ways, sums) if len(ways) == 1 else sums
        return self._with(
            {name: way.attached(self, name, named[name]) for name, way in ways.items()}
        )

    def _with(self, sums: dict[str, Any]) -> Self:
        other = copy(self)
        vars(other).update(sums)
        for lent in ("scratch", "shared"):
            vars(other).pop(lent, None)
        return other


class Work(NamedTuple):
    """The arithmetic of a statistic: a multiplication and an addition are two operations."""

    flops_per_row: float
    order: int
    dtype: str

    def attainable(self, threads: int) -> float:
        """Measure, once a process, the operations a second of products with these BLAS threads."""
        return _measured(min(self.order, _COLUMNS), self.dtype, threads)


@cache
def _measured(order: int, dtype: str, threads: int) -> float:  # noqa: ARG001  told apart by it
    features = np.random.default_rng(0).random((_ROWS, order)).astype(dtype)
    product = np.empty((order, order), dtype)
    best = np.inf
    for _ in range(_TIMES):
        begun = time.perf_counter()
        np.matmul(features.T, features, out=product)  # which NumPy takes for the symmetric product
        best = min(best, time.perf_counter() - begun)
    return _ROWS * order * (order + 1) / best


class Statistic(Sums):
    """What one pass reduces the rows to: parameters, declared sums, and `update`.

    The result must not depend, beyond rounding, on how the rows were cut into blocks, nor on the
    order of the merges.

    Examples
    --------
    >>> class LargeTargets(Statistic):
    ...     threshold: float
    ...     n_above: int = total(dtype=int)
    ...     largest: float = maximum()
    ...
    ...     def update(self, blocks):
    ...         for block in blocks:
    ...             self.n_above += int((block.y > self.threshold).sum())
    ...             self.largest = max(self.largest, float(block.y.max()))
    """

    @property
    def work(self) -> Work | None:
        """The arithmetic of an update; None where hardly any of it is products."""
        return None

    @abstractmethod
    def update(self, blocks: Iterable[Block]) -> None:
        """Add rows, in place.

        A block may be overwritten when the next one is asked for.
        """


class Together(Statistic):
    """Several statistics of the same rows, for one reading."""

    parts: tuple[Statistic, ...] = parts()

    def __init__(self, *parts: Statistic) -> None:
        self.parts = parts

    def update(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            for each in self.parts:
                each.scratch = self.scratch
                each.update([block])
                each.scratch = None
