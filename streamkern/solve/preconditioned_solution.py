"""Preconditioned conjugate gradients for many right-hand sides and penalties at once."""

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.solve import Eigenbasis
from streamkern.statistics import Triangle

_MOST_ITERATIONS = 60
# If more than the second number are expected after the first, a decomposition takes less time.
_TRIAL, _HOPELESS = 8, 27
# So many Cholesky factorisations take less than a tridiagonal matrix: for so many columns alone it
# goes on.
FEW = 5


def preconditioned_solution(
    gram: Triangle,
    shifts: Floats,
    columns: Floats,
    basis: Eigenbasis,
    *,
    share: float = 1.0,
    tolerance: float = 1e-11,
) -> tuple[Floats, Array]:
    """Solve (G + shift I) x = b for every column (D, k) by preconditioned conjugate gradients.

    G is near `share` times the matrix of the basis; the shifts (k,) are positive; the tolerance is
    on the residual, relative to the right-hand side in the preconditioned norm.  Returns the
    solutions, and which columns have not converged.

    Golub and Van Loan (2013), "Matrix computations", section 11.5.
    """
    values, V = share * basis.spectrum.values[:, None], basis.vectors
    solution = np.zeros_like(columns)
    active = np.arange(columns.shape[1])
    x, r, s = solution.copy(), columns.copy(), shifts
    z = V @ ((V.T @ r) / (values + s))
    p, rz = z, np.einsum("dk,dk->k", r, z)
    goal = tolerance**2 * rz
    for iteration in range(_MOST_ITERATIONS):
        if iteration == _TRIAL:
            # At the rate so far, the iterations that each column still needs.
            rates = np.log(goal / tolerance**2 / rz) / _TRIAL
            needed = np.log(rz / goal) / np.maximum(rates, 1e-9)
            if (needed > _HOPELESS).sum() > FEW:
                break
        going = rz > goal
        if not going.all():
            solution[:, active[~going]] = x[:, ~going]
            active, s, rz, goal = active[going], s[going], rz[going], goal[going]
            x, r, p = x[:, going], r[:, going], p[:, going]
        if not len(active):
            break
        product = gram @ p + s * p
        step = rz / np.einsum("dk,dk->k", p, product)
        x = x + step * p
        r = r - step * product
        z = V @ ((V.T @ r) / (values + s))
        before, rz = rz, np.einsum("dk,dk->k", r, z)
        p = z + (rz / before) * p
    return solution, active
