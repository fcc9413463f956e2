"""Working memory that is taken once, since new memory costs as much as writing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from streamkern._typing import Array


class Scratch:
    """Arrays by name, of one thread at a time; whoever is lent none makes one of its own."""

    def __init__(self) -> None:
        self._held: dict[str, Array] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return an array with any values, the same memory as under this name before if it fits."""
        size = int(np.prod(shape))
        held = self._held.get(name)
        if held is None or held.dtype != dtype or held.size < size:
            held = self._held[name] = np.empty(size, dtype=dtype)
        return held[:size].reshape(shape)
