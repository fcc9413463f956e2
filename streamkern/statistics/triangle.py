"""A symmetric matrix held as one triangle, in panels that a matrix product can write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats

_PANEL = 256


class Triangle:
    """The lower triangle of a symmetric (D, D) matrix: D (D + 256) / 2 numbers at most.

    Panel i holds rows 256 i to 256 (i + 1) up to the diagonal block, which is kept whole.

    Parameters
    ----------
    order : int
        D.
    """

    def __init__(self, order: int) -> None:
        self.order = order
        self.panels: list[Floats] = [
            np.zeros((min(_PANEL, order - start), min(start + _PANEL, order)))
            for start in range(0, order, _PANEL)
        ]

    def add(self, matrix: Array) -> None:
        """Add a symmetric (D, D) matrix of any float dtype, in place."""
        for i, panel in enumerate(self.panels):
            start = i * _PANEL
            np.add(panel, matrix[start : start + len(panel), : panel.shape[1]], out=panel)

    def __add__(self, other: Triangle) -> Triangle:
        """Return the sum, leaving the two as they are."""
        total = Triangle(0)
        total.order = self.order
        total.panels = [a + b for a, b in zip(self.panels, other.panels, strict=True)]
        return total

    def dense(self) -> Floats:
        """Return the whole matrix, (D, D)."""
        matrix = np.empty((self.order, self.order))
        for i, panel in enumerate(self.panels):
            start = i * _PANEL
            stop = start + len(panel)
            matrix[start:stop, :stop] = panel
            matrix[:start, start:stop] = panel[:, :start].T
        return matrix
