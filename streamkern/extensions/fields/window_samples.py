"""Samples of the rows in windows of a field."""

from collections.abc import Callable, Iterable

import numpy as np

from streamkern._typing import Array, Block, Floats
from streamkern.statistics import RowSample
from streamkern.statistics.base import Composite, Statistic
from streamkern.statistics.declared_sums import part


class WindowSamples(Statistic):
    """A sample of up to k rows in every one of w boxes, which may overlap.

    Boxes have centres (w, p) and half sides (w, p) in what `placed` makes of rows.
    """

    placed: Callable[[Array], Floats]
    centres: Floats
    halves: Floats
    n_rows: int
    random_state: int = 0
    windows: Composite = part(
        lambda own: Composite(*(RowSample(own.n_rows, own.random_state) for _ in own.centres))
    )

    @property
    def samples(self) -> tuple[RowSample, ...]:
        return self.windows.parts

    def update(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            places = self.placed(block.X)
            for sample, centre, half in zip(self.samples, self.centres, self.halves, strict=True):
                inside = (np.abs(places - centre) <= half).all(axis=1)
                if inside.any():
                    sample.update([block.where(inside)])
