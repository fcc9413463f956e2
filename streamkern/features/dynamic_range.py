"""Dynamic range of values of a kernel at landmarks, and how to level it before products are summed.

Whitened features L^-1 k cost as much a row as their products.  Summing products of plain values k
and whitening the sums costs nothing a row, but K_nm^T K_nm has the squares of the eigenvalues of
K_mm, and in single precision the small ones drown in the rounding of the large.  Here the few
largest eigenvalues s_1, ..., s_r of K_mm are levelled: with an orthogonal Q whose first r columns
are their eigenvectors, up to signs,

    psi = T Q^T k,   T = diag(s_r / s_1, ..., s_r / s_r, 1, ..., 1),

which makes sums of psi psi^T about flat in these directions.  Q is the product of r reflections, so
that takes 4 m r operations a row, and

    L^-1 k = R^T psi,   R = T^-1 Q^T L^-T

turns the sums into those of whitened features, once, in double.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamkern.features.base import stream

if TYPE_CHECKING:
    from streamkern._typing import Floats

# Steps of the iteration that finds them, vectors that it takes besides, and the stream of those it
# begins with.
_STEPS, _MORE, _BEGINNING = 3, 16, 3


def leading(factor: Floats, r: int) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues (r,) of L L^T, descending, and eigenvectors (m, r), about.

    By a few steps of subspace iteration, since whatever orthogonal matrix is taken, it is undone.

    References
    ----------
    Halko, Martinsson and Tropp (2011), "Finding structure with randomness".
    """
    m = len(factor)
    block = stream(0, _BEGINNING).standard_normal((m, min(r + _MORE, m)))
    for _ in range(_STEPS):
        block = np.linalg.qr(factor @ (factor.T @ block))[0]
    narrow = factor.T @ block
    eigenvalues, vectors = np.linalg.eigh(narrow.T @ narrow)
    return eigenvalues[: -r - 1 : -1], block @ vectors[:, : -r - 1 : -1]


def reflections(columns: Floats) -> tuple[Floats, Floats]:
    """Return Y and F of Q = I - Y F Y^T, whose first columns are orthonormal ones, up to signs."""
    from scipy.linalg import qr  # noqa: PLC0415  where it is needed

    (packed, scales), _ = qr(columns, mode="raw")
    r = columns.shape[1]
    reflectors = np.tril(packed[:, :r], -1) + np.eye(len(columns), r)
    factors = np.zeros((r, r))
    products = reflectors.T @ reflectors
    for j, scale in enumerate(scales):
        factors[:j, j] = -scale * (factors[:j, :j] @ products[:j, j])
        factors[j, j] = scale
    return reflectors, factors
