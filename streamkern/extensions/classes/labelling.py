"""Which classes there are among the labels of rows, and what each of them weighs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from numbers import Real
from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.engine.scheduler import delayed
from streamkern.engine.task_stream import stream
from streamkern.errors import DataError, ParameterError
from streamkern.extensions.classes.class_labels import Classes
from streamkern.extensions.classes.labelled_source import KnownClasses, LabelledSource
from streamkern.parameters.chunking import chunk_sizes
from streamkern.sources import Reader, Source, labelled_rows
from streamkern.sources.label_columns import LabelColumn
from streamkern.sources.nonfinite_rows import finite_rows

_BLOCK_ROWS = 8192


@dataclass(frozen=True)
class ClassCounts:
    """The classes among some labels, with the rows or the weight of each, (K,)."""

    classes: Classes
    weights: Floats

    def merge(self, other: "ClassCounts") -> "ClassCounts":
        classes = self.classes.merge(other.classes)
        weights = np.zeros(len(classes))
        for part in (self, other):
            if len(part.classes):
                weights[classes.codes(part.classes.values)] += part.weights
        return ClassCounts(classes, weights)


def checked_class_weight(class_weight: Any) -> Any:
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return class_weight
    if not isinstance(class_weight, Mapping):
        raise ParameterError(
            f"class_weight must be None, 'balanced' or a dictionary of weights by label, not "
            f"{class_weight!r}; give one of these."
        )
    for label, weight in class_weight.items():
        if not isinstance(weight, Real) or not 0 <= float(weight) < np.inf:
            raise ParameterError(
                f"class_weight must hold non-negative numbers, but has {weight!r} for the class "
                f"{label!r}; correct it."
            )
    return class_weight


def described_class_weight(class_weight: Any) -> Any:
    """Return the option as plain JSON values: a mapping as pairs of label and weight."""
    if class_weight is None or isinstance(class_weight, str):
        return class_weight
    return [[_described(label), float(weight)] for label, weight in class_weight.items()]


def _described(label: Any) -> Any:
    label = label.item() if isinstance(label, np.generic) else label
    return {"bytes": label.decode("latin-1")} if isinstance(label, bytes) else label


def restored_class_weight(described: Any) -> Any:
    """Return the option that `described_class_weight` described, or raise what damage raises."""
    if not isinstance(described, list):
        return checked_class_weight(described)
    weights = {
        each["bytes"].encode("latin-1") if isinstance(each, dict) else each: weight
        for each, weight in described
    }
    return checked_class_weight(weights)


def labelled_source(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    beside: Mapping[str, Any] | None = None,
    *,
    class_weight: Any = None,
    classes: Any = None,
    skip_bad_rows: bool = False,
    remedy: str = "check which dataset holds the labels",
) -> LabelledSource:
    """Return rows with targets that stand for their labels.

    Classes that are not named are found by one reading, and fewer than two refused with a remedy.
    Rows are read too where classes weigh the same, and rows have weights or may be left out.
    """
    checked_class_weight(class_weight)
    rows, labels = labelled_rows(X, y, sample_weight, beside)
    if skip_bad_rows:
        rows, labels = rows.skip_invalid(), labels.skip_invalid()
    in_full = class_weight == "balanced" and (rows.is_weighted or skip_bad_rows)
    if classes is None:
        counts = count_classes(rows, labels, in_full=in_full)
    else:
        counts = ClassCounts(Classes.of(classes), np.empty(0))
    if len(counts.classes) < 2:
        found = f"every label is {counts.classes}" if len(counts.classes) else "no row has a label"
        raise DataError(f"{found}, but a classifier needs at least two classes; {remedy}.")
    known = KnownClasses(counts.classes, weights_of_classes(class_weight, counts))
    source = LabelledSource(rows, labels, known)
    source.class_counts = counts.weights
    return source


def count_classes(rows: Source, labels: LabelColumn, *, in_full: bool = False) -> ClassCounts:
    """Return the classes among labels with their numbers of rows, or weights of rows in full."""
    shard_rows, block_rows = chunk_sizes(rows, 1)
    shards = rows.shards(shard_rows, block_rows)

    def counting(shard: Any) -> Any:
        if in_full:
            readers = rows.reader(shard), labels.reader(shard)
            return delayed(_weighed, *readers, shard.start, name="classes")
        return delayed(_counted, labels.reader(shard), name="classes")

    found: ClassCounts = reduce(ClassCounts.merge, stream(map(counting, shards)))
    rows.check_unchanged()
    return found


def _counted(labels: Iterable[Any]) -> ClassCounts:
    counts = ClassCounts(Classes(np.empty(0)), np.empty(0))
    for part in labels:
        classes = Classes.of(part)
        codes = classes.codes(part)
        weights = np.bincount(codes[codes >= 0], minlength=len(classes)).astype(float)
        counts = counts.merge(ClassCounts(classes, weights))
    return counts


def _weighed(rows: Reader, labels: Iterable[Any], start: int) -> ClassCounts:
    """Add up the weights of the finite rows of a shard, by their labels."""
    classes = _counted(labels).classes
    if not len(classes):
        return ClassCounts(classes, np.empty(0))
    codes = np.concatenate([classes.codes(part) for part in labels])
    weights = np.zeros(len(classes))
    for block in rows.blocks(_BLOCK_ROWS):
        mine = codes[block.start - start :][: len(block)]
        counted = finite_rows(block) & (mine >= 0)
        weights += np.bincount(mine[counted], block.each_weight()[counted], len(classes))
    return ClassCounts(classes, weights)


def weights_of_classes(class_weight: Any, counts: ClassCounts) -> Floats | None:
    """Return what rows of every class are multiplied by, or None where that is 1."""
    if class_weight is None:
        return None
    classes, N = counts.classes, counts.weights
    if not isinstance(class_weight, Mapping):
        return np.where(N > 0, N.sum() / (np.count_nonzero(N) * np.where(N > 0, N, 1.0)), 0.0)
    weights = np.ones(len(classes))
    for label, weight in class_weight.items():
        (code,) = classes.codes(np.array([label]))
        if code < 0:
            raise ParameterError(
                f"class_weight names {label!r}, which is none of the {len(classes)} classes "
                f"{classes}; name one of these."
            )
        weights[code] = weight
    return weights


def weighs_alike(class_weight: Any, known: KnownClasses) -> bool:
    """Say whether rows of known classes may have been weighed as `class_weight` asks."""
    factors = known.factors
    if class_weight == "balanced":  # which follows from the rows
        return factors is not None
    own = weights_of_classes(class_weight, ClassCounts(known.classes, np.empty(0)))
    return np.array_equal([] if factors is None else factors, [] if own is None else own)
