"""Class labels of any kind, and the classes that they name."""

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np

from streamkern._typing import Array
from streamkern.errors import DataError
from streamkern.errors.formatting import listed

# A column of targets each, and a table of their squares.
MOST_CLASSES = 1024
# Codes of labels that are none of the classes.
MISSING, UNKNOWN = -1, -2
_KINDS = {"U": "text", "S": "bytes", "b": "boolean", "i": "integer", "u": "integer", "f": "float"}
# Classes that a sentence names.
_NAMED = 5


@dataclass(frozen=True)
class Classes:
    """Different labels in ascending order, as scikit-learn's `classes_`."""

    values: Array

    @classmethod
    def of(cls, labels: Any) -> Self:
        """Return the classes among labels (n,), without missing ones."""
        values, missing = plain_labels(labels)
        return cls(_check_count(np.unique(values[~missing])))

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Classes) and self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        return hash(self.values.tobytes())

    @property
    def n_targets(self) -> int:
        """The targets that stand for them one against the rest: K, but 1 for two classes."""
        return 1 if len(self) <= 2 else len(self)

    def merge(self, other: Self) -> Self:
        if not len(self):
            return other
        if not len(other):
            return self
        values = _as_kind_of(other.values, self.values)
        return type(self)(_check_count(np.union1d(self.values, values)))

    def codes(self, labels: Any) -> Array:
        """Return the place of every label (n,) among the classes, or `MISSING`, or `UNKNOWN`."""
        values, missing = plain_labels(labels)
        codes = np.full(len(values), MISSING, dtype=np.int32)
        known = ~missing
        if not known.any():
            return codes
        values = _as_kind_of(values[known], self.values)
        places = np.minimum(np.searchsorted(self.values, values), len(self) - 1)
        codes[known] = np.where(self.values[places] == values, places, UNKNOWN)
        return codes

    def targets(self, codes: Array) -> Array:
        """Return +1 for the class of every row and -1 for the others, (n, K); NaN where missing.

        For two classes there is one column, +1 for the second of them.
        """
        if len(self) == 2:
            targets = np.where(codes == 1, 1.0, -1.0)[:, None]
        else:
            targets = np.full((len(codes), len(self)), -1.0)
            there = np.flatnonzero(codes >= 0)
            targets[there, codes[there]] = 1.0
        targets[codes < 0] = np.nan
        return targets

    def as_dict(self) -> dict[str, Any]:
        kind, values = _KINDS[self.values.dtype.kind], self.values.tolist()
        if kind == "bytes":
            values = [value.decode("latin-1") for value in values]
        return {"kind": kind, "values": values}

    @classmethod
    def from_dict(cls, described: dict[str, Any]) -> Self:
        kind, values = described["kind"], described["values"]
        if kind == "bytes":
            values = [value.encode("latin-1") for value in values]
        found = np.asarray(values)
        if found.ndim != 1 or _KINDS.get(found.dtype.kind) != kind:
            raise ValueError(f"classes that are not of the kind {kind!r}")
        if not 2 <= len(found) <= MOST_CLASSES:
            raise ValueError(f"{len(found):,} classes")
        if (found[1:] <= found[:-1]).any():
            raise ValueError("classes that are not in order")
        return cls(found)

    def __str__(self) -> str:
        return named(self.values)


def named(values: Iterable[Any]) -> str:
    plain = [value.item() if hasattr(value, "item") else value for value in values]
    return listed(map(repr, plain), _NAMED)


def plain_labels(labels: Any) -> tuple[Array, Array]:
    """Return labels (n,) in a plain dtype, and which are missing: NaN, None and empty texts."""
    found = np.asarray(labels)
    if found.ndim != 1:
        raise DataError(
            f"labels must have shape (n,), but have {found.shape}; give one label a row."
        )
    missing = np.zeros(len(found), dtype=bool)
    if found.dtype.kind in "OT":
        found, missing = _plain_objects(found.astype(object))
    kind = found.dtype.kind
    if kind not in _KINDS:
        raise DataError(
            f"labels must be text, bytes, booleans, integers or whole floats, but their type is "
            f"{found.dtype}; convert them to one of these, dates to text by astype(str)."
        )
    if kind == "f":
        found = found.astype(np.float64) if found.itemsize > 8 else found  # as files hold them
        missing = missing | np.isnan(found)
        parts = found[~missing & (found != np.floor(found)) | np.isinf(found)]
        if len(parts):
            raise DataError(
                f"labels must be classes, but {parts[0]:g} is no whole number: the target is "
                f"continuous; fit a regression, or cut it into classes."
            )
    elif kind in "US":
        missing = missing | (found == found.dtype.type())
    return found, missing


def _plain_objects(labels: Array) -> tuple[Array, Array]:
    missing = np.array([_is_missing(label) for label in labels], dtype=bool)
    known = labels[~missing].tolist()
    if not known:
        return np.zeros(len(labels), dtype="U1"), np.ones(len(labels), dtype=bool)
    kind = _type_of(known)
    values = np.array(known, dtype=kind)
    found = np.zeros(len(labels), dtype=values.dtype)
    found[~missing] = values
    return found, missing


def _is_missing(label: Any) -> bool:
    # pandas has a missing value of its own, which is not even equal to itself or not.
    return (
        label is None
        or type(label).__name__ == "NAType"
        or (isinstance(label, (float, np.floating)) and bool(np.isnan(label)))
    )


def _type_of(labels: list[Any]) -> str | None:
    """Return the dtype that objects are all of; None for numbers, whose dtype NumPy finds."""
    for a_type, kind in ((str, "U"), (bytes, "S")):
        if all(isinstance(label, a_type) for label in labels):
            return kind
    numbers = [isinstance(label, (Real, np.bool_)) for label in labels]
    flags = [isinstance(label, (bool, np.bool_)) for label in labels]
    if all(numbers) and all(flags) is any(flags):
        return None
    types = sorted({type(label).__name__ for label in labels})
    raise DataError(
        f"labels must be all text, all bytes, all booleans or all numbers, but they are of the "
        f"types {', '.join(types[:4])}; convert them to one of these, dates to text by astype(str)."
    )


def _as_kind_of(values: Array, classes: Array) -> Array:
    """Return labels as the kind of the classes, or raise DataError where that is another."""
    kinds = values.dtype.kind, classes.dtype.kind
    if kinds == ("S", "U"):
        return np.char.decode(values, "utf-8", "replace")
    if kinds == ("U", "S"):
        return np.char.encode(values, "utf-8")
    if (kinds[0] in "US") != (kinds[1] in "US"):
        raise DataError(
            f"the labels are {_KINDS[kinds[0]]}, as {named(values[:1])}, but the classes are "
            f"{_KINDS[kinds[1]]}: {named(classes)}; give labels of that kind."
        )
    return values


def _check_count(values: Array) -> Array:
    if len(values) > MOST_CLASSES:
        raise DataError(
            f"there are more than {MOST_CLASSES:,} different labels, as {named(values[:3])}, and "
            f"each takes a target; fit a regression, or join classes."
        )
    return values
