"""One-vs-rest targets: labels of rows, in memory or lazy, as +1 and -1."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from dask import delayed
from dask.base import is_dask_collection

from streamkern._typing import Array, Floats
from streamkern.errors import DataError
from streamkern.extensions.classes.class_labels import UNKNOWN, Classes, plain_labels
from streamkern.sources import Block, Reader, Shard, Source, labelled_rows
from streamkern.sources.base import Segment
from streamkern.sources.label_columns import LabelColumn
from streamkern.sources.target_encoding import TargetEncoding


@dataclass(frozen=True)
class KnownClasses(TargetEncoding):
    """The classes of rows, and what weights of rows of each are multiplied by, (K,)."""

    classes: Classes
    factors: Floats | None = None

    reads_labels = True

    def source(self, X: Any, y: Any = None, sample_weight: Any = None) -> "LabelledSource":
        return LabelledSource(*labelled_rows(X, y, sample_weight), self)

    def facts(self) -> dict[str, Any]:
        factors = None if self.factors is None else self.factors.tolist()
        return {"classes": self.classes.as_dict(), "class_factors": factors}

    def traits(self) -> Iterator[str]:
        told = self.facts()
        yield f"the classes {', '.join(map(repr, told['classes']['values']))}"
        yield f"classes that weigh {told['class_factors'] or 'the same'}"

    @classmethod
    def restored(cls, facts: Mapping[str, Any]) -> Self:
        """Return what these `facts` are of; errors are those of `WRONG_VALUES`."""
        classes, factors = Classes.from_dict(facts["classes"]), facts["class_factors"]
        if factors is None:
            return cls(classes)
        found = np.array(factors, dtype=np.float64)
        if found.shape != (len(classes),) or not (np.isfinite(found) & (found >= 0)).all():
            raise ValueError(f"weights of shape {found.shape} for {len(classes)} classes")
        return cls(classes, found)


class LabelledSource(Source):
    """Rows without targets, with labels turned into targets where they are read.

    Targets are those of `Classes.targets`; a row without a label is one that is not finite.
    """

    encoding: KnownClasses
    class_counts: Floats | None = None  # (K,), rows of each class or their weight, where counted

    def __init__(self, rows: Source, labels: LabelColumn, encoding: KnownClasses) -> None:
        for name in Source.__annotations__:
            setattr(self, name, getattr(rows, name))
        self.rows, self.labels, self.encoding = rows, labels, encoding
        self.rounding = rows.rounding  # which need not be that of the dtype
        self.missing_labels = "have no label, or hold NaN or infinite values"
        self.n_targets = encoding.classes.n_targets
        self.target_ndim = 1 if self.n_targets == 1 else 2
        if encoding.factors is not None:
            self.weighted_by = rows.weighted_by or "class_weight"

    def segments(self) -> list[Segment]:
        return self.rows.segments()

    def reader(self, shard: Shard) -> Any:
        rows, labels = self.rows.reader(shard), self.labels.reader(shard)
        make: Any = LabelledReader
        if is_dask_collection(rows) or is_dask_collection(labels):
            make = delayed(make, traverse=False)
        return make(rows, labels, self.encoding, shard.start, shard.n_rows)

    def skip_invalid(self) -> "LabelledSource":
        rows, labels = self.rows.skip_invalid(), self.labels.skip_invalid()
        return LabelledSource(rows, labels, self.encoding)

    def check_unchanged(self) -> None:
        self.rows.check_unchanged()

    def column(self, name: str) -> LabelColumn:
        return self.rows.column(name)

    def take_note(self, noted: Mapping[Any, int]) -> None:
        self.rows.take_note(noted)

    def locate(self, row: int) -> str:
        return self.rows.locate(row)

    def describe(self) -> dict[str, Any]:
        facts = self.encoding.facts()
        classes = {"classes": facts["classes"], "class_weight": facts["class_factors"]}
        return self.rows.describe() | self.labels.describe() | classes

    def token(self) -> str | None:
        tokens = self.rows.token(), self.labels.token()
        return None if None in tokens else " ".join(map(str, tokens))

    def constant_targets_error(self, targets: Floats) -> DataError:
        code = int(targets[0] > 0) if len(targets) == 1 else int(targets.argmax())
        label = self.encoding.classes.values[code].item()
        return DataError(
            f"every row that weighs anything is of the class {label!r}, but a classifier needs at "
            f"least two classes; check labels and weights."
        )


@dataclass(frozen=True)
class LabelledReader(Reader):
    rows: Reader
    labels: Iterable[Any]
    encoding: KnownClasses
    start: int
    n_rows: int

    @property
    def noted(self) -> Any:
        return self.rows.noted

    def blocks(self, n_rows: int) -> Iterator[Block]:
        codes, (classes, factors) = self.codes(), (self.encoding.classes, self.encoding.factors)
        for block in self.rows.blocks(n_rows):
            mine = codes[block.places() - self.start]
            weights = block.weights
            if factors is not None:  # 1 for a row without a label
                weighed = np.where(mine >= 0, factors[mine], 1.0)
                weights = weighed if weights is None else weights * weighed
            yield replace(block, y=classes.targets(mine), weights=weights)

    def codes(self) -> Array:
        found, done, classes = [], self.start, self.encoding.classes
        for labels in self.labels:
            codes = classes.codes(labels)
            strange = np.flatnonzero(codes == UNKNOWN)
            if len(strange):
                label = plain_labels(labels)[0][strange[0]].item()
                raise DataError(
                    f"row {done + strange[0]:,} has the label {label!r}, which is none of the "
                    f"{len(classes)} classes {classes}; leave such rows out, or fit with "
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
