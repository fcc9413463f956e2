"""Histograms of pairs: predicted values against actual ones, and against residuals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streamkern.predict.evaluation import Measure
from streamkern.statistics import total

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats
    from streamkern.sources import Block

# How far bins reach to both sides, in standard deviations of a target and in errors, and how many.
_VALUES, _VALUE_BINS = 4.0, 96
_RESIDUALS, _RESIDUAL_BINS = 5.0, 80


@dataclass(frozen=True)
class PairBins:
    """Bins of the values and of the residuals of the first t targets, all equally wide.

    Counts have one bin more at both ends of every axis, for what lies beyond the edges.
    """

    values: Floats  # edges for predicted and for actual values, (t, B + 1)
    residuals: Floats  # edges for actual less predicted values, (t, R + 1)

    @classmethod
    def about(cls, mean: Floats, deviation: Floats, error: Floats) -> PairBins:
        """Return bins that reach far enough for targets (t,) with these errors."""

        def edges(centre: Floats, reach: Floats, n_bins: int) -> Floats:
            wide = np.where(reach > 0, reach, 1.0)
            return centre[:, None] + wide[:, None] * np.linspace(-1.0, 1.0, n_bins + 1)

        return cls(
            edges(mean, _VALUES * deviation, _VALUE_BINS),
            edges(np.zeros_like(mean), _RESIDUALS * error, _RESIDUAL_BINS),
        )

    def counted(self, predicted: Floats, actual: Floats) -> tuple[Array, Array]:
        """Count rows (n, q), by predicted and actual value and by predicted value and residual.

        Counts are of shape (t, B + 2, B + 2) and (t, B + 2, R + 2), int64.
        """
        pairs, residuals = [], []
        for j, (values, errors) in enumerate(zip(self.values, self.residuals, strict=True)):
            first = np.searchsorted(values, predicted[:, j], side="right")
            pairs.append(_table(first, actual[:, j], values))
            residuals.append(_table(first, actual[:, j] - predicted[:, j], errors, len(values) + 1))
        return np.array(pairs), np.array(residuals)


def _table(first: Array, second: Floats, edges: Floats, n_first: int | None = None) -> Array:
    """Count pairs of a bin and a value."""
    n_second = len(edges) + 1
    n_first = n_first or n_second
    places = first * n_second + np.searchsorted(edges, second, side="right")
    return np.bincount(places, minlength=n_first * n_second).reshape(n_first, n_second)


class PairCounts(Measure):
    """Counts of rows in bins, as of `PairBins.counted`, whatever they weigh."""

    bins: PairBins
    pairs: Array = total(dtype=int)
    residuals: Array = total(dtype=int)

    def add(self, rows: Block, predicted: Floats) -> None:
        """Count rows."""
        pairs, residuals = self.bins.counted(predicted, rows.y)
        self.pairs, self.residuals = self.pairs + pairs, self.residuals + residuals
