"""Which numbers of a dataset are missing, by its attributes, as NetCDF has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streamkern._typing import Array
from streamkern.errors import DataError

if TYPE_CHECKING:
    import h5py

# Attributes by which numbers stand for others, and their values where these are themselves.
_PACKING = {"scale_factor": 1, "add_offset": 0}
_MISSING = ("_FillValue", "missing_value")
_LEAST, _MOST = ("valid_min", "valid_range"), ("valid_max", "valid_range")
# Of an attribute that is read.
_MOST_BYTES = 4096


class MissingValues(NamedTuple):
    """What is missing of the numbers of one dataset, and how many there are without a sign."""

    equal_to: Array
    least: float
    most: float
    modulus: float  # 0 where signs count

    def mark(self, values: Array) -> None:
        """Put NaN in the place of what is missing, in floats as they were read."""
        if self.modulus:
            np.mod(values, self.modulus, out=values)
        gone = (values < self.least) | (values > self.most)
        with np.errstate(over="ignore"):
            for each in self.equal_to.tolist():
                gone |= values == each
        values[gone] = np.nan

    def marked_labels(self, labels: Array) -> Array:
        """Return numbers (n,) that are labels, whole ones with None for those that are missing."""
        found = labels.astype(np.float64)
        self.mark(found)
        if labels.dtype.kind == "f":
            return found
        return np.array([None if np.isnan(label) else int(label) for label in found])


def missing_values_of(dataset: h5py.Dataset, name: str) -> MissingValues | None:
    """Return what is missing of a dataset of numbers, None if nothing can be.

    Raises DataError if the numbers are packed.
    """
    if not len(dataset.attrs) or dataset.dtype.kind not in "fiu":
        return None
    for attribute, usual in _PACKING.items():
        if (_numbers(dataset, attribute) != usual).any():
            raise _packed(name, attribute)
    modulus = 2.0 ** (8 * dataset.dtype.itemsize) if _is_unsigned(dataset, name) else 0.0

    def numbers(*attributes: str) -> Array:
        found = np.concatenate([_numbers(dataset, attribute) for attribute in attributes])
        found = found[~np.isnan(found)]
        if dataset.dtype.kind == "f":  # rounded as the values are
            with np.errstate(over="ignore"):
                return found.astype(dataset.dtype).astype(np.float64)
        return np.mod(found, modulus) if modulus else found

    equal_to, least, most = numbers(*_MISSING), numbers(*_LEAST), numbers(*_MOST)
    if not (modulus or len(equal_to) or len(least) or len(most)):
        return None
    return MissingValues(equal_to, min(least, default=-np.inf), max(most, default=np.inf), modulus)


def _is_unsigned(dataset: h5py.Dataset, name: str) -> bool:
    """Say whether signed integers stand for unsigned ones."""
    if "_Unsigned" not in dataset.attrs or dataset.dtype.kind == "f":
        return False
    value = dataset.attrs["_Unsigned"] if _kind(dataset, "_Unsigned") == "S" else None
    said = bytes(value).lower() if isinstance(value, bytes) else b""
    if said not in (b"true", b"false") or (said == b"false" and dataset.dtype.kind == "u"):
        raise _packed(name, "_Unsigned")
    return said == b"true" and dataset.dtype.kind == "i"


def _packed(name: str, attribute: str) -> DataError:
    return DataError(
        f"{name} holds no plain numbers, by its attribute {attribute}; write those that they stand "
        f"for, with NaN where one is missing."
    )


def _numbers(dataset: h5py.Dataset, name: str) -> Array:
    """Return the numbers of an attribute, none where there is none or it holds something else."""
    if name not in dataset.attrs or _kind(dataset, name) not in "fiu":
        return np.empty(0)
    return np.ravel(dataset.attrs[name]).astype(np.float64)


def _kind(dataset: h5py.Dataset, name: str) -> str:
    """Return the kind of an attribute; "O" stands for what is too large, or kept in a heap."""
    attribute = dataset.attrs.get_id(name)
    is_small = attribute.shape is not None and attribute.get_storage_size() <= _MOST_BYTES
    return str(attribute.dtype.kind) if is_small else "O"
