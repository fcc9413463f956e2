"""Memory of arrays: working memory that is taken once, and alignment of what came as bytes."""

import math
from typing import Any, Self

import numpy as np

from streamkern._typing import Array


class Scratch:
    """Arrays by name, of one thread at a time; whoever is lent none makes one of its own."""

    def __init__(self) -> None:
        # Where features of the rows may be from an earlier pass.
        self.store: Any = None
        self._held: dict[str, Array] = {}
        self._copies: dict[str, tuple[Array, Array]] = {}
        self._parts: dict[str, Self] = {}

    def part(self, name: str) -> Self:
        """Return memory of its own for a part of a computation that uses the same names."""
        return self._parts.setdefault(name, type(self)())

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return an array with any values, the same memory as under this name before if it fits."""
        size = math.prod(shape)
        held = self._held.get(name)
        if held is None or held.dtype != dtype or held.size < size:
            held = self._held[name] = np.empty(size, dtype=dtype)
        return held[:size].reshape(shape)

    def copied(self, name: str, values: Array, dtype: Any) -> Array:
        """Return values in a dtype, copied once as long as they are the same array.

        No other memory has that name.
        """
        known = self._copies.get(name)
        if known is None or known[0] is not values or known[1].dtype != dtype:
            known = self._copies[name] = values, self.array(name, values.shape, dtype)
            known[1][...] = values
        return known[1]


def aligned(value: Any) -> Any:
    """Return a value with arrays that are aligned in memory, as those of NumPy itself are.

    Else the last bits of products would depend on where tasks ran.  Lists, dictionaries and objects
    of this package are changed in place; tuples are replaced.
    """
    return _aligned(value, set())


def _aligned(value: Any, visited: set[int]) -> Any:
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy(order="K")
    if isinstance(value, tuple):
        parts = [_aligned(part, visited) for part in value]
        if all(new is old for new, old in zip(parts, value, strict=True)):
            return value
        return type(value)._make(parts) if hasattr(value, "_make") else tuple(parts)
    holder = _holder_of(value)
    if holder is not None and id(value) not in visited:
        visited.add(id(value))
        items = enumerate(holder) if isinstance(holder, list) else holder.items()
        for place, old in list(items):
            new = _aligned(old, visited)
            if new is not old:
                holder[place] = new
    return value


def _holder_of(value: Any) -> list[Any] | dict[Any, Any] | None:
    """Return the list or dictionary that holds the parts of a value, if it is looked into."""
    if isinstance(value, (list, dict)):
        return value
    is_ours = type(value).__module__.partition(".")[0] == "streamkern"
    return vars(value) if is_ours and hasattr(value, "__dict__") else None
