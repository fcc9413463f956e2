"""Leave-one-out errors of a fitted model, and the rows that matter most to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.predict.evaluation import Measure
from streamkern.statistics import Sums, joint, part, total

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats
    from streamkern.predict.deviation import Deviation
    from streamkern.sources import Block

# A row with this leverage or more determines its own prediction: it has no error without itself.
_WHOLE = 1.0 - 1e-9


class Largest(Sums):
    """The k rows with the largest values of a quantity, with what else is known of them.

    Values (k,) descend; rows of equal value are in the order of their places.
    """

    n_rows: int
    values: Floats = joint(0)
    places: Array = joint(0, dtype=np.int64)
    facts: Floats = joint(0, 0)

    def add(self, *rows: Array) -> None:
        """Consider rows, with values, places and facts."""
        vars(self).update(self._largest(*rows))

    def _largest(self, *rows: Array) -> dict[str, Any]:
        mine = self.values, self.places, self.facts
        if len(self.values):
            rows = tuple(np.concatenate(pair) for pair in zip(mine, rows, strict=True))
        values, places, facts = rows
        order = np.lexsort((places, -values))[: self.n_rows]
        return {"values": values[order], "places": places[order], "facts": facts[order]}

    def merged_jointly(self, other: Largest) -> dict[str, Any]:
        """Return the largest of both sets of rows."""
        rows = other.values, other.places, other.facts
        return self._largest(*rows) if len(other.values) else dict(self.detached())


class LeaveOneOut(Measure):
    """Sums of leave-one-out errors, and the rows of largest leverage and of largest error.

    The error without row i is e_i / (1 - h_i), h_i = s_i (1/N + c_i^T (G + alpha I)^-1 c_i) its
    leverage.  Only rows that the model was fitted on have such errors.  Facts of rows are their
    leverage and then their errors, (k, 1 + q).

    References
    ----------
    Cook and Weisberg (1982), "Residuals and influence in regression".
    """

    deviation: Deviation
    n_largest: int = 10
    weight: float = total()
    n_rows: int = total(dtype=int)
    # Rows that determine their own prediction, which are left out of the sums.
    n_whole: int = total(dtype=int)
    # Weighted squares of errors, (q,), of residuals, of all rows, (q,), and leverages, (t,).
    squared: Floats = total()
    rss: Floats = total()
    leverage: Floats = total()
    leverages: Largest = part(lambda measure: Largest(measure.n_largest))
    errors: Largest = part(lambda measure: Largest(measure.n_largest))

    def add(self, rows: Block, predicted: Floats) -> None:
        """Add rows."""
        weights = np.ones(len(rows)) if rows.weights is None else rows.weights
        leverages = weights[:, None] * self.deviation.leverages(rows.X)
        residuals = rows.y - predicted
        spare, largest = 1.0 - leverages, leverages.max(axis=1)
        whole = largest >= _WHOLE
        errors = np.where(whole[:, None], 0.0, residuals / np.where(whole[:, None], 1.0, spare))
        self.squared = self.squared + weights @ errors**2
        self.rss = self.rss + weights @ residuals**2
        self.leverage = self.leverage + leverages.sum(axis=0)
        self.weight += float(weights[~whole].sum())
        self.n_rows += len(rows)
        self.n_whole += int(whole.sum())
        facts = np.column_stack([largest, errors])
        self.leverages.add(largest, rows.places(), facts)
        self.errors.add(np.abs(errors).max(axis=1), rows.places(), facts)

    @property
    def rmse(self) -> Floats:
        """The root mean squared leave-one-out error, (q,); NaN where no row has one."""
        with np.errstate(invalid="ignore"):
            rmse: Floats = np.sqrt(self.squared / self.weight)
        return rmse
