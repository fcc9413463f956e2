"""Dask collections as Dask arrays: data frames as numbers, and chunks whose sizes are known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from streamkern.errors import DataError
from streamkern.sources.numeric import in_one_type


def is_dask_array(X: Any) -> bool:
    """Say whether X is a Dask array, without importing Dask for those who have none."""
    return type(X).__module__.startswith("dask.array")


def is_dask_frame(X: Any) -> bool:
    """Say whether X is a Dask DataFrame or Series, without importing Dask for that."""
    return type(X).__module__.startswith("dask.dataframe")


def is_lazy(X: Any) -> bool:
    """Say whether X is a Dask collection of rows."""
    return is_dask_array(X) or is_dask_frame(X)


def lazy_array(name: str, values: Any) -> Any:
    """Return values as a Dask array, without computing any: the sizes of chunks may be unknown."""
    if not is_dask_frame(values):
        import dask.array as da  # noqa: PLC0415  slow

        return da.asarray(values)
    return in_one_type(name, values).to_dask_array()


def lazy_values(values: Any) -> Any:
    """Return values of any kind as a Dask array, in one chunk where they are in memory."""
    if is_dask_frame(values):
        return values.to_dask_array()
    import dask.array as da  # noqa: PLC0415  slow

    return values if is_dask_array(values) else da.from_array(np.asarray(values), chunks=-1)


def lazy_frame(array: Any, columns: Any, index: Any = None) -> Any:
    """Return a Dask array (n, p) as a Dask DataFrame, with an index of as many partitions."""
    import dask.dataframe as dd  # noqa: PLC0415  slow

    return dd.from_dask_array(array, columns=columns, index=index)


def once(value: Any) -> Any:
    """Return a value as one task of Dask: a graph holds it once, however many blocks take it.

    A value that is a task already stays that.
    """
    from dask import delayed  # noqa: PLC0415  slow
    from dask.base import is_dask_collection  # noqa: PLC0415

    # Named after what it is, so that workers keep one of two graphs with the same.
    return value if is_dask_collection(value) else delayed(value, pure=True, traverse=False)


def with_known_chunks(*arrays: Any) -> list[Any]:
    """Return Dask arrays with the sizes of all chunks of rows, computing those that are unknown."""
    import dask  # noqa: PLC0415  slow

    given = [array for array in arrays if array is not None]
    for array in given:
        if any(math.isnan(size) for size in array.shape[1:]):
            raise DataError(
                f"a Dask array of shape {array.shape} has columns of unknown number; call "
                f"compute_chunk_sizes() on it first."
            )
    unknown = [array for array in given if any(math.isnan(size) for size in array.chunks[0])]
    # In one go, and as the graphs are, so that what they have in common is computed once.
    lengths = dask.compute(*map(_lengths, unknown)) if unknown else ()
    known = {id(array): _with_rows(array, n) for array, n in zip(unknown, lengths, strict=True)}
    return [known.get(id(array), array) for array in arrays]


def _lengths(array: Any) -> list[Any]:
    """Return tasks of the numbers of rows of all chunks."""
    from dask import delayed  # noqa: PLC0415  slow

    parts = array.to_delayed(optimize_graph=False).reshape(array.numblocks[0], -1)[:, 0]
    return [delayed(len)(part) for part in parts]


def _with_rows(array: Any, lengths: list[int]) -> Any:
    import dask.array as da  # noqa: PLC0415  slow

    chunks = tuple(lengths), *array.chunks[1:]
    return da.Array(array.dask, array.name, chunks, dtype=array.dtype)
