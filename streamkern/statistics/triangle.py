"""A symmetric matrix held as one triangle, in panels that a matrix product can write."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from tlz import partition_all

from streamkern._typing import Array, Floats
from streamkern.errors import ParameterError

# Narrow beside D, so that little more than the triangle is held.
PANEL = 512
# Rows of the triangle that are multiplied at once: the more, the less often BLAS packs the others.
_PRODUCT = 2048


class Triangle:
    """The lower triangle of a symmetric (D, D) matrix: D (D + 512) / 2 numbers at most.

    Panel i holds rows 512 i to 512 (i + 1) up to the diagonal block, which is kept whole.  One of
    the `strips` leaves out the panels before its first row.
    """

    def __init__(self, order: int, dtype: Any = np.float64, first_row: int = 0) -> None:
        self.order = order
        self.panels: list[Any] = [
            np.zeros((min(PANEL, order - start), min(start + PANEL, order)), dtype=dtype)
            for start in range(first_row, order, PANEL)
        ]

    @staticmethod
    def strips(order: int, n_strips: int) -> list[tuple[int, int]]:
        """Cut the rows into at most so many strips of about the same size, (first, stop) each."""
        n_panels = -(-order // PANEL)
        cuts = {round(n_panels * math.sqrt(i / n_strips)) for i in range(n_strips + 1)}
        return list(pairwise([min(cut * PANEL, order) for cut in sorted(cuts)]))

    def add_products(self, rows: Array, buffer: Array) -> None:
        """Add A^T A of rows A (n, D), in place: a rank-k update of the triangle alone.

        The products of a few panels are made in the precision of the rows, in a buffer of
        `product_size` numbers, and summed in that of the triangle.  NumPy's product releases the
        interpreter's lock, and takes a product with its own transpose for what it is, at half the
        cost.
        """
        for group in partition_all(_PRODUCT // PANEL, self.panels):
            (start, _), (_, stop) = rows_of(group[0]), rows_of(group[-1])
            mine = rows[:, start:stop].T
            for columns in (slice(0, start), slice(start, stop)):
                size = (stop - start) * (columns.stop - columns.start)
                if not size:
                    continue
                product = buffer[:size].reshape(stop - start, -1)
                np.matmul(mine, rows[:, columns], out=product)
                for panel in group:
                    place, made = panel[:, columns], product[rows_of(panel)[0] - start :]
                    np.add(place, made[: len(place), : place.shape[1]], out=place)

    @classmethod
    def of(cls, matrix: Array) -> Triangle:
        """Return the triangle of a symmetric (D, D) matrix, in its dtype."""
        triangle = cls(len(matrix), matrix.dtype)
        for panel in triangle.panels:
            start, stop = rows_of(panel)
            panel[...] = matrix[start:stop, :stop]
        return triangle

    def astype(self, dtype: Any) -> Triangle:
        return self.of_panels([panel.astype(dtype) for panel in self.panels])

    def add_outer(self, left: Floats, right: Floats, factor: float) -> None:
        """Add factor left right^T of vectors (D,), in place."""
        # The factor comes last, so that a symmetric matrix stays one to the last bit.
        for panel in self.panels:
            start, stop = rows_of(panel)
            np.add(panel, factor * np.outer(left[start:stop], right[:stop]), out=panel)

    def diagonal(self) -> Array:
        """Return the diagonal, (D,), or the part of it that a strip holds."""
        return np.concatenate(
            [np.diagonal(panel[:, rows_of(panel)[0] :]) for panel in self.panels] or [np.empty(0)]
        )

    def add_diagonal(self, value: float) -> None:
        for panel in self.panels:
            start, stop = rows_of(panel)
            panel[np.arange(stop - start), np.arange(start, stop)] += value

    def scale(self, factor: float) -> None:
        for panel in self.panels:
            np.multiply(panel, factor, out=panel)

    def __matmul__(self, columns: Floats) -> Floats:
        """Return the product with columns (D, k) or one of them (D,), in the same precision."""
        product = np.zeros_like(columns)
        for panel in self.panels:
            start, stop = rows_of(panel)
            product[start:stop] += panel @ columns[:stop]
            product[:start] += panel[:, :start].T @ columns[start:stop]
        return product

    def norm(self) -> float:
        """Return the 1-norm, the largest sum of absolute values in a column."""
        sums = np.zeros(self.order)
        for panel in self.panels:
            start, stop = rows_of(panel)
            sizes = np.abs(panel)
            sums[start:stop] += sizes.sum(axis=1)
            sums[:start] += sizes[:, :start].sum(axis=0)
        return float(sums.max(initial=0.0))

    def subset(self, indices: Array) -> Triangle:
        """Return the rows and columns of ascending indices (K,), as a triangle of order K."""
        part = Triangle(len(indices), self.panels[0].dtype)
        rows = iter(indices)
        for panel in part.panels:
            start, stop = rows_of(panel)
            for i, index in zip(range(start, stop), rows, strict=False):
                source = self.panels[index // PANEL][index % PANEL]
                panel[i - start, : i + 1] = source[indices[: i + 1]]
            _mirror(panel[:, start:])
        return part

    @staticmethod
    def product_size(order: int) -> int:
        """Return how many numbers the products are that are made at once."""
        return min(order, _PRODUCT) * order

    @staticmethod
    def size(order: int, first_row: int = 0) -> int:
        """Return how many numbers a triangle, or the strip from `first_row` on, holds at most."""
        return (order * (order + PANEL) - first_row * (first_row + PANEL)) // 2

    def __add__(self, other: Triangle) -> Triangle:
        return self.of_panels([a + b for a, b in zip(self.panels, other.panels, strict=True)])

    def __sub__(self, other: Triangle) -> Triangle:
        return self.of_panels([a - b for a, b in zip(self.panels, other.panels, strict=True)])

    def leading(self, order: int) -> Triangle:
        """Return the leading (order, order) block, a view of this one."""
        panels = [
            panel[: order - start, : min(start + PANEL, order)]
            for start, panel in zip(range(0, order, PANEL), self.panels, strict=False)
        ]
        return self.of_panels(panels)

    def turn_pairs(self, cosines: Floats, sines: Floats) -> None:
        """Turn rows and columns 2k and 2k + 1, in place: in double, of an even order."""
        for panel in self.panels:
            start, stop = (row // 2 for row in rows_of(panel))
            turn_pairs(panel, cosines[start:stop], sines[start:stop])
            turn_pairs(panel.T, cosines[:stop], sines[:stop])

    def turned(self, turning: Floats) -> Triangle:
        """Return R^T A R of this matrix A, for R (D, K), in double."""
        left = turning.T @ self.dense()
        turned = Triangle(turning.shape[1])
        for panel in turned.panels:
            start, stop = rows_of(panel)
            np.matmul(left[start:stop], turning[:, :stop], out=panel)
            panel[:, start:] = np.tril(panel[:, start:])
            _mirror(panel[:, start:])
        return turned

    @classmethod
    def of_panels(cls, panels: list[Any]) -> Triangle:
        """Return the triangle, or the strip of one, that has these panels."""
        triangle = cls(0)
        triangle.order, triangle.panels = panels[-1].shape[1] if panels else 0, panels
        return triangle

    def packed(self) -> Array:
        """Return the rows of the triangle up to the diagonal, one after the other."""
        rows = (row for panel in self.panels for row in panel)
        return np.concatenate([row[: i + 1] for i, row in enumerate(rows)] or [np.empty(0)])

    @classmethod
    def unpacked(cls, packed: Array) -> Triangle:
        """Return the triangle of a `packed` array, which must have D (D + 1) / 2 numbers."""
        order = (math.isqrt(8 * len(packed) + 1) - 1) // 2
        if order * (order + 1) // 2 != len(packed):
            raise ParameterError(
                f"a packed triangle has D (D + 1) / 2 numbers, not {len(packed):,}; the file is "
                f"damaged."
            )
        triangle = cls(order, packed.dtype)
        start = 0
        for panel in triangle.panels:
            first, _ = rows_of(panel)
            for length, row in enumerate(panel, first + 1):
                row[:length] = packed[start : start + length]
                start += length
            _mirror(panel[:, first:])
        return triangle

    def dense(self) -> Floats:
        matrix = np.empty((self.order, self.order))
        for panel in self.panels:
            start, stop = rows_of(panel)
            matrix[start:stop, :stop] = panel
            matrix[:start, start:stop] = panel[:, :start].T
        return matrix


def rows_of(panel: Array) -> tuple[int, int]:
    """Return the first row of a panel, and the row after its last."""
    return panel.shape[1] - len(panel), panel.shape[1]


def turn_pairs(values: Floats, cosines: Floats, sines: Floats) -> None:
    """Turn the rows 2k and 2k + 1 of values (2 L, ...) by angles (L,), in place."""
    cosines, sines = (each.reshape(-1, *[1] * (values.ndim - 1)) for each in (cosines, sines))
    first, second = values[0::2].copy(), values[1::2].copy()
    values[0::2] = cosines * first - sines * second
    values[1::2] = sines * first + cosines * second


def _mirror(block: Array) -> None:
    """Fill the upper half of a diagonal block, which is kept whole, from the lower one."""
    block += np.tril(block, -1).T
