"""A lattice of frequencies, and non-uniform fast Fourier transforms between it and rows.

Barnett, Magland and af Klinteberg (2019), "A parallel nonuniform fast Fourier transform library
based on an exponential of semicircle kernel".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats
    from streamkern.features.base import FeatureMap

# Of a sum of waves of size 1, what transforms may be off by.
_TOLERANCE = {"single": 1e-9, "double": 1e-14}


class Lattice(NamedTuple):
    """Frequencies (indices + 1 / 2) cell, by inputs, and what their waves are multiplied by."""

    indices: Array  # (L, p), integers
    cell: Floats  # (p,)
    amplitudes: Floats  # (L,)

    @property
    def modes(self) -> Array:
        """Indices along every input, from -n / 2 to n / 2 - 1; products have twice as many."""
        modes: Array = 2 * np.maximum(self.indices.max(axis=0) + 1, -self.indices.min(axis=0))
        return modes


def places(indices: Array, modes: Array) -> Array:
    """Return where indices (..., p) are in rows of as many as there are along every input."""
    steps = np.append(np.cumprod(modes[:0:-1])[::-1], 1)
    found: Array = (indices + modes // 2) @ steps
    return found


def angles_of(feature_map: FeatureMap, lattice: Lattice, X: Array) -> Floats:
    """Return the angles (n, p) of one cell along every input, of rows as a map has them."""
    rows = np.asarray(X)
    standardizer: Any = getattr(feature_map, "standardizer", None)
    angles: Floats = (rows if standardizer is None else standardizer(rows)) * lattice.cell
    return angles


def sums_of_rows(angles: list[Floats], factors: Array, modes: Array, precision: str) -> Array:
    """Return sum_n c_n exp(i m . t_n) of all indices m, in one row for each of the factors."""
    shape: Any = tuple(modes.tolist()) if len(modes) > 1 else int(modes[0])
    return _transformed(1, angles, precision, factors, shape)


def values_of_rows(angles: list[Floats], waves: Array, precision: str) -> Array:
    """Return sum_m c_m exp(i m . t_n) of all rows n, (k, n), of coefficients (k, n_1, ...)."""
    return _transformed(2, angles, precision, waves)


def _transformed(kind: int, angles: list[Floats], precision: str, *arguments: Any) -> Array:
    import finufft  # noqa: PLC0415  where it is needed

    transform = getattr(finufft, f"nufft{len(angles)}d{kind}")
    options = {"eps": _TOLERANCE[precision], "isign": 1, "nthreads": 1}
    made: Array = transform(*angles, *arguments, **options).reshape(len(arguments[0]), -1)
    return made
