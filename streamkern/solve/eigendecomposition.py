"""The eigendecomposition of a symmetric matrix on all cores, with one BLAS thread each.

A Q = Q T by blocks of Householder reflections, T = Z diag(d) Z^T by divide and conquer, V = Q Z.
The products of the first step and all of the last are cut into the same pieces whatever the number
of threads, which therefore changes no bit.  With BLAS's own threads it would; and these wait for
each other in loops, which takes many times as long where another process wants a core.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from streamkern._typing import Floats
from streamkern.runtime.lapack import has_c_integers, routine
from streamkern.runtime.memory import usable_cores
from streamkern.runtime.threads import blas_threads
from streamkern.statistics import Triangle

# Up to this order LAPACK does all in one call, above the second one its integers are too small.
SMALL, _LARGE = 1024, 46_000
# Reflections that are applied to the rest together, and its columns that are one piece.
_BLOCK, _PIECE = 32, 256
# Random vectors beyond the rank, so that all of the range is among their products.
_OVERSAMPLED = 10


def are_taken(order: int) -> bool:
    """Say whether LAPACK's routines take matrices of this order here."""
    return order <= _LARGE and has_c_integers()


def decomposition_bytes(order: int) -> int:
    """Return what a matrix and `decomposed` take: three matrices of (D, D), five with NumPy's."""
    return (40 if order > _LARGE else 24) * order**2


def decomposed(matrix: Floats, n_threads: int | None = None) -> tuple[Floats, Floats]:
    """Return eigenvalues (D,), ascending, and eigenvectors (D, D) in columns, on all cores.

    The symmetric matrix is overwritten, and two more of its size are in memory meanwhile.

    Dongarra, Sorensen and Hammarling (1989), "Block reduction of matrices to condensed forms for
    eigenvalue computations".
    Cuppen (1981), "A divide and conquer method for the symmetric tridiagonal eigenproblem".
    """
    D = len(matrix)
    with blas_threads(1):
        if not are_taken(D):
            values, vectors = np.linalg.eigh(matrix)
            return values, vectors
        if D <= SMALL:
            values, work = np.empty(D), np.empty(1 + 6 * D + 2 * D**2)
            sizes = len(work), np.empty(3 + 5 * D, dtype=np.intc), 3 + 5 * D
            routine("dsyevd")("V", "L", D, matrix, max(D, 1), values, work, *sizes)
            return values, matrix.T
        with ThreadPoolExecutor(n_threads or usable_cores()) as pool:
            values, beside, taus = _tridiagonal(matrix, pool)
            vectors = _of_tridiagonal(values, beside)
            _turn(vectors, matrix, taus, pool)
    return values, vectors.T


def decomposed_in_range(matrix: Triangle, rank: int) -> tuple[Floats, Floats]:
    """Return the eigenvalues and vectors of a positive semidefinite matrix of at most some rank.

    Products with a few more random vectors than its rank, repeated once against rounding, span its
    range, where the problem is small.  Vectors outside of it are left at 0.

    Halko, Martinsson and Tropp (2011), "Finding structure with randomness: probabilistic algorithms
    for constructing approximate matrix decompositions".
    """
    D = matrix.order
    k = min(rank + _OVERSAMPLED, D)
    values, vectors = np.zeros(D), np.zeros((D, D))
    Q = np.random.default_rng(0).standard_normal((D, k))
    with blas_threads(1), ThreadPoolExecutor(usable_cores()) as pool:

        def product(columns: Floats) -> Floats:
            parts = [columns[:, start : start + _PIECE] for start in range(0, k, _PIECE)]
            return np.concatenate(list(pool.map(matrix.__matmul__, parts)), axis=1)

        for _ in range(2):
            Q = np.linalg.qr(product(Q))[0]
        inside, rotation = decomposed(Q.T @ product(Q))
        r = min(rank, k)  # the others are rounding
        np.maximum(inside[k - r :], 0.0, out=values[D - r :])
        np.matmul(Q, rotation[:, k - r :], out=vectors[:, D - r :])
    return values, vectors


def shifted_solutions(
    matrix: Floats, shifts: Floats, columns: Floats, n_threads: int | None = None
) -> Floats:
    """Return (A + s I)^-1 C for columns C (D, k) at shifts s (m,): (D, m, k), on all cores.

    The symmetric matrix is overwritten.  T = Q^T A Q needs no eigenvectors, which take two thirds
    of a decomposition.  LinAlgError is raised unless A + s I is positive definite.

    Elden (1977), "Algorithms for the regularization of ill-conditioned least squares problems".
    """
    D, k = columns.shape
    with blas_threads(1), ThreadPoolExecutor(n_threads or usable_cores()) as pool:
        diagonal, beside, taus = _tridiagonal(matrix, pool)
        turned, solved = columns.T.copy(), np.empty((len(shifts), k, D))
        _turn(turned, matrix, taus, pool, back=False)
        for shifted, rows in zip(diagonal + shifts[:, None], solved, strict=True):
            rows[:], below = turned, beside[: D - 1].copy()
            routine("dptsv")(D, k, shifted, below, rows, D)
        _turn(solved.reshape(-1, D), matrix, taus, pool)
    return solved.transpose(2, 0, 1)


def _tridiagonal(A: Floats, pool: ThreadPoolExecutor) -> tuple[Floats, Floats, Floats]:
    """Return the diagonals of T, and the scales of the reflections, which A then holds."""
    D = len(A)
    diagonal, beside, taus = np.empty(D), np.empty(D), np.empty(D)
    after = np.empty((_BLOCK, D))
    done = 0
    while D - done > 2 * _BLOCK:
        size, first = D - done, done + _BLOCK
        # Reflections v and vectors w, in rows: the rest becomes A - v w^T - w v^T.
        routine("dlatrd")(
            "L", size, _BLOCK, A[done:, done:], D, beside[done:], taus[done:], after, D
        )
        v, w = A[done:first, first:], after[:, _BLOCK:size]
        rest, both = A[first:, first:], (np.vstack([v, w]), np.vstack([w, v]))
        list(pool.map(partial(_subtract, rest, *both), range(0, D - first, _PIECE)))
        here = np.arange(done, first)
        diagonal[here], A[here, here + 1] = A[here, here], beside[here]
        done = first
    work = np.empty(_BLOCK * D)
    routine("dsytrd")(
        *("L", D - done, A[done:, done:], D, diagonal[done:], beside[done:], taus[done:]),
        *(work, len(work)),
    )
    return diagonal, beside, taus


def _subtract(rest: Floats, left: Floats, right: Floats, start: int) -> None:
    """Subtract the products of rows from a piece of the rest, above the diagonal alone."""
    size, step = len(rest) - start, rest.strides[0] // rest.itemsize
    routine("dgemm")(
        *("N", "T", size, min(_PIECE, size), len(left), -1.0),
        *(right[:, start:], len(rest), left[:, start:], len(rest), 1.0, rest[start:, start:], step),
    )


def _of_tridiagonal(diagonal: Floats, beside: Floats) -> Floats:
    """Return the eigenvectors of T in rows; its diagonal becomes the eigenvalues."""
    D = len(diagonal)
    vectors, work = np.empty((D, D)), np.empty(1 + 4 * D + D**2)
    iwork = np.empty(3 + 5 * D, dtype=np.intc)
    routine("dstedc")("I", D, diagonal, beside, vectors, D, work, len(work), iwork, len(iwork))
    return vectors


def _turn(
    vectors: Floats, A: Floats, taus: Floats, pool: ThreadPoolExecutor, *, back: bool = True
) -> None:
    """Multiply vectors, in rows, in place by Q, or by Q^T."""
    D, reflect, kind = len(A), routine("dormtr"), "N" if back else "T"

    def turn(start: int) -> None:
        part = vectors[start : start + _PIECE]
        work = np.empty(64 * len(part) + 65 * 64)
        reflect("L", "L", kind, D, len(part), A, D, taus, part, D, work, len(work))

    list(pool.map(turn, range(0, len(vectors), _PIECE)))
