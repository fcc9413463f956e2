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
    """What is missing of the numbers of one dataset."""

    equal_to: list[float]
    least: float
    most: float

    def mark(self, values: Array) -> None:
        """Put NaN in the place of what is missing, in floats as they were read."""
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

    Raises DataError if the numbers are packed or without a sign, or an attribute may name a number
    and is none.
    """
    if not len(dataset.attrs) or dataset.dtype.kind not in "fiu":
        return None
    packed = [each for each, usual in _PACKING.items() if (_numbers(dataset, each) != usual).any()]
    if dataset.dtype.kind != "f" and "_Unsigned" in dataset.attrs:
        is_text = dataset.attrs.get_id("_Unsigned").dtype.kind == "S"
        if not is_text or bytes(np.ravel(dataset.attrs["_Unsigned"])[0]).lower() != b"false":
            packed.append("_Unsigned")
    if packed:
        raise DataError(
            f"{name} holds no plain numbers, by its attribute {packed[0]}; write those that they "
            f"stand for, with NaN where one is missing."
        )

    def numbers(*attributes: str) -> list[float]:
        found = np.concatenate([_numbers(dataset, attribute) for attribute in attributes])
        if dataset.dtype.kind == "f":  # rounded as the values are
            with np.errstate(over="ignore"):
                found = found.astype(dataset.dtype).astype(np.float64)
        return found[~np.isnan(found)].tolist()

    equal_to = numbers("_FillValue", "missing_value")
    least = min(numbers("valid_min", "valid_range"), default=-np.inf)
    most = max(numbers("valid_max", "valid_range"), default=np.inf)
    if not (equal_to or np.isfinite(least) or np.isfinite(most)):
        return None
    return MissingValues(equal_to, least, most)


def _numbers(dataset: h5py.Dataset, name: str) -> Array:
    """Return the numbers of an attribute; a text of one number is that, one without digits none."""
    attribute = dataset.attrs.get_id(name) if name in dataset.attrs else None
    if attribute is None or attribute.shape is None or attribute.get_storage_size() > _MOST_BYTES:
        return np.empty(0)
    if attribute.dtype.kind in "fiu":
        return np.ravel(dataset.attrs[name]).astype(np.float64)
    what = "text of variable length"
    if attribute.dtype.kind == "S":
        texts = [bytes(each).decode("latin-1") for each in np.ravel(dataset.attrs[name])]
        try:
            return np.array([float(each) for each in texts if any(map(str.isdigit, each))])
        except ValueError as error:
            what = str(error)
    elif attribute.dtype.kind != "O":
        return np.empty(0)
    raise DataError(
        f"{dataset.name} has an attribute {name} that cannot be read as a number ({what}); write "
        f"the number itself."
    )
