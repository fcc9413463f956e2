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
# Of an attribute that is read.
_MOST_BYTES = 4096


class MissingValues(NamedTuple):
    """What is missing of the numbers of one dataset, and how many there are without a sign."""

    equal_to: list[float]
    least: float
    most: float
    modulus: float  # 0 where signs count

    def mark(self, values: Array) -> None:
        """Put NaN in the place of what is missing, in floats as they were read."""
        if self.modulus:
            np.mod(values, self.modulus, out=values)
        gone = (values < self.least) | (values > self.most)
        with np.errstate(over="ignore"):
            for each in self.equal_to:
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

    Raises DataError if the numbers are packed, or an attribute may name a number and cannot be
    read as one.
    """
    if not len(dataset.attrs) or dataset.dtype.kind not in "fiu":
        return None
    packed = [each for each, usual in _PACKING.items() if (_numbers(dataset, each) != usual).any()]
    is_unsigned = False
    if dataset.dtype.kind != "f" and "_Unsigned" in dataset.attrs:
        said = [bytes(each).lower() for each in _values(dataset, "_Unsigned", "S")]
        is_unsigned = said == [b"true"]
        if not is_unsigned and (said != [b"false"] or dataset.dtype.kind == "u"):
            packed.append("_Unsigned")
    if packed:
        raise DataError(
            f"{name} holds no plain numbers, by its attribute {packed[0]}; write those that they "
            f"stand for, with NaN where one is missing."
        )
    modulus = 2.0 ** (8 * dataset.dtype.itemsize) * (is_unsigned and dataset.dtype.kind == "i")

    def numbers(*attributes: str) -> list[float]:
        found = np.concatenate([_numbers(dataset, attribute) for attribute in attributes])
        if dataset.dtype.kind == "f":  # rounded as the values are
            with np.errstate(over="ignore"):
                found = found.astype(dataset.dtype).astype(np.float64)
        return (np.mod(found, modulus) if modulus else found)[~np.isnan(found)].tolist()

    equal_to = numbers("_FillValue", "missing_value")
    least = min(numbers("valid_min", "valid_range"), default=-np.inf)
    most = max(numbers("valid_max", "valid_range"), default=np.inf)
    if not (equal_to or modulus or np.isfinite(least) or np.isfinite(most)):
        return None
    return MissingValues(equal_to, least, most, modulus)


def _numbers(dataset: h5py.Dataset, name: str) -> Array:
    """Return what an attribute holds, as numbers; text without a digit, as 'none', names none."""
    texts = [bytes(each).decode("latin-1") for each in _values(dataset, name, "S")]
    what = ""
    if name in dataset.attrs and dataset.attrs.get_id(name).dtype.kind == "O":
        what = "text of variable length"
    try:
        found = [float(each) for each in texts if any(letter.isdigit() for letter in each)]
    except ValueError as error:
        found, what = [], str(error)
    if what:
        raise DataError(
            f"{dataset.name} has an attribute {name} that cannot be read as a number ({what}); "
            f"write the number itself."
        )
    return np.append(found, _values(dataset, name, "fiu")).astype(np.float64)


def _values(dataset: h5py.Dataset, name: str, kinds: str) -> Array:
    """Return what an attribute holds if it is small, of these kinds, and not kept in a heap."""
    attribute = dataset.attrs.get_id(name) if name in dataset.attrs else None
    if attribute is None or attribute.shape is None or attribute.dtype.kind not in kinds:
        return np.empty(0)
    is_small = attribute.get_storage_size() <= _MOST_BYTES
    return np.ravel(dataset.attrs[name]) if is_small else np.empty(0)
