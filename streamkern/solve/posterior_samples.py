"""Vectors whose outer products are (G + alpha I)^-1 in the mean, by products with G alone.

Of Gaussian vectors z they are S^-T M^(-1/2) z, with M = S^-1 (G + alpha I) S^-T and S S^T a
preconditioner, so that M is near to I and few steps of Lanczos's process tell its root.

Chow and Saad (2014), "Preconditioned Krylov subspace methods for sampling multivariate Gaussian
distributions".
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.features.base import stream
from streamkern.solve.preconditioner import BlockPreconditioner

# Vectors of a penalty, and the bytes from which on they are fewer.
_FEWEST, _MOST, _BYTES = 64, 128, 256 << 20
# Steps at the most, the share that vectors are off by in the end, of which the square is what their
# variances are off by, and how many times the last step's change that is where steps do little.
_STEPS, _OFF, _LIKE_STEPS = 60, 0.1, 5
_STREAM = 6
# To what part columns of the inverse are solved, in so many steps at the most.
_EXACT, _MOST_STEPS = 1e-6, 300
# Samples of each of many penalties at the least, and the share of the largest eigenvalue that is
# rounding.
_LEAST, _ROUNDING = 16, 1e-12


class PosteriorSamples(NamedTuple):
    """Samples of the posterior of coefficients about their mean, over the deviation of the noise.

    Variances by n of them are off by sqrt(2 / n) of their size.
    """

    alphas: Floats  # (A,), ascending
    vectors: Array  # (D, A n), in the order of the penalties
    means: Floats  # (A n,), of phi(x)^T vectors over the rows
    effective_dof: Floats  # (A,)

    def check(self, n_components: int) -> None:
        """Raise ValueError unless they are of so many features, and go together."""
        A, n = self.alphas.size, self.means.size
        expected = (A,), (n_components, n), (n,), (A,)
        shapes = tuple(each.shape for each in self)
        if not A or n % A or not n or shapes != expected or not (self.alphas > 0).all():
            raise ValueError(f"samples of shapes {shapes} of {n_components} features")

    def dof_at(self, alpha: float | Floats) -> Any:
        """Return the degrees of freedom at the penalties nearest to others."""
        return self.effective_dof[self._nearest(alpha)]

    def weights(self, alphas: Floats) -> Floats:
        """Return the weights (A n, t) of squares of phi^T vectors at the nearest penalties (t,)."""
        n = len(self.means) // len(self.alphas)
        of_sample = np.repeat(np.arange(len(self.alphas)), n)
        return np.asarray((of_sample[:, None] == self._nearest(alphas)) / n)

    def _nearest(self, alphas: float | Floats) -> Any:
        return np.abs(np.log(self.alphas / np.asarray(alphas)[..., None])).argmin(axis=-1)


def sample_posterior(
    times: Callable[[Floats], Floats], known: BlockPreconditioner, alpha: float, n: int, k: int = 0
) -> tuple[Array, float, float]:
    """Return samples (D, n) at a penalty, the degrees of freedom, and what they are off by.

    `times` returns G v of vectors v (D, j).  The degrees of freedom tr(G (G + alpha I)^-1) are the
    mean of x^T G x = z^T z - alpha x^T x over samples x.  With k vectors more, the first k
    coefficients have their exact covariance.
    """
    D, dof, off = len(known.diagonal), 0.0, 0.0
    samples, width = np.empty((D, n + k), np.float32), _width(D)
    for start in range(0, n, width):
        z = stream(start, _STREAM).standard_normal((D, min(width, n - start)))
        x, of_these = _sampled(times, known, alpha, z)
        off = max(off, of_these)
        samples[:, start : start + x.shape[1]] = x
        dof += float(np.vdot(z, z) - alpha * np.vdot(x, x)) / n
    if k:
        is_solved = _put_exact(times, known, alpha, samples, k)
        off = off if is_solved else 1.0
    return samples, dof, off


def _put_exact(
    times: Callable[[Floats], Floats],
    known: BlockPreconditioner,
    alpha: float,
    samples: Array,
    k: int,
) -> bool:
    """Give the first k coefficients their covariance, by the last k of vectors (D, n + k).

    With V the first k columns of (G + alpha I)^-1 and C = V_1 their first rows, the inverse is
    V C^-1 V^T and, beside the first k coefficients, (G_22 + alpha I)^-1: of x - V C^-1 x_1.
    Returns whether V was solved.
    """
    from scipy.sparse.linalg import LinearOperator, cg  # noqa: PLC0415  for trends alone

    D, n, at = len(samples), samples.shape[1] - k, np.array([alpha])
    system = LinearOperator((D, D), lambda v: times(v[:, None])[:, 0] + alpha * v, dtype=float)
    near = LinearOperator((D, D), lambda v: known.solve(v[:, None], at)[:, 0], dtype=float)
    units = np.eye(D, k).T
    solved = [cg(system, each, rtol=_EXACT, maxiter=_MOST_STEPS, M=near) for each in units]
    first = np.column_stack([column for column, _ in solved])
    values, vectors = np.linalg.eigh((first[:k] + first[:k].T) / 2.0)
    half = vectors / np.sqrt(np.maximum(values, _ROUNDING * values.max()))
    along, inside = first @ half, (half.T @ samples[:k, :n]).astype(np.float32)
    narrow, width = along.astype(np.float32), _width(D)
    for start in range(0, n, width):
        some = slice(start, min(start + width, n))
        samples[:, some] -= narrow @ inside[:, some]
    samples[:k, :n] = 0.0
    samples[:, :n] *= np.float32(np.sqrt(1.0 + k / n))
    samples[:, n:] = along * np.sqrt(n + k)
    return all(failed == 0 for _, failed in solved)


def _sampled(
    times: Callable[[Floats], Floats], known: BlockPreconditioner, alpha: float, z: Floats
) -> tuple[Floats, float]:
    """Return S^-T M^(-1/2) z of columns z (D, k), and by what share of it that is off.

    Each column has a process of its own.
    """
    norms = np.linalg.norm(z, axis=0)
    vector, before, beta = z / norms, np.zeros_like(z), np.zeros(z.shape[1])
    basis, diagonal, beside = list[Array](), list[Floats](), list[Floats]()
    weights, off = np.zeros((0, z.shape[1])), 1.0
    for _ in range(_STEPS):
        basis.append(vector.astype(np.float32))
        half = known.whitened(vector, alpha, transposed=True)
        after = known.whitened(times(half) + alpha * half, alpha) - beta * before
        diagonal.append(np.einsum("dk,dk->k", after, vector))
        after -= diagonal[-1] * vector
        last, weights = weights, _inverse_root(np.array(diagonal), np.array(beside)) * norms
        beta = np.linalg.norm(after, axis=0)
        beside.append(beta)
        before, vector = vector, after / np.maximum(beta, np.finfo(float).tiny)
        # The basis is orthonormal, so that weights tell what vectors change by.
        step = weights - np.pad(last, ((0, 1), (0, 0)))
        off = _LIKE_STEPS * float(np.linalg.norm(step) / np.linalg.norm(weights))
        if not (beta > _OFF * 1e-3).any():  # there are no more directions
            off = 0.0
        if off < _OFF:
            break
    found = np.zeros_like(z)
    for each, weight in zip(basis, weights, strict=True):
        found += each * weight
    return known.whitened(found, alpha, transposed=True), off


def _inverse_root(diagonal: Floats, beside: Floats) -> Floats:
    """Return the first columns (s, k) of T^(-1/2) of tridiagonal matrices T."""
    steps = np.arange(len(diagonal))
    matrices = np.zeros((diagonal.shape[1], len(steps), len(steps)))
    matrices[:, steps, steps] = diagonal.T
    matrices[:, steps[1:], steps[:-1]] = beside.T
    values, vectors = np.linalg.eigh(matrices)
    values = np.maximum(values, _ROUNDING * values.max(axis=1, keepdims=True))
    return np.einsum("ksv,kv->sk", vectors, vectors[:, 0] / np.sqrt(values))


def n_samples(n_components: int, n_penalties: int = 1) -> int:
    n = int(np.clip(_BYTES // (8 * n_components), _FEWEST, _MOST))
    return max(n // n_penalties, _LEAST)


def sampling_bytes(n_components: int, n_penalties: int) -> int:
    """Return what sampling takes besides what products do, with the samples of all penalties."""
    D, width = n_components, _width(n_components)
    n = n_penalties * n_samples(D, n_penalties)
    return 4 * D * (2 * n + width * _STEPS) + 8 * 8 * D * width


def _width(n_components: int) -> int:
    """Return how many samples are made at a time."""
    return int(np.clip(_BYTES // (4 * n_components * _STEPS), 4, 32))
