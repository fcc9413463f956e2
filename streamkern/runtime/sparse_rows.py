"""Rows of a sparse matrix, which are cut like an array and dense only where they must be."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from streamkern._typing import Array


def is_sparse(values: Any) -> bool:
    """Say whether values are a matrix or array of scipy.sparse, without importing it."""
    return type(values).__module__.startswith("scipy.sparse")


class SparseRows:
    """Rows (n, p) in compressed form (CSR): columns ascend within a row, each at most once.

    They have the length, shape, dtype and slices of an array.  NumPy's functions make a dense array
    of them, so those are for a few rows at a time.
    """

    ndim = 2

    def __init__(self, csr: Any) -> None:
        self.csr = csr
        self.shape: tuple[int, int] = csr.shape
        self.dtype: np.dtype[Any] = csr.dtype

    @classmethod
    def of(cls, values: Any) -> Self:
        """Return the rows of a matrix or array of scipy.sparse, which stays as it is.

        Truth values are 0 and 1, and what is stored twice is added up.
        """
        csr = values.tocsr()
        if csr.dtype.kind == "b":
            csr = csr.astype(np.uint8)
        if not csr.has_canonical_format:
            csr = csr.copy() if csr is values else csr
            csr.sum_duplicates()
        return cls(csr)

    @classmethod
    def stacked(cls, parts: "Sequence[SparseRows]") -> Self:
        from scipy.sparse import vstack  # noqa: PLC0415  whoever has such rows has imported it

        return cls(vstack([part.csr for part in parts], format="csr"))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Self:
        return type(self)(self.csr[key])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        dense: Array = self.csr.toarray()
        return dense if dtype is None else dense.astype(dtype, copy=False)

    def astype(self, dtype: Any) -> Self:
        return type(self)(self.csr.astype(dtype, copy=False))

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return self.shape, self.csr.data, self.csr.indices, self.csr.indptr

    @property
    def row_bytes(self) -> int:
        """What a row takes on average: its values, their columns, and where it begins."""
        stored = self.csr.data.nbytes + self.csr.indices.nbytes + self.csr.indptr.nbytes
        return int(-(-stored // max(len(self), 1)))

    def nonfinite(self) -> tuple[Array, Array]:
        """Return the rows (k,) with values that are not finite, and how many columns have (p,)."""
        bad = np.flatnonzero(~np.isfinite(self.csr.data))
        rows = np.searchsorted(self.csr.indptr, bad, side="right") - 1
        return np.unique(rows), np.bincount(self.csr.indices[bad], minlength=self.shape[1])

    def times(self, by_inputs: Array) -> Array:
        """Return the product (n, L) with a dense matrix (p, L), in the precision of that."""
        return self.csr.astype(by_inputs.dtype, copy=False) @ by_inputs
