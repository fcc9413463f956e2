"""Array-likes as arrays of numbers: in memory, and as Dask arrays whose chunks have known sizes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from streamkern.errors import DataError
from streamkern.runtime.sparse_rows import SparseRows, is_sparse

# Libraries whose tables have names.
_FRAMES = ("pandas", "polars")


def is_dask_array(X: Any) -> bool:
    """Say whether X is a Dask array, without importing Dask for those who have none."""
    return type(X).__module__.startswith("dask.array")


def is_dask_frame(X: Any) -> bool:
    return type(X).__module__.startswith("dask.dataframe")


def is_lazy(X: Any) -> bool:
    return is_dask_array(X) or is_dask_frame(X)


def in_memory(values: Any) -> Any:
    """Return values as they are, computed if they are lazy."""
    return values.compute() if is_lazy(values) else values


def lazy_array(name: str, values: Any) -> Any:
    """Return values as a Dask array, without computing any: the sizes of chunks may be unknown."""
    if not is_dask_frame(values):
        import dask.array as da  # noqa: PLC0415  slow

        return da.asarray(values)
    return in_one_type(name, values).to_dask_array()


def stored_array(array: Any) -> Any:
    """Return an array of a Zarr store as a Dask array, in its chunks."""
    import dask.array as da  # noqa: PLC0415  slow

    return da.from_zarr(array)


def lazy_values(values: Any) -> Any:
    """Return values of any kind as a Dask array, in one chunk where they are in memory."""
    if is_dask_frame(values):
        return values.to_dask_array()
    import dask.array as da  # noqa: PLC0415  slow

    return values if is_dask_array(values) else da.from_array(np.asarray(values), chunks=-1)


def lazy_frame(array: Any, columns: Any, index: Any = None) -> Any:
    import dask.dataframe as dd  # noqa: PLC0415  slow

    return dd.from_dask_array(array, columns=columns, index=index)


def once(value: Any) -> Any:
    """Return a value as one task of Dask: a graph holds it once, however many blocks take it."""
    from dask import delayed  # noqa: PLC0415  slow
    from dask.base import is_dask_collection  # noqa: PLC0415

    # Named after what it is, so that workers keep one of two graphs with the same.
    return value if is_dask_collection(value) else delayed(value, pure=True, traverse=False)


def with_known_chunks(*arrays: Any) -> list[Any]:
    """Return Dask arrays with the sizes of all chunks of rows, computing those that are unknown."""
    import dask  # noqa: PLC0415  slow
    import dask.array as da  # noqa: PLC0415

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
    if not is_dask_frame(table) and type(table).__module__.partition(".")[0] not in _FRAMES:
        return []
    names = list(table.columns) if hasattr(table, "columns") else [getattr(table, "name", None)]
    return [str(name) for name in names] if all(isinstance(name, str) for name in names) else []
