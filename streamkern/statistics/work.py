"""The arithmetic of a statistic, and how fast this machine does it."""

import time
from functools import cache
from typing import NamedTuple

import numpy as np

from streamkern.registry import extension

INTEGER = "integer"  # the dtype of exact products of bytes
# Rows and columns of the product that is measured: as fast as large ones, and done in 20 ms.
_ROWS, _COLUMNS = 2048, 1024
_TIMES = 2


class Work(NamedTuple):
    """The arithmetic of a statistic: a multiplication and an addition are two operations."""

    flops_per_row: float
    order: int
    dtype: str

    def attainable(self, threads: int) -> float:
        """Measure, once a process, the operations a second of products with these BLAS threads."""
        if self.dtype == INTEGER:
            return 2.0 * float(extension("integers", "integer_products").product_rate(threads))
        return _measured(min(self.order, _COLUMNS), self.dtype, threads)


@cache
def _measured(order: int, dtype: str, threads: int) -> float:  # noqa: ARG001  told apart by it
    features = np.random.default_rng(0).random((_ROWS, order)).astype(dtype)
    product = np.empty((order, order), dtype)
    best = np.inf
    for _ in range(_TIMES):
        begun = time.perf_counter()
        np.matmul(features.T, features, out=product)  # which NumPy takes for the symmetric product
        best = min(best, time.perf_counter() - begun)
    return _ROWS * order * (order + 1) / best
