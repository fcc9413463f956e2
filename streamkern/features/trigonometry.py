"""Cosines and sines of arrays, at the speed that NumPy has a vector loop for.

In double NumPy has vector code for the tangent but not for cosine and sine, which take twelve times
as long: cos t = 2 / (1 + tan(t / 2)^2) - 1 and sin t = tan(t / 2) (1 + cos t).  What this loses is
absolute rounding of 3e-16.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from streamkern._typing import Array


def cosines(angles: Array, out: Array) -> None:
    """Write cos of every angle into `out`, of the same shape and dtype, maybe the same array."""
    if angles.dtype != np.float64:
        np.cos(angles, out=out)
        return
    np.multiply(angles, 0.5, out=out)
    np.tan(out, out=out)
    _one_plus_cosines(out, out)
    out -= 1.0


def cosines_and_sines(angles: Array, cosine: Array, sine: Array) -> None:
    """Write cos and sin of every angle, each into an array of the same shape and dtype.

    The angles are lost; the sines may take their place.
    """
    if angles.dtype != np.float64:
        np.cos(angles, out=cosine)
        np.sin(angles, out=sine)
        return
    angles *= 0.5
    np.tan(angles, out=angles)
    _one_plus_cosines(angles, cosine)
    np.multiply(angles, cosine, out=sine)
    cosine -= 1.0


def _one_plus_cosines(tangents: Array, out: Array) -> None:
    """Write 1 + cos t into `out`, given tan(t / 2)."""
    np.multiply(tangents, tangents, out=out)
    out += 1.0
    np.divide(2.0, out, out=out)
