"""Columns of labels: one value a row, of any kind, in memory or lazy."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkern._typing import Array
from streamkern.runtime.resources import dask
from streamkern.sources.base import Shard
from streamkern.sources.containers import unwrapped

# Labels that are held at a time before they are codes.
LABELS_AT_ONCE = 1 << 15


class LabelColumn(ABC):
    """One label a row, of any kind."""

    @abstractmethod
    def reader(self, shard: Shard) -> Any:
        """Return the labels of a shard, an iterable of arrays, or a Dask task that makes one."""

    def skip_invalid(self) -> "LabelColumn":
        """Return the same labels, with None for those that are stored but cannot be read."""
        return self

    def token(self) -> str | None:
        """Return what stands for all values, or None where reading them all takes too long."""
        return None

    def describe(self) -> dict[str, Any]:
        """Return where the labels are, as plain JSON values."""
        return {}


@dataclass(frozen=True)
class ArrayLabels(LabelColumn):
    """Labels (n,) of a NumPy array, or of a Dask array with the chunks of its rows."""

    labels: Any

    def reader(self, shard: Shard) -> Any:
        if isinstance(self.labels, np.ndarray):
            return in_parts([self.labels[shard.start : shard.stop]])
        return dask.delayed(in_parts)(tasks_of(self.labels, shard))

    def token(self) -> str:
        return str(dask.base.tokenize(self.labels))


def in_parts(arrays: Iterable[Any]) -> list[Array]:
    return [
        np.asarray(unwrapped("y", part) if np.ma.isMaskedArray(part) else part)
        for array in arrays
        for start in range(0, len(array), LABELS_AT_ONCE)
        for part in [array[start : start + LABELS_AT_ONCE]]
    ]


def tasks_of(array: Any, shard: Shard) -> list[Any]:
    """Return the tasks of the chunks of a Dask array that begin in a shard."""
    starts = np.cumsum((0, *array.chunks[0]))[:-1]
    inside = np.flatnonzero((starts >= shard.start) & (starts < shard.stop))
    chunks = array.blocks[int(inside[0]) : int(inside[-1]) + 1]
    # Optimised one by one they would not share what they are made of.
    return chunks.to_delayed(optimize_graph=False).ravel().tolist()
