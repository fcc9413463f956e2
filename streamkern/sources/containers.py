"""Rows in memory, of Dask and in containers of other libraries: as arrays or tables, and back.

No library but the core of Dask is imported for others than those who hold an object of it.
"""

import math
import os
from collections.abc import Callable, Collection
from functools import partial, wraps
from typing import Any

import numpy as np

from streamkern._typing import Array
from streamkern.errors import DataError
from streamkern.errors.formatting import listed
from streamkern.runtime.resources import LazyModule as LazyModule  # noqa: PLC0414  for others
from streamkern.runtime.resources import current_client, dask
from streamkern.runtime.sparse_rows import SparseRows, is_sparse
from streamkern.sources.missing_values import missing_values_of

da: Any = LazyModule("dask.array")
dd: Any = LazyModule("dask.dataframe")
pa: Any = LazyModule("pyarrow")
# Libraries whose tables have names.
_NAMED = ("pandas", "polars")
_FRAMES = {"pandas.DataFrame", "polars.DataFrame", "pyarrow.Table"}


def is_dask_array(X: Any) -> bool:
    """Say whether X is a Dask array, without importing Dask for those who have none."""
    return type(X).__module__.startswith("dask.array")


def is_dask_frame(X: Any) -> bool:
    return type(X).__module__.startswith("dask.dataframe")


def is_lazy(X: Any) -> bool:
    return is_dask_array(X) or is_dask_frame(X)


def is_frame(rows: Any) -> bool:
    return bool(_kind(rows, _FRAMES))


def in_memory(values: Any) -> Any:
    """Return values as they are, computed if they are lazy."""
    return values.compute() if is_lazy(values) else values


def lazy_array(name: str, values: Any) -> Any:
    """Return values as a Dask array, without computing any: the sizes of chunks may be unknown."""
    if is_dask_frame(values):
        return in_one_type(name, values).to_dask_array()
    return _unmasked(name, da.asarray(values))


def lazy_values(values: Any) -> Any:
    """Return values of any kind as a Dask array, in one chunk where they are in memory."""
    if is_dask_frame(values):
        return values.to_dask_array()
    return values if is_dask_array(values) else da.from_array(np.asarray(values), chunks=-1)


def _unmasked(name: str, values: Any) -> Any:
    """Return a Dask array whose cells that a mask hides are NaN."""
    if not isinstance(da.utils.meta_from_array(values), np.ma.MaskedArray):
        return values
    kind = np.result_type(values.dtype, np.float16)
    shown = partial(_shown, name, kind)
    return values.map_blocks(shown, dtype=kind, meta=np.empty((0,) * values.ndim, kind))


def _shown(name: str, kind: Any, values: Any) -> Array:
    return np.asarray(_checked(name, values), dtype=kind)


def lazy_frame(array: Any, columns: Any, rows: Any) -> Any:
    """Return what was made of lazy rows as a data frame, with the index of rows that have one."""
    index = rows.index if is_dask_frame(rows) else None
    return dd.from_dask_array(array, columns=columns, index=index)


def once(value: Any) -> Any:
    """Return a value as one task of Dask: a graph holds it once, however many blocks take it."""
    if dask.is_dask_collection(value):
        return value
    # Named after what it is, so that workers keep one of two graphs with the same.
    return dask.delayed(value, pure=True, traverse=False)


def with_known_chunks(*arrays: Any) -> list[Any]:
    """Return Dask arrays with the sizes of all chunks of rows, computing those that are unknown."""
    given = [array for array in arrays if array is not None]
    for array in given:
        if any(math.isnan(size) for size in array.shape[1:]):
            raise DataError(
                f"a Dask array of shape {array.shape} has columns of unknown number; call "
                f"compute_chunk_sizes() on it first."
            )
    unknown = [array for array in given if any(math.isnan(size) for size in array.chunks[0])]
    # In one go, and as the graphs are, so that what they have in common is computed once.
    chunks = (a.to_delayed(optimize_graph=False).reshape(a.numblocks[0], -1)[:, 0] for a in unknown)
    shape = dask.delayed(np.shape)  # a sparse chunk has no length
    lengths = dask.compute(*([shape(chunk)[0] for chunk in each] for each in chunks))
    known = {
        id(array): da.Array(array.dask, array.name, (tuple(n), *array.chunks[1:]), array.dtype)
        for array, n in zip(unknown, lengths, strict=True)
    }
    return [known.get(id(array), array) for array in arrays]


def check_files(*arrays: Any) -> None:
    """Raise DataError if workers lack the file of a dataset of h5py that a Dask array reads."""
    client = current_client()
    graphs = [array.dask for array in arrays if array is not None and client is not None]
    held = [layer for graph in graphs for layer in graph.layers.values() if len(layer) == 1]
    values = (getattr(value, "value", value) for layer in held for value in layer.values())
    for path in {each.file.filename for each in values if _kind(each, {"h5py.Dataset"})}:
        lacking = [name for name, found in client.run(os.path.exists, path).items() if not found]
        if lacking:
            raise DataError(
                f"a Dask array reads {path}, which the worker at {lacking[0]} has not; put it "
                f"where all workers find it, or give the rows in memory."
            )


def as_table(name: str, values: Any) -> Any:
    """Return values in memory as an array, or as `SparseRows` where they are sparse."""
    if isinstance(values, SparseRows) or is_sparse(values):
        return values if isinstance(values, SparseRows) else SparseRows.of(values)
    if type(values).__module__.startswith("pandas") and values.ndim == 2:
        values = in_one_type(name, values)
    return as_numbers(np.asarray(values))


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
    # Where values may be missing, a type is none of NumPy.
    kinds = [dtype if isinstance(dtype, np.dtype) else np.dtype(float) for _, dtype in types]
    kinds = [np.dtype(np.uint8) if dtype.kind == "b" else dtype for dtype in kinds]
    return frame.astype(np.result_type(*kinds)) if types else frame


def column_names(table: Any) -> list[str]:
    """Return the names of the columns of a data frame, or of a series; none if one is no text."""
    if not is_dask_frame(table) and type(table).__module__.partition(".")[0] not in _NAMED:
        return []
    names = list(table.columns) if hasattr(table, "columns") else [getattr(table, "name", None)]
    return [str(name) for name in names] if all(isinstance(name, str) for name in names) else []


def with_named_columns(X: Any, **others: Any) -> list[Any]:
    """Return a data frame without the columns that `others` name, and these in place of names."""
    is_arrow, is_table = bool(_kind(X, {"pyarrow.Table"})), is_frame(X) or is_dask_frame(X)
    columns = list((X.column_names if is_arrow else X.columns) if is_table else ())
    one: Any = getattr(X, "__getitem__", None)
    several: Any = X.select if is_arrow else one
    found, taken = [], list[str]()
    for what, given in others.items():
        is_one = isinstance(given, str)
        names = [given] if is_one else given if isinstance(given, list) else []
        are_columns = all(isinstance(name, str) and columns.count(name) == 1 for name in names)
        are_columns = are_columns and len(set(names)) == len(names)  # else they are labels
        if is_one and not are_columns:
            has = f"has {'more than one' if given in columns else 'no'} such column"
            raise DataError(
                f"{what} is {given!r}, but X {has if is_table else 'is no data frame'}; name a "
                f"column of a data frame or a file, or give values."
            )
        is_named = bool(names) and are_columns
        taken += names if is_named else []
        found.append((one if is_one else several)(given) if is_named else given)
    rest = [name for name in columns if name not in taken]
    return [several(rest) if taken else X, *found]


def unwrapped(name: str, values: Any) -> Any:
    """Return values without their container: an array, a Dask collection or a table.

    What is lazy stays lazy.  Polars' lazy frames and Arrow's readers are read into memory.  Cells
    that a mask hides are NaN.  DataError says what to give in place of a group, records or times.
    """
    if kind := _kind(values, _UNWRAPPED):
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
    if isinstance(X, np.ndarray) or not _kind(X, {"xarray.DataArray", "xarray.Dataset"}):
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


def _kind(values: Any, known: Collection[str]) -> str:
    """Return the library and name of the first of a type's bases that is known, if one is."""
    names = (f"{cls.__module__.partition('.')[0]}.{cls.__name__}" for cls in type(values).__mro__)
    return next((name for name in names if name in known), "")


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


def _stored(name: str, dataset: Any) -> Any:
    if missing_values_of(dataset, name) is not None:
        raise DataError(
            f"{name} has attributes that say which values are missing, which a dataset in memory "
            f"does not heed; fit to the file (open_hdf5), or put NaN there."
        )
    return dataset


# How types are unwrapped.
_UNWRAPPED: dict[str, Callable[[str, Any], Any]] = {
    "xarray.DataArray": lambda name, rows: unwrapped(name, rows.data),
    "xarray.Dataset": _frame,
    "zarr.Array": lambda _, rows: da.from_zarr(rows),
    "zarr.Group": _group,
    "h5py.Group": _group,
    "h5py.Dataset": _stored,
    "polars.LazyFrame": lambda _, rows: rows.collect(),
    "pyarrow.RecordBatch": lambda _, rows: pa.Table.from_batches([rows]),
    "pyarrow.RecordBatchReader": lambda _, rows: rows.read_all(),
    "pyarrow.Dataset": lambda _, rows: rows.to_table(),
}
