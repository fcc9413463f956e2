"""One-vs-rest targets: labels of rows, in memory or lazy, as +1 and -1."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import DataError
from streamkern.extensions.classes.class_labels import UNKNOWN, Classes, plain_labels
from streamkern.sources import Block, Source, labelled_rows
from streamkern.sources.label_columns import LabelColumn
from streamkern.sources.rows_beside import Joining, RowsBeside
from streamkern.sources.target_encoding import TargetEncoding


@dataclass(frozen=True)
class KnownClasses(TargetEncoding, Joining):
    """The classes of rows, and what weights of rows of each are multiplied by, (K,)."""

    classes: Classes
    factors: Floats | None = None

    reads_labels = True

    def source(self, X: Any, y: Any = None, sample_weight: Any = None) -> "LabelledSource":
        return LabelledSource(*labelled_rows(X, y, sample_weight), self)

    def values(self, part: Array, start: int) -> Array:
        codes = self.classes.codes(part)
        strange = np.flatnonzero(codes == UNKNOWN)
        if len(strange):
            label = plain_labels(part)[0][strange[0]].item()
            raise DataError(
                f"row {start + strange[0]:,} has the label {label!r}, which is none of the "
                f"{len(self.classes)} classes {self.classes}; leave such rows out, or fit with all "
                f"classes."
            )
        return codes

    def joined(self, block: Block, values: Array) -> Block:
        weights = block.weights
        if self.factors is not None:  # 1 for a row without a label
            weighed = np.where(values >= 0, self.factors[values], 1.0)
            weights = weighed if weights is None else weights * weighed
        return replace(block, y=self.classes.targets(values), weights=weights)

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


class LabelledSource(RowsBeside):
    """Rows without targets, with labels turned into targets where they are read.

    Targets are those of `Classes.targets`; a row without a label is one that is not finite.
    """

    encoding: KnownClasses
    class_counts: Floats | None = None  # (K,), rows of each class or their weight, where counted

    def __init__(self, rows: Source, labels: LabelColumn, encoding: KnownClasses) -> None:
        super().__init__(rows, labels)
        self.encoding = self.joining = encoding
        self.missing_labels = "have no label, or hold NaN or infinite values"
        self.n_targets = encoding.classes.n_targets
        self.target_ndim = 1 if self.n_targets == 1 else 2
        if encoding.factors is not None:
            self.weighted_by = rows.weighted_by or "class_weight"

    def describe(self) -> dict[str, Any]:
        facts = self.encoding.facts()
        classes = {"classes": facts["classes"], "class_weight": facts["class_factors"]}
        return self.rows.describe() | self.beside.describe() | classes

    def constant_targets_error(self, targets: Floats) -> DataError:
        code = int(targets[0] > 0) if len(targets) == 1 else int(targets.argmax())
        label = self.encoding.classes.values[code].item()
        return DataError(
            f"every row that weighs anything is of the class {label!r}, but a classifier needs at "
            f"least two classes; check labels and weights."
        )
