"""Memory alignment of arrays that came in a buffer of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np


def aligned(value: Any) -> Any:
    """Return a value with arrays that are aligned in memory, as those of NumPy itself are.

    NumPy copies an unaligned array for every product, by rows even where it is by columns, so the
    last bits of a result would depend on where tasks ran.  Lists, dictionaries and objects of this
    package are changed in place; tuples are replaced.
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
