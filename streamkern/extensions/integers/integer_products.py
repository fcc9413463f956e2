"""Products of matrices of small integers, exact, by the fastest of what is installed.

All make the same integers, so which it is says nothing of a result but how long it took.
"""

import ctypes
import os
import sys
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

import numpy as np

from streamkern._typing import Array
from streamkern.errors import ParameterError

# Rows whose products of two bytes, at most 2^14 each, sum to no more than 32 bits hold, and to no
# more than float32 holds exactly: 2^30 and 2^24.
MOST_ROWS, _EXACT_ROWS = 1 << 16, 1 << 10
# What is multiplied to find the fastest: as fast as large products, and done in 10 ms.
_MEASURED = 1024, 512, 2048
_TIMES = 3
_SETTING = "STREAMKERN_INTEGER_PRODUCTS"
# Held while products are measured: side by side they would slow each other down.
_measuring = Lock()


class IntegerProducts(ABC):
    """Products A B^T of A (M, n), bytes that stand for themselves less 128, and B (N, n) in int8.

    Both are `prepared` first, and rows of what that returns are multiplied.  n is at most
    `MOST_ROWS`, and the products (M, N) are in int32.  The interpreter's lock is released.
    """

    name: ClassVar[str]
    takes_signed: ClassVar[bool] = False  # as A, too

    def prepared(self, digits: Array) -> Array:
        """Return bytes, or signed bytes, as they are multiplied."""
        return digits

    @abstractmethod
    def __call__(self, left: Array, right: Array) -> Array: ...


class BlasProducts(IntegerProducts):
    """Products in float32, of so few rows at a time that no sum is rounded."""

    name = "float32 BLAS"
    takes_signed = True

    def prepared(self, digits: Array) -> Array:
        values = digits.astype(np.float32)
        if digits.dtype == np.uint8:
            values -= 128.0
        return values

    def __call__(self, left: Array, right: Array) -> Array:
        products = np.zeros((len(left), len(right)), np.int32)
        # A product with its own transpose is made at half the cost.
        own = len(right) * (left.ctypes.data == right.ctypes.data)
        for start in range(0, left.shape[1], _EXACT_ROWS):
            mine, theirs = (each[:, start : start + _EXACT_ROWS] for each in (left, right))
            for top, rows in ((slice(own), theirs), (slice(own, None), mine[own:])):
                if products[top].size:
                    products[top] += (rows @ theirs.T).astype(np.int32)  # faster than a mixed sum
        return products


class OnnxProducts(IntegerProducts):
    """Products by ONNX Runtime, which has kernels for the integer units of many processors."""

    name = "ONNX Runtime"

    def __init__(self, threads: int) -> None:
        import onnxruntime  # type: ignore[import-not-found,import-untyped,unused-ignore]

        options: Any = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.enable_cpu_mem_arena = False
        self._session: Any = onnxruntime.InferenceSession(
            _GRAPH, options, providers=["CPUExecutionProvider"]
        )

    def __call__(self, left: Array, right: Array) -> Array:
        return self._session.run(None, {"A": left, "B": right})[0]


class MklProducts(IntegerProducts):
    """Products by Intel's Math Kernel Library, in one thread."""

    name = "MKL"

    def __init__(self) -> None:
        libraries = sorted((Path(sys.prefix) / "lib").glob("libmkl_rt.so*"))
        if not libraries:
            raise ImportError("no MKL is installed.")
        library = ctypes.CDLL(str(libraries[-1]))
        library.MKL_Set_Threading_Layer(_SEQUENTIAL)
        self._product = library.cblas_gemm_s8u8s32
        size, pointer, number = ctypes.c_int, ctypes.c_void_p, ctypes.c_float
        left, right = (pointer, size, ctypes.c_int8), (pointer, size, ctypes.c_int8)
        order_and_sizes = 4 * (ctypes.c_int,) + 3 * (size,)
        result = number, pointer, size, pointer
        self._product.argtypes = (*order_and_sizes, number, *left, *right, *result)
        self._product.restype = None

    def __call__(self, left: Array, right: Array) -> Array:
        left, right = (np.ascontiguousarray(digits) for digits in (left, right))
        (M, n), N = left.shape, len(right)
        products = np.empty((M, N), np.int32)
        zero = ctypes.c_int32(0)
        factors = (left.ctypes.data, n, -128), (right.ctypes.data, n, 0)
        result = 0.0, products.ctypes.data, N, ctypes.addressof(zero)
        self._product(*_AB_TRANSPOSED, M, N, n, 1.0, *factors[0], *factors[1], *result)
        return products


# Of MKL's interface: threads, and rows, A as it is, B transposed, one zero for all of C.
_SEQUENTIAL = 1
_AB_TRANSPOSED = 101, 111, 112, 173


# C = MatMulInteger(A, Transpose(B), 128), as `onnx.helper` writes it: opset 13, A (M, n) uint8,
# B (N, n) int8, C (M, N) int32.
_GRAPH = (
    b'\x08\x08:\x82\x01\n!\n\x01B\x12\x02Bt"\tTranspose*\r\n\x04perm@\x01@\x00\xa0\x01\x07\n\x1c\n'
    b'\x01A\n\x02Bt\n\x01z\x12\x01C"\rMatMulInteger\x12\x01g*\t\x10\x02*\x02\x80\x01B\x01zZ\x0f\n'
    b"\x01A\x12\n\n\x08\x08\x02\x12\x04\n\x00\n\x00Z\x0f\n\x01B\x12\n\n\x08\x08\x03\x12\x04\n\x00\n"
    b"\x00b\x0f\n\x01C\x12\n\n\x08\x08\x06\x12\x04\n\x00\n\x00B\x04\n\x00\x10\r"
)


def integer_products(threads: int = 1) -> IntegerProducts:
    """Return the fastest products here, measured once a process.

    The environment variable STREAMKERN_INTEGER_PRODUCTS is the name of others.
    """
    wanted = os.environ.get(_SETTING, "fastest")
    with _measuring:
        found = exact_products(threads)
    if wanted == "fastest":
        return next(iter(found.values()))
    if wanted not in found:
        raise ParameterError(
            f"integer products are made by {' or '.join(found)} here, not by {wanted!r}; choose "
            f"one of these, or 'fastest' ({_SETTING})."
        )
    return found[wanted]


def exact_products(threads: int = 1) -> dict[str, IntegerProducts]:
    """Return the products that are installed and exact on this processor, the fastest first.

    Some processors saturate sums of two products of bytes, and so do products by some libraries.
    """
    return {products.name: products for _, products in _measured(threads)}


def product_rate(threads: int = 1) -> float:
    """Return the multiply-adds a second of the products that are used."""
    used = integer_products(threads)
    return next(rate for rate, products in _measured(threads) if products is used)


@cache
def _measured(threads: int) -> list[tuple[float, IntegerProducts]]:
    """Return products that are exact here, the fastest first, with multiply-adds a second."""
    candidates: list[IntegerProducts] = [BlasProducts()]
    with suppress(ImportError):
        candidates.append(OnnxProducts(threads))
    with suppress(ImportError, OSError, AttributeError):
        if threads == 1:
            candidates.append(MklProducts())
    found = [(_rate(each), each) for each in candidates if _is_exact(each)]
    return sorted(found, key=lambda each: -each[0])


def _is_exact(products: IntegerProducts) -> bool:
    """Say whether products of the largest numbers are right: some instructions saturate."""
    left = np.full((4, MOST_ROWS), 255, np.uint8)
    left[1], left[2, ::2] = 0, 0
    right = np.full((3, MOST_ROWS), -128, np.int8)
    right[1], right[2, ::2] = 127, 127
    left[3] = np.arange(MOST_ROWS) % 251  # sums that no float32 holds
    expected = (left.astype(np.int64) - 128) @ right.T.astype(np.int64)
    found = products(products.prepared(left), products.prepared(right))
    return bool(np.array_equal(found, expected))


def _rate(products: IntegerProducts) -> float:
    M, N, n = _MEASURED
    numbers = np.random.default_rng(0).integers(-127, 128, (M, n), dtype=np.int8)
    left, right = products.prepared(numbers.view(np.uint8) ^ 128), products.prepared(numbers)
    best = np.inf
    for _ in range(_TIMES):
        begun = time.perf_counter()
        products(left, right[:N])
        best = min(best, time.perf_counter() - begun)
    return M * N * n / best
