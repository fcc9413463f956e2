"""Cosines rounded to integers, the same on every processor.

Angles come in turns, exact sums in double (`exact_products`).  From there on every step is one
operation of IEEE arithmetic after the other, compiled without liberties.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

from streamkern._typing import Array
from streamkern.runtime.compiled import compiled

# Of cos(2 pi r) and sin(2 pi r) / r in r^2, for r up to half a turn: off by 1e-8.
_DEGREE = 6


def _coefficients(function: Callable[[Any], Any]) -> tuple[np.float32, ...]:
    fitted = Chebyshev.interpolate(lambda z: function(np.sqrt(z)), _DEGREE, domain=[0.0, 0.25])
    powers = fitted.convert(kind=Polynomial, domain=[-1, 1], window=[-1, 1])
    return tuple(np.float32(value) for value in powers.coef)


_C0, _C1, _C2, _C3, _C4, _C5, _C6 = _coefficients(lambda r: np.cos(2.0 * np.pi * r))
_S0, _S1, _S2, _S3, _S4, _S5, _S6 = _coefficients(lambda r: 2.0 * np.pi * np.sinc(2.0 * r))


@compiled
def round_cosines(turns: Array, levels: np.float32, out: Array, start: int) -> None:
    """Write rint(levels cos 2 pi t) of turns (L, n) to out[:L], from the column `start` on."""
    for k in range(turns.shape[0]):
        for i in range(turns.shape[1]):
            t = turns[k, i]
            r = np.float32(t - np.rint(t))
            z = r * r
            wave = (((((_C6 * z + _C5) * z + _C4) * z + _C3) * z + _C2) * z + _C1) * z + _C0
            out[k, start + i] = np.int32(np.rint(levels * wave))


@compiled
def round_pairs(turns: Array, levels: np.float32, out: Array, start: int) -> None:
    """Write cosines as `round_cosines` does to the even rows of `out`, and sines to the odd."""
    n = turns.shape[1]
    cosines, sines = np.empty(n, out.dtype), np.empty(n, out.dtype)
    for k in range(turns.shape[0]):
        for i in range(n):
            t = turns[k, i]
            r = np.float32(t - np.rint(t))
            z = r * r
            wave = (((((_C6 * z + _C5) * z + _C4) * z + _C3) * z + _C2) * z + _C1) * z + _C0
            cosines[i] = np.int32(np.rint(levels * wave))
            wave = (((((_S6 * z + _S5) * z + _S4) * z + _S3) * z + _S2) * z + _S1) * z + _S0
            sines[i] = np.int32(np.rint(levels * (wave * r)))
        out[2 * k, start : start + n] = cosines
        if 2 * k + 1 < out.shape[0]:
            out[2 * k + 1, start : start + n] = sines
