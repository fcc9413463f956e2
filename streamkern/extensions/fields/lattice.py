"""A lattice of frequencies, and non-uniform fast Fourier transforms between it and rows.

Barnett, Magland and af Klinteberg (2019), "A parallel nonuniform fast Fourier transform library
based on an exponential of semicircle kernel".
"""

from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array, Floats

# Of a sum of waves of size 1, what transforms may be off by, and in double.
_TOLERANCE, _IN_DOUBLE = 1e-9, 1e-14


class Lattice(NamedTuple):
    """Frequencies (indices + 1 / 2) cell, by inputs, and what their waves are multiplied by."""

    indices: Array  # (L, p), integers
    cell: Floats  # (p,)
    amplitudes: Floats  # (L,)
    n_before: int = 0  # features before the waves, of a trend

    @property
    def modes(self) -> Array:
        """Indices along every input, from -n / 2 to n / 2 - 1; products have twice as many."""
        low, high = self.indices.min(axis=0), self.indices.max(axis=0)
        return 2 * np.asarray(np.maximum(high + 1, -low))

    def coefficients(self, vectors: Array) -> Array:
        """Return c (L, k): features times vectors (D, k) are the real part of sum c exp(i t)."""
        pairs = np.zeros((2 * len(self.indices), vectors.shape[1]))
        waves = vectors[self.n_before :]  # of an odd number the last sine is not there
        pairs[: len(waves)] = waves
        return self.amplitudes[:, None] * (pairs[0::2] - 1j * pairs[1::2])


def places(indices: Array, modes: Array) -> Array:
    """Return where indices (..., p) are in rows of as many as there are along every input."""
    steps = np.append(np.cumprod(modes[:0:-1])[::-1], 1)
    return np.asarray((indices + modes // 2) @ steps)


def half_cell(angles: list[Floats]) -> Array:
    """Return what waves on the lattice are multiplied by for those of half a cell off it, (n,)."""
    return np.asarray(np.exp(0.5j * np.sum(angles, axis=0)))


def sums_of_rows(angles: list[Floats], factors: Array, modes: Array, precision: str) -> Array:
    """Return sum_n c_n exp(i m . t_n) of all indices m, in one row for each of the factors."""
    shape: Any = tuple(modes.tolist()) if len(modes) > 1 else int(modes[0])
    return _transformed(1, angles, precision, factors, shape)


def sums_of_pairs(angles: list[Floats], factors: Floats, modes: Array, precision: str) -> Array:
    """Return the sums for half a cell off, of real factors (k, n), two of them in a transform.

    Sums for opposite frequencies are conjugates of each other, which tells the two apart.
    """
    k, sizes = len(factors), np.abs(factors).max(axis=1)
    sizes[sizes == 0] = 1.0  # a transform is off by a part of the larger of the two
    pairs = (factors[0::2] / sizes[0::2, None]).astype(complex, order="C")
    pairs.imag[: k // 2] = factors[1::2] / sizes[1::2, None]
    pairs *= half_cell(angles)
    both = sums_of_rows(angles, pairs, modes, precision) / 2.0
    opposite = both[:, ::-1].conj()
    found = np.empty((k, both.shape[1]), complex)
    found[0::2], found[1::2] = both + opposite, -1j * (both - opposite)[: k // 2]
    return found * sizes[:, None]


def values_of_rows(angles: list[Floats], waves: Array, precision: str) -> Array:
    """Return sum_m c_m exp(i m . t_n) of all rows n, (k, n), of coefficients (k, n_1, ...)."""
    return _transformed(2, angles, precision, waves)


def _transformed(kind: int, angles: list[Floats], precision: str, *arguments: Any) -> Array:
    import finufft

    transform = getattr(finufft, f"nufft{len(angles)}d{kind}")
    eps = _IN_DOUBLE if precision == "double" else _TOLERANCE
    made: Array = transform(*angles, *arguments, eps=eps, isign=1, nthreads=1)
    return made.reshape(len(arguments[0]), -1)
