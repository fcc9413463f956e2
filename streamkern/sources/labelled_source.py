"""One-vs-rest targets: labels of rows, in memory or lazy, as +1 and -1."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dask import delayed
from dask.base import is_dask_collection, tokenize

from streamkern._typing import Array, Floats
from streamkern.errors import DataError
from streamkern.sources.base import Block, Reader, Segment, Shard, Source
from streamkern.sources.class_labels import UNKNOWN, Classes, plain_labels
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
        return delayed(in_parts)(tasks_of(self.labels, shard))

    def token(self) -> str:
        return str(tokenize(self.labels))


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


class LabelledSource(Source):
    """Rows without targets, with labels turned into targets where they are read.

    Targets are those of `Classes.targets`; a row without a label is one that is not finite.
    Weights of rows are multiplied by `class_weight` (K,).
    """

    class_counts: Floats | None = None  # (K,), rows of each class or their weight, where counted

    def __init__(
        self,
        rows: Source,
        labels: LabelColumn,
        classes: Classes,
        class_weight: Floats | None = None,
    ) -> None:
        for name in Source.__annotations__:
            setattr(self, name, getattr(rows, name))
        self.rows, self.labels = rows, labels
        self.classes, self.class_weight = classes, class_weight
        self.missing_labels = "have no label, or hold NaN or infinite values"
        self.n_targets = classes.n_targets
        self.target_ndim = 1 if classes.n_targets == 1 else 2
        if class_weight is not None:
            self.weighted_by = rows.weighted_by or "class_weight"

    def segments(self) -> list[Segment]:
        return self.rows.segments()

    def reader(self, shard: Shard) -> Any:
        rows, labels = self.rows.reader(shard), self.labels.reader(shard)
        make: Any = LabelledReader
        if is_dask_collection(rows) or is_dask_collection(labels):
            make = delayed(make, traverse=False)
        return make(rows, labels, self.classes, self.class_weight, shard.start, shard.n_rows)

    def skip_invalid(self) -> "LabelledSource":
        rows, labels = self.rows.skip_invalid(), self.labels.skip_invalid()
        return LabelledSource(rows, labels, self.classes, self.class_weight)

    def check_unchanged(self) -> None:
        self.rows.check_unchanged()

    def column(self, name: str) -> LabelColumn:
        return self.rows.column(name)

    def locate(self, row: int) -> str:
        return self.rows.locate(row)

    def describe(self) -> dict[str, Any]:
        weights = None if self.class_weight is None else self.class_weight.tolist()
        classes = {"classes": self.classes.as_dict(), "class_weight": weights}
        return self.rows.describe() | self.labels.describe() | classes

    def token(self) -> str | None:
        tokens = self.rows.token(), self.labels.token()
        return None if None in tokens else " ".join(map(str, tokens))

    def constant_targets_error(self, targets: Floats) -> DataError:
        code = int(targets[0] > 0) if len(targets) == 1 else int(targets.argmax())
        label = self.classes.values[code].item()
        return DataError(
            f"every row that weighs anything is of the class {label!r}, but a classifier needs at "
            f"least two classes; check labels and weights."
        )


@dataclass(frozen=True)
class LabelledReader(Reader):
    rows: Reader
    labels: Iterable[Any]
    classes: Classes
    class_weight: Floats | None
    start: int
    n_rows: int

    def blocks(self, n_rows: int) -> Iterator[Block]:
        codes = self.codes()
        for block in self.rows.blocks(n_rows):
            mine = codes[block.places() - self.start]
            weights = block.weights
            if self.class_weight is not None:  # 1 for a row without a label
                weighed = np.where(mine >= 0, self.class_weight[mine], 1.0)
                weights = weighed if weights is None else weights * weighed
            yield replace(block, y=self.classes.targets(mine), weights=weights)

    def codes(self) -> Array:
        found, done = [], self.start
        for labels in self.labels:
            codes = self.classes.codes(labels)
            strange = np.flatnonzero(codes == UNKNOWN)
            if len(strange):
                label = plain_labels(labels)[0][strange[0]].item()
                raise DataError(
                    f"row {done + strange[0]:,} has the label {label!r}, which is none of the "
                    f"{len(self.classes)} classes {self.classes}; leave such rows out, or fit with "
                    f"all classes."
                )
            found.append(codes)
            done += len(codes)
        codes = np.concatenate(found)
        if len(codes) != self.n_rows:
            raise DataError(
                f"{self.n_rows:,} rows from {self.start:,} on have {len(codes):,} labels; give "
                f"each row one."
            )
        return codes
