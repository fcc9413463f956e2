"""Cholesky factorisation of a triangle in its own memory, on all cores with one BLAS thread each.

For every panel j: A_ij -= L_i L_j^T of the columns before it, A_jj = L_jj L_jj^T, L_ij = A_ij
L_jj^-T.  The rows below are cut into the same strips whatever the number of threads, which changes
no bit.  NumPy's products run without the interpreter's lock; SciPy's wrappers, which hold it,
compute only blocks of the diagonal, a millisecond each.
"""

import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from streamkern._typing import Array, Floats
from streamkern.runtime.memory import usable_cores
from streamkern.runtime.threads import blas_threads
from streamkern.statistics import Triangle
from streamkern.statistics.triangle import PANEL, rows_of

# Rows, and columns of the inverse, that are one piece of work; a triangle that is solved at once.
_STRIP, _COLUMNS, _LEAF = 256, 128, 64
# As many steps as LAPACK takes to estimate a norm.
_MOST_STEPS = 5


@dataclass(frozen=True)
class Cholesky:
    """L, the lower triangle for which L L^T is a positive definite matrix A."""

    panels: list[Array]  # rows of L up to the diagonal block
    blocks: list[Floats]  # the diagonal blocks, contiguous
    n_threads: int

    @classmethod
    def of(cls, matrix: Triangle, n_threads: int | None = None) -> "Cholesky":
        """Factorise a matrix of double precision in place: D^3 / 6 multiply-adds.

        Its panels are lost also where it is not positive definite, which raises LinAlgError.
        """
        n_threads = n_threads or usable_cores()
        blocks: list[Floats] = []
        with blas_threads(1), ThreadPoolExecutor(n_threads) as pool:
            for j, panel in enumerate(matrix.panels):
                # First in the queue, so that no thread waits for a block that is not yet begun.
                block = pool.submit(_diagonal, panel)
                strips = [
                    pool.submit(_strip, below[start : start + _STRIP], panel, block)
                    for below in matrix.panels[j + 1 :]
                    for start in range(0, len(below), _STRIP)
                ]
                blocks.append(block.result())
                for strip in strips:
                    strip.result()
        return cls(matrix.panels, blocks, n_threads)

    @classmethod
    def of_shifted(cls, gram: Triangle, alpha: float, n_threads: int | None = None) -> "Cholesky":
        """Factorise G + alpha I in a copy of G."""
        shifted = gram.astype(np.float64)
        shifted.add_diagonal(float(alpha))
        return cls.of(shifted, n_threads)

    @property
    def order(self) -> int:
        return sum(map(len, self.panels))

    def solve(self, columns: Floats) -> Floats:
        """Return A^-1 C of columns C (D, k)."""
        return self.solve_upper(self.solve_lower(columns))

    def solve_lower(self, columns: Floats) -> Floats:
        """Return L^-1 C of columns C (D, k)."""
        X = np.array(columns)
        with blas_threads(1):
            for panel, block in zip(self.panels, self.blocks, strict=True):
                start, stop = rows_of(panel)
                X[start:stop] -= panel[:, :start] @ X[:start]
                _solve_block(block, X[start:stop])
        return X

    def solve_upper(self, columns: Floats) -> Floats:
        """Return L^-T C of columns C (D, k)."""
        X = np.array(columns)
        with blas_threads(1):
            for panel, block in zip(self.panels[::-1], self.blocks[::-1], strict=True):
                start, stop = rows_of(panel)
                _solve_block(block, X[start:stop], transposed=True)
                X[:start] -= panel[:, :start].T @ X[start:stop]
        return X

    def condition(self, norm: float) -> float:
        """Estimate the condition of A, of this 1-norm; the estimate is rarely too small.

        Higham (1988), "FORTRAN codes for estimating the one-norm of a real or complex matrix, with
        applications to condition estimation".
        """
        D = self.order
        x, size = np.full((D, 1), 1.0 / D), 0.0
        for _ in range(_MOST_STEPS):
            y = self.solve(x)
            size = max(size, float(np.abs(y).sum()))
            z = self.solve(np.where(y < 0, -1.0, 1.0))
            largest = int(np.abs(z).argmax())
            if np.abs(z[largest, 0]) <= float((z * x).sum()):
                break
            x = np.zeros((D, 1))
            x[largest] = 1.0
        signs = np.where(np.arange(D) % 2, -1.0, 1.0)[:, None]
        y = self.solve(signs * np.linspace(1.0, 2.0, D)[:, None])
        return norm * max(size, 2.0 * float(np.abs(y).sum()) / (3.0 * D))

    def inverse_trace(self) -> float:
        """Return tr A^-1, the sum of the squares of L^-1: D^3 / 6 multiply-adds."""
        return math.fsum(self.over_inverse(lambda _, part: float(np.vdot(part, part))))

    def over_inverse(self, function: Callable[[slice, Floats], Any]) -> list[Any]:
        """Return what a function, called by several threads, makes of parts of L^-1.

        It takes a slice of columns, and their rows from the diagonal's panel down, (D - r, width).
        """
        n_threads = _inverting_threads(self.order, self.n_threads)
        with blas_threads(1), ThreadPoolExecutor(n_threads) as pool:
            inverses = [lapack.dtrtri(block.T)[0].T for block in self.blocks]

            def part(j: int, columns: slice) -> Any:
                return function(columns, self._inverse_part(j, columns, inverses))

            parts = [
                pool.submit(part, j, slice(start, min(start + _COLUMNS, stop)))
                for j, (first, stop) in enumerate(map(rows_of, self.panels))
                for start in range(first, stop, _COLUMNS)
            ]
            return [part.result() for part in parts]

    def _inverse_part(self, j: int, columns: slice, inverses: list[Floats]) -> Floats:
        """Return columns that panel j has the diagonal of, from its first row down."""
        first = rows_of(self.panels[j])[0]
        part = np.empty((self.order - first, columns.stop - columns.start))
        part[: len(inverses[j])] = inverses[j][:, columns.start - first : columns.stop - first]
        for panel, inverse in zip(self.panels[j + 1 :], inverses[j + 1 :], strict=True):
            start, stop = rows_of(panel)
            product = panel[:, first:start] @ part[: start - first]
            np.matmul(
                inverse, np.negative(product, out=product), out=part[start - first : stop - first]
            )
        return part


def inverting_bytes(order: int) -> int:
    """Return what `Cholesky.over_inverse` takes besides the factor, on all cores."""
    blocks = sum(min(PANEL, order - start) ** 2 for start in range(0, order, PANEL))
    return 16 * blocks + 16 * _COLUMNS * order * _inverting_threads(order, usable_cores())


def _inverting_threads(order: int, n_threads: int) -> int:
    """Return how many parts of the inverse may be in memory: less than another triangle."""
    return min(n_threads, max(order // (2 * _COLUMNS), 1))


def _diagonal(panel: Floats) -> Floats:
    """Factorise the diagonal block of a panel, whose columns before it are those of L."""
    start = rows_of(panel)[0]
    block = panel[:, start:].copy()
    if start:
        block -= panel[:, :start] @ panel[:, :start].T
    factor, failed = lapack.dpotrf(block.T, lower=0, clean=1, overwrite_a=1)
    if failed or not (np.diagonal(factor) > 0).all():  # LAPACK may not notice a NaN
        raise np.linalg.LinAlgError("the matrix is not positive definite.")
    panel[:, start:] = factor.T
    return np.ascontiguousarray(factor.T)


def _strip(rows: Floats, panel: Floats, block: Future[Floats]) -> None:
    """Turn the part of rows that is above a panel's diagonal block into that of L."""
    start, stop = rows_of(panel)
    part = rows[:, start:stop]
    if start:
        part -= rows[:, :start] @ panel[:, :start].T
    _solve_rows(block.result(), part)


def _solve_rows(lower: Floats, rows: Floats) -> None:
    """Solve X L^T = B in place, halving L so that most of the work is in products."""
    n = len(lower)
    if n <= _LEAF:
        rows[...] = blas.dtrsm(1.0, lower.T, rows.T, trans_a=1).T
        return
    half = n // 2
    _solve_rows(lower[:half, :half], rows[:, :half])
    rows[:, half:] -= rows[:, :half] @ lower[half:, :half].T
    _solve_rows(lower[half:, half:], rows[:, half:])


def _solve_block(block: Floats, columns: Floats, *, transposed: bool = False) -> None:
    """Solve L X = C, or L^T X = C, in place."""
    # The transpose of an array by rows is what LAPACK takes without a copy.
    columns[...] = blas.dtrsm(1.0, block.T, columns.T, side=1, trans_a=int(transposed)).T
