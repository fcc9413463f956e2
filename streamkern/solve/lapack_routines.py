"""LAPACK's routines without the interpreter's lock, from SciPy's interface for Cython."""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cython_blas, cython_lapack

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


def _address(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return argument.ctypes.data
    if isinstance(argument, str):
        return argument.encode()
    if isinstance(argument, float):
        return ctypes.byref(ctypes.c_double(argument))
    return ctypes.byref(ctypes.c_int(argument))
