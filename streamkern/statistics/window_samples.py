"""Samples of the rows in boxes around some places, for what rows near to each other tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamkern.statistics.base import Statistic
from streamkern.statistics.declared_sums import parts
from streamkern.statistics.row_hashes import RowSample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from streamkern._typing import Array, Floats
    from streamkern.sources import Block


class WindowSamples(Statistic):
    """A sample of up to k rows in every one of w boxes, which may overlap.

    Boxes have centres (w, p) and half sides (w, p) in what `placed` makes of rows.
    """

    samples: tuple[RowSample, ...] = parts()

    def __init__(
        self,
        placed: Callable[[Array], Floats],
        centres: Floats,
        halves: Floats,
        n_rows: int,
        random_state: int = 0,
    ) -> None:
        self.placed, self.centres, self.halves = placed, centres, halves
        self.samples = tuple(RowSample(n_rows, random_state) for _ in centres)

    def update(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            places = self.placed(block.X)
            boxes = zip(self.samples, self.centres, self.halves, strict=True)
            for sample, centre, half in boxes:
                inside = (np.abs(places - centre) <= half).all(axis=1)
                if inside.any():
                    sample.update([block.where(inside)])
