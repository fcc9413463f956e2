"""Additive statistics: declared sums, and the zero, the merge and the wire form that follow."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np

from streamkern._docstrings import described
from streamkern._typing import Block
from streamkern.errors import ParameterError
from streamkern.runtime.scratch import Scratch
from streamkern.statistics.declared_sums import Sum, parts
from streamkern.statistics.work import Work

# What methods of sums take and return.
_complete = described("""
other : same class
    Sums over other rows, with the same parameters.
sums : dict or object
    What `detached` returned.
blocks : iterable of Block
    Rows (n, p), with targets (n, q).  A block may be overwritten when the next is asked for.
merged(), merged_jointly(), subtracted() : dict of str to object
n_components : int
    D', how many features; in `solvable` optional, by default all.
intercept : bool
    Whether there is one.
feature_map : FeatureMap
    Of D features.
cross : ndarray of shape (D, q + 1)
shift, feature_shift : ndarray of shape (D,)
    What is subtracted from features, in the units of `FeatureMap.evaluate`.
target_shift, target_unit : ndarray of shape (q,)
    What is subtracted from targets, and what they are then divided by.
turns : ndarray of shape (D / 2,)
    Angles, in radians.
values : ndarray of shape (n, p + q)
    Of rows; overwritten.
weights : ndarray of shape (n,), optional
    Of the rows; by default 1.
places : ndarray of int, of shape (n,)
    Of the rows in the source.
tolerance : float
    Times the size of a value, what the range of a column may be.
is_finite() : bool
constant() : ndarray of bool, of shape (p + q,)
detached() : dict or object
merging() : same class, or None
centred() : CentredMoments
solvable(), with_gram(), without_gram() : FeatureSums
about(), of_map(), in_double() : Moments
compatible(), Self() : same class
""")
_WAYS_TO_MERGE = (
    *("merge", "merged", "merged_jointly", "compatible", "check_room_for"),
    *("attached", "detached"),
)


@cache
def _sums_of(kind: type) -> dict[str, Sum]:
    found = {each.name: each.metadata["sum"] for each in fields(kind) if "sum" in each.metadata}
    if not found:
        raise ParameterError(
            f"{kind.__name__} declares no sums, so nothing of it would be merged; declare them by "
            f"total, minimum, maximum, concatenated, merged_by or part."
        )
    return found


@_complete
@dataclass_transform(eq_default=False)
class Sums(ABC):  # noqa: B024  subclasses have what adds rows
    """An element of a commutative monoid: parameters, and declared sums over rows.

    Every subclass is made a dataclass.  Its fields are its parameters, and the sums that `total`,
    `minimum`, `maximum`, `concatenated`, `part` and their like declare.

    Attributes
    ----------
    merges_plainly : bool
        Said by a class whose own ways to merge, if any, ask for no parameters but plain ones.
    scratch : Scratch, optional
        Lent for updates, by one thread at a time; without it every update takes its own.
    shared, of_one_pass : bool
        Whether another object holds these sums too, so that they are copied before they change, and
        whether what it merges with is of the same pass, with the same parameters.
    """

    merges_plainly: ClassVar[bool] = False
    scratch: Scratch | None = None
    shared: bool = False
    of_one_pass: bool = False

    def __init_subclass__(cls) -> None:
        dataclass(eq=False, repr=False)(_complete(cls))

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

    def merging(self) -> Self | None:
        """Return what merges the sums of one pass in place of this: its plain parameters alone.

        So it goes with every task, and no worker is asked for a map.  None where a class has a
        merge of its own and does not say of it that it `merges_plainly`.
        """
        for name in _WAYS_TO_MERGE:
            holder = next(kind for kind in type(self).__mro__ if name in vars(kind))
            if holder is not Sums and "merges_plainly" not in vars(holder):
                return None
        light = copy(self)
        vars(light).clear()
        for name, value in vars(self).items():
            held = value if isinstance(value, tuple) else (value,)
            if all(isinstance(each, Sums) for each in held):
                lights = tuple(each.merging() for each in held)
                if None in lights:
                    return None
                setattr(light, name, lights if isinstance(value, tuple) else lights[0])
            elif value is None or isinstance(value, (bool, int, float, str, np.generic)):
                setattr(light, name, value)
        light.of_one_pass = True
        return light

    def merged(self, other: Self) -> dict[str, Any]:
        """Return the sums over both sets of rows by name."""
        if not self.of_one_pass:
            other = self.compatible(other)
        self.check_room_for(other)
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

    @np.errstate(over="ignore", invalid="ignore")
    def subtracted(self, other: Self) -> dict[str, Any]:
        """Return by name the sums over the rows that are not among those of `other`.

        Raises ParameterError if a sum is declared without a subtraction.
        """
        other, ways = self.compatible(other), _sums_of(type(self))
        lasting = [name for name, each in ways.items() if each.subtract is None]
        if lasting:
            raise ParameterError(
                f"rows cannot be removed from {', '.join(lasting)} of {type(self).__name__}; "
                f"declare sums that can be subtracted, by total or merged_by."
            )
        return {
            name: each.subtract(getattr(self, name), getattr(other, name))
            for name, each in ways.items()
            if each.subtract is not None
        }

    def check_room_for(self, other: Self) -> None:  # noqa: B027  most sums hold any rows
        """Raise OverflowedError if sums over both sets of rows would overflow without a trace."""

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
        """Add rows, in place."""


class Composite(Statistic):
    """Several statistics of the same rows, for one reading."""

    parts: tuple[Any, ...] = parts()

    def __init__(self, *parts: Statistic) -> None:
        self.parts = parts

    def update(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            for each in self.parts:
                each.scratch = self.scratch
                each.update([block])
                each.scratch = None
