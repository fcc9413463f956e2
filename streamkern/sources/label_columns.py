"""Labels in memory, or in chunks of a Dask array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.base import tokenize

from streamkern.sources.base import LabelColumn, LabelReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streamkern._typing import Array
    from streamkern.sources.base import Shard

# Labels that are held at a time before they are codes.
LABELS_AT_ONCE = 1 << 15


@dataclass(frozen=True)
class LabelsInMemory(LabelReader):
    """Labels of one shard that are already in memory."""

    arrays: Sequence[Any]

    def parts(self) -> Iterator[Array]:
        """Yield them some at a time."""
        for array in self.arrays:
            for start in range(0, len(array), LABELS_AT_ONCE):
                yield np.asarray(array[start : start + LABELS_AT_ONCE])


class ArrayLabels(LabelColumn):
    """Labels (n,) of a NumPy array, or of a Dask array with the chunks of its rows."""

    def __init__(self, labels: Any) -> None:
        self.labels = labels

    def reader(self, shard: Shard) -> Any:
        """Return the shard's labels, or a Dask task that makes a reader of its chunks."""
        if isinstance(self.labels, np.ndarray):
            return LabelsInMemory((self.labels[shard.start : shard.stop],))
        from dask import delayed  # noqa: PLC0415  slow, and the array has already imported it

        chunks = self.labels.blocks[chunks_of(self.labels, shard)]
        return delayed(LabelsInMemory)(chunks.to_delayed(optimize_graph=False).ravel().tolist())

    def token(self) -> str:
        """Return a hash of all labels, or of the graph that computes them."""
        return str(tokenize(self.labels))


def chunks_of(array: Any, shard: Shard) -> slice:
    """Return which chunks of rows of a Dask array begin in a shard."""
    starts = np.cumsum((0, *array.chunks[0]))[:-1]
    inside = np.flatnonzero((starts >= shard.start) & (starts < shard.stop))
    return slice(int(inside[0]), int(inside[-1]) + 1)
