"""Tables as arrays of numbers: truth values are 0 and 1, and columns of many types have one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamkern._typing import Array


def as_table(name: str, values: Any) -> Array:
    """Return rows in memory as an array whose truth values are numbers."""
    if type(values).__module__.startswith("pandas") and values.ndim == 2:
        values = in_one_type(name, values)
    table: Array = as_numbers(np.asarray(values))
    return table


def as_numbers(array: Any) -> Any:
    """Return truth values of an array, of NumPy or Dask, as 0 and 1, and others as they are."""
    return array.astype(np.uint8) if array.dtype.kind == "b" else array


def in_one_type(name: str, frame: Any) -> Any:
    """Return a data frame or series, of pandas or Dask, as numbers of one type of NumPy."""
    # Columns may share a name.
    types = list(frame.dtypes.items()) if frame.ndim == 2 else [(frame.name, frame.dtype)]
    others = [str(column) for column, dtype in types if dtype.kind not in "fiub"]
    if others:
        raise DataError(
            f"{name} must hold numbers only, but the column{'s' * (len(others) > 1)} "
            f"{', '.join(others[:10])} do{'es' * (len(others) == 1)} not; encode or "
            f"leave out, compute() a frame that fits in memory, or convert its files."
        )
    kinds = _number_types(dtype for _, dtype in types)
    return frame.astype(np.result_type(*kinds)) if types else frame


def _number_types(types: Any) -> Iterator[np.dtype[Any]]:
    """Yield types of NumPy that hold what columns of a data frame do."""
    for dtype in types:
        if not isinstance(dtype, np.dtype):
            yield np.dtype(np.float64)  # values may be missing
        else:
            yield np.dtype(np.uint8) if dtype.kind == "b" else dtype
