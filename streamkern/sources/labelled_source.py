"""One-vs-rest targets: labels of rows as +1 and -1."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.base import is_dask_collection

from streamkern.errors import DataError
from streamkern.sources.base import Reader, Source
from streamkern.sources.class_labels import UNKNOWN, plain_labels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamkern._typing import Array, Floats
    from streamkern.sources.base import Block, LabelColumn, LabelReader, Segment, Shard
    from streamkern.sources.class_labels import Classes


class LabelledSource(Source):
    """Rows without targets, with labels turned into targets where they are read.

    Targets are (n, K), +1 for the class of a row and -1 for the others; for two classes (n,), +1
    for the second.  A row without a label has targets of NaN, and so is one that is not finite.
    Weights of rows are multiplied by `class_weight` (K,).  `class_counts` (K,) are the rows of each
    class, or their weight, where they were counted.
    """

    class_counts: Floats | None = None

    def __init__(
        self,
        rows: Source,
        labels: LabelColumn,
        classes: Classes,
        class_weight: Floats | None = None,
    ) -> None:
        for name in Source.__annotations__:
            setattr(self, name, getattr(rows, name))
        self.rows = rows
        self.labels = labels
        self.classes = classes
        self.class_weight = class_weight
        self.n_targets = classes.n_targets
        self.target_ndim = 1 if classes.n_targets == 1 else 2
        if class_weight is not None:
            self.weighted_by = rows.weighted_by or "class_weight"

    def segments(self) -> list[Segment]:
        """Return where the rows may be cut."""
        return self.rows.segments()

    def reader(self, shard: Shard) -> Any:
        """Return a reader of the rows and their labels, or a Dask task that makes one."""
        rows, labels = self.rows.reader(shard), self.labels.reader(shard)
        make: Any = LabelledReader
        if is_dask_collection(rows) or is_dask_collection(labels):
            from dask import delayed  # noqa: PLC0415  slow, and whoever made a task imported it

            make = delayed(make, traverse=False)
        return make(rows, labels, self.classes, self.class_weight, shard.start, shard.n_rows)

    def tolerant(self) -> LabelledSource:
        """Return the same rows, with NaN in the place of what cannot be read."""
        rows, labels = self.rows.tolerant(), self.labels.tolerant()
        return LabelledSource(rows, labels, self.classes, self.class_weight)

    def check_unchanged(self) -> None:
        """Raise DataError if the rows are known not to be what they were."""
        self.rows.check_unchanged()

    def locate(self, row: int) -> str:
        """Say in words where a row is."""
        return self.rows.locate(row)

    def describe(self) -> dict[str, Any]:
        """Return where the rows and the labels are, the classes and their weights."""
        weights = None if self.class_weight is None else self.class_weight.tolist()
        described = {"classes": self.classes.as_dict(), "class_weight": weights}
        return self.rows.describe() | self.labels.describe() | described

    def token(self) -> str | None:
        """Return what stands for all values, or None where reading them all takes too long."""
        tokens = self.rows.token(), self.labels.token()
        return None if None in tokens else " ".join(map(str, tokens))

    def bad_rows_error(self, n_bad: int, first: int, counts: Any = ()) -> DataError:
        """Return the error that says which rows are not finite, or have no label."""
        return DataError(
            f"{n_bad:,} of {self.n_samples:,} rows have no label, or hold NaN or infinite values"
            f"{self._bad_rows_end(first, counts[: self.n_features])}"
        )

    def constant_targets_error(self, targets: Floats) -> DataError:
        """Return the error that says that every row that weighs anything is of one class."""
        code = int(targets[0] > 0) if len(targets) == 1 else int(targets.argmax())
        label = self.classes.values[code].item()
        return DataError(
            f"every row that weighs anything is of the class {label!r}, but a classifier needs at "
            f"least two classes; check labels and weights."
        )


@dataclass(frozen=True)
class LabelledReader(Reader):
    """Reads rows with one reader, and their labels with another."""

    rows: Reader
    labels: LabelReader
    classes: Classes
    class_weight: Floats | None
    start: int
    n_rows: int

    def blocks(self, n_rows: int) -> Iterator[Block]:
        """Yield the shard's rows in order, with targets."""
        codes = self.codes()
        for block in self.rows.blocks(n_rows):
            mine = codes[block.places() - self.start]
            weights = block.weights
            if self.class_weight is not None:  # 1 for a row without a label
                weighed = np.where(mine >= 0, self.class_weight[mine], 1.0)
                weights = weighed if weights is None else weights * weighed
            yield replace(block, y=self.classes.targets(mine), weights=weights)

    def codes(self) -> Array:
        """Return the place of every label of the shard among the classes, (rows,)."""
        found, done = [], self.start
        for labels in self.labels.parts():
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
