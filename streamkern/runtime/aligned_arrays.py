"""Arrays that came in a buffer of bytes, moved to where their numbers begin at whole words."""

from __future__ import annotations

from typing import Any

import numpy as np


def aligned(value: Any) -> Any:
    """Return a value with arrays that are aligned in memory, as those of NumPy itself are.

    In what another process sent, or a worker had put on disk, an array may begin at any byte.  Of
    such a one NumPy makes a copy for every product, by rows even where the array is by columns, so
    that sums are in another order: the last bits of a result would depend on where tasks ran.

    Parameters
    ----------
    value : object
        Looked into where it is a list, a tuple, a dictionary or an object of this package; an
        object that holds an array which is not aligned holds a copy from then on.
    """
    return _aligned(value, set())


def _aligned(value: Any, seen: set[int]) -> Any:
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy(order="K")
    if isinstance(value, tuple):
        parts = [_aligned(part, seen) for part in value]
        if all(new is old for new, old in zip(parts, value, strict=True)):
            return value
        return type(value)._make(parts) if hasattr(value, "_make") else tuple(parts)
    inside = _inside(value)
    if inside is not None and id(value) not in seen:
        seen.add(id(value))
        for name, old in inside:
            new = _aligned(old, seen)
            if new is not old:
                (value if isinstance(value, (list, dict)) else vars(value))[name] = new
    return value


def _inside(value: Any) -> list[tuple[Any, Any]] | None:
    """Return what a value holds, by place or name, or None where that is not looked into."""
    if isinstance(value, list):
        return list(enumerate(value))
    if isinstance(value, dict):
        return list(value.items())
    if type(value).__module__.partition(".")[0] == "streamkern" and hasattr(value, "__dict__"):
        return list(vars(value).items())
    return None
