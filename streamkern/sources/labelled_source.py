"""Rows with labels, as targets of +1 and -1: one class against the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.errors import DataError
from streamkern.sources.arrays import made_of
from streamkern.sources.base import Reader
from streamkern.sources.class_labels import UNKNOWN, plain_labels
from streamkern.sources.derived_rows import DerivedSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamkern._typing import Array, Floats
    from streamkern.sources.base import Block, Shard, Source
    from streamkern.sources.class_labels import Classes
    from streamkern.sources.label_columns import LabelColumn, LabelReader


class LabelledSource(DerivedSource):
    """Rows with labels turned into targets where they are read.

    Targets are (n, K), +1 for the class of a row and -1 for the others; for two classes (n,), +1
    for the second.  A row without a label has targets of NaN, and so is one that is not finite.
    """

    def __init__(
        self,
        rows: Source,
        labels: LabelColumn,
        classes: Classes,
        class_weight: Floats | None = None,
    ) -> None:
        super().__init__(rows)
        self.labels = labels
        self.classes = classes
        self.class_weight = class_weight
        self.n_targets = classes.n_targets
        self.target_ndim = 1 if classes.n_targets == 1 else 2
        if class_weight is not None:
            self.weighted_by = rows.weighted_by or "class_weight"

    def of(self, rows: Source) -> LabelledSource:
        """Return other rows with these labels."""
        return LabelledSource(rows, self.labels, self.classes, self.class_weight)

    def weighted(self, class_weight: Floats | None) -> LabelledSource:
        """Return the same rows and labels with other weights of classes."""
        return LabelledSource(self.rows, self.labels, self.classes, class_weight)

    def tolerant(self) -> LabelledSource:
        """Return the same rows, with NaN in the place of what cannot be read."""
        rows, labels = self.rows.tolerant(), self.labels.tolerant()
        return LabelledSource(rows, labels, self.classes, self.class_weight)

    def reader(self, shard: Shard) -> Any:
        """Return a reader of the rows and their labels, or a Dask task that makes one."""
        rows, labels = self.rows.reader(shard), self.labels.reader(shard)
        return made_of(
            LabelledReader, rows, labels, self.classes, self.class_weight, shard.start, shard.n_rows
        )

    def changes(self) -> dict[str, Any]:
        """Return the classes and their weights, and where the labels are."""
        weights = None if self.class_weight is None else self.class_weight.tolist()
        described = {"classes": self.classes.as_dict(), "class_weight": weights}
        return self.labels.describe() | described

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
            yield replace(
                block,
                y=self.classes.targets(mine),
                weights=class_weights(block.weights, mine, self.class_weight),
            )

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


def class_weights(
    weights: Floats | None, codes: Array, class_weight: Floats | None
) -> Floats | None:
    """Return the weights of rows times those of their classes, 1 for a row without a label."""
    if class_weight is None:
        return weights
    mine = np.where(codes >= 0, class_weight[codes], 1.0)
    return mine if weights is None else weights * mine
