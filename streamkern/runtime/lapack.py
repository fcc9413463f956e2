"""LAPACK and BLAS in double precision without the interpreter's lock, which SciPy's wrappers hold.

They are those of SciPy's interface for Cython.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cython_blas, cython_lapack, solve_triangular

from streamkern._typing import Floats
from streamkern.runtime.threads import blas_threads, in_pieces

# Columns of a triangular system that are one piece of work: multiples of these, of so many numbers.
_PIECE, _NUMBERS = 64, 1 << 17
_NAME_OF = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)
_ADDRESS_IN = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_ROUTINES: dict[str, Any] = cython_lapack.__pyx_capi__ | cython_blas.__pyx_capi__


@cache
def has_c_integers() -> bool:
    """Say whether the routines take plain C integers, as they do up to SciPy 1.17 at least."""
    return b" int *" in _NAME_OF(_ROUTINES["dstedc"])


@cache
def routine(name: str) -> Callable[..., None]:
    """Return a routine of double precision, such as "dstedc", which raises LinAlgError for `info`.

    It takes LAPACK's other arguments: arrays are in memory by columns.
    """
    capsule = _ROUTINES[name]
    signature = _NAME_OF(capsule)
    n_arguments = signature.count(b",") + 1
    # A function made this way gives up the interpreter's lock while it runs.
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(
        _ADDRESS_IN(capsule, signature)
    )

    def call(*arguments: Any) -> None:
        info = ctypes.c_int(0)
        last = [ctypes.byref(info)] * (n_arguments - len(arguments))
        function(*map(_address, arguments), *last)
        if info.value:
            raise np.linalg.LinAlgError(f"{name} failed with code {info.value}.")

    return call


def triangular_solution(
    factor: Floats, columns: Floats, *, transposed: bool = False, n_threads: int = 1
) -> Floats:
    """Return L^-1 C, or L^-T C, of a lower triangle L (D, D) and columns C (D, k).

    Pieces are the same whatever the number of threads, which changes no bit.
    """
    with blas_threads(1):
        if not has_c_integers():
            how: Any = {"trans": int(transposed), "lower": True, "check_finite": False}
            return solve_triangular(factor, columns, **how)
        found = np.array(columns, dtype=float, order="F")
        if not found.size:
            return found
        D, several = len(factor), found.reshape(len(factor), -1, order="F")
        # In memory by rows it is an upper triangle by columns.
        if by_rows := not factor.flags.f_contiguous:
            factor = np.ascontiguousarray(factor)
        half, kind = "U" if by_rows else "L", "T" if by_rows != transposed else "N"

        step = max(_NUMBERS // (D * _PIECE), 1) * _PIECE

        def solve(start: int) -> None:
            part = several[:, start : start + step]
            routine("dtrsm")("L", half, kind, "N", D, part.shape[1], 1.0, factor, D, part, D)

        in_pieces(solve, range(0, several.shape[1], step), n_threads)
    return found


def _address(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return argument.ctypes.data
    if isinstance(argument, str):
        return argument.encode()
    if isinstance(argument, float):
        return ctypes.byref(ctypes.c_double(argument))
    return ctypes.byref(ctypes.c_int(argument))
