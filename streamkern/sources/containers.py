"""Rows in containers of other libraries: as arrays, Dask collections or tables, and back again.

No library is imported here but by those who hold an object of it.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.errors import DataError
from streamkern.errors.formatting import listed
from streamkern.sources.lazy import stored_array

if TYPE_CHECKING:
    from collections.abc import Callable


def unwrapped(name: str, values: Any) -> Any:
    """Return values without their container: an array, a Dask collection or a table.

    What is lazy stays lazy.  Polars' lazy frames and Arrow's readers are read into memory.  Cells
    that a mask hides are NaN.  DataError says what to give in place of a group, records or times.
    """
    kind = _kind(values)
    if kind in _UNWRAPPED:
        return _UNWRAPPED[kind](name, values)
    return _checked(name, values) if isinstance(values, np.ndarray) else values


def keeps_coordinates(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of rows whose results are DataArrays of xarray where the rows are."""

    @wraps(method)
    def keeping(self: Any, X: Any, *more: Any, **named: Any) -> Any:
        return with_coordinates(method(self, X, *more, **named), X)

    return keeping


def with_coordinates(made: Any, X: Any) -> Any:
    """Return what was made of rows with their dimension and coordinates, if they are xarray's."""
    if _kind(X) not in {"xarray.DataArray", "xarray.Dataset"}:
        return made
    if isinstance(made, tuple):
        return tuple(with_coordinates(each, X) for each in made)
    if not hasattr(made, "ndim") or hasattr(made, "columns"):
        return made
    from xarray import DataArray  # noqa: PLC0415  whoever has rows of it has imported it

    row = next(iter(X.dims))
    coordinates = {key: each for key, each in X.coords.items() if each.dims == (row,)}
    if np.isnan(made.shape[0]):  # of a lazy data frame, whose partitions are the chunks of X
        made = type(made)(made.dask, made.name, (X.chunksizes[row], *made.chunks[1:]), made.dtype)
    dims = [row, *(f"output_{axis}" for axis in range(1, made.ndim))]
    return DataArray(made, coordinates, dims).rename(None)


def _kind(values: Any) -> str:
    """Return the library and name of the first of a type's bases that is known here."""
    names = (
        f"{base.__module__.partition('.')[0]}.{base.__name__}" for base in type(values).__mro__
    )
    return next((name for name in names if name in _UNWRAPPED), "")


def _checked(name: str, values: Any) -> Any:
    """Return an array of NumPy without its mask; refuse one of records or of times."""
    if values.dtype.names:
        raise DataError(
            f"{name} is an array of records, not of numbers; give pandas.DataFrame({name})."
        )
    if values.dtype.kind in "mM":
        raise DataError(
            f"{name} must hold numbers, but its type is {values.dtype}; give a data frame, of "
            f"whose dates inputs are made, or convert it to numbers."
        )
    if not np.ma.is_masked(values):
        return values.data if isinstance(values, np.ma.MaskedArray) else values
    if values.dtype.kind not in "fiub":
        raise DataError(
            f"{name} is a masked array of type {values.dtype} with cells that are missing; fill "
            f"them, or give a data frame."
        )
    return values.astype(np.result_type(values.dtype, np.float16)).filled(np.nan)


def _group(name: str, values: Any) -> Any:
    raise DataError(
        f"{name} is a group, which holds {listed(sorted(map(str, values)))}; give an array of it, "
        f"as group['X']."
    )


def _frame(name: str, values: Any) -> Any:
    """Return variables along one dimension as the columns of a data frame, lazy if they are."""
    others = [key for key, each in values.data_vars.items() if each.ndim != 1]
    if others or len(values.dims) != 1:
        raise DataError(
            f"{name} must be a Dataset of variables along one dimension, but its dimensions are "
            f"{listed(map(str, values.dims))}; give one DataArray, or values.stack(row=[...])."
        )
    columns = list(values.data_vars)
    frame = values.to_dask_dataframe() if values.chunks else values.to_dataframe()
    return frame[columns]


# How types are unwrapped.
_UNWRAPPED: dict[str, Callable[[str, Any], Any]] = {
    "xarray.DataArray": lambda name, rows: unwrapped(name, rows.data),
    "xarray.Dataset": _frame,
    "zarr.Array": lambda _, rows: stored_array(rows),
    "zarr.Group": _group,
    "h5py.Group": _group,
    "polars.LazyFrame": lambda _, rows: rows.collect(),
    "pyarrow.RecordBatchReader": lambda _, rows: rows.read_all(),
    "pyarrow.Dataset": lambda _, rows: rows.to_table(),
}
