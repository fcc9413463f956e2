"""Leave-one-out errors of a fitted model, and the rows that matter most to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamkern.statistics.base import Statistic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamkern._typing import Array, Floats
    from streamkern.predict.deviation import Deviation
    from streamkern.predict.predictor import Predictor
    from streamkern.sources import Block

# A row with this leverage or more determines its own prediction: it has no error without itself.
_WHOLE = 1.0 - 1e-9


class Largest:
    """The k rows with the largest values of a quantity, with what else is known of them.

    Parameters
    ----------
    n_rows : int
        k.

    Attributes
    ----------
    values : ndarray of shape (k,)
        Descending; rows of equal value by their place.
    places : ndarray of shape (k,), int64
    facts : ndarray of shape (k, m)
    """

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.values = np.empty(0)
        self.places = np.empty(0, dtype=np.int64)
        self.facts: Floats = np.empty((0, 0))

    def add(self, values: Floats, places: Array, facts: Floats) -> None:
        """Consider rows."""
        if len(self.values):
            values = np.concatenate([self.values, values])
            places = np.concatenate([self.places, places])
            facts = np.concatenate([self.facts, facts])
        order = np.lexsort((places, -values))[: self.n_rows]
        self.values, self.places, self.facts = values[order], places[order], facts[order]


class LeaveOneOut(Statistic):
    """Sums of leave-one-out errors, and the rows of largest leverage and of largest error.

    The error without row i is e_i / (1 - h_i), h_i = s_i (1/N + c_i^T (G + alpha I)^-1 c_i) its
    leverage.  Only rows that the model was fitted on have such errors.

    Parameters
    ----------
    predictor : Predictor
    deviation : Deviation
    n_largest : int
        How many rows to name.

    Attributes
    ----------
    weight : float
    n_rows : int
    n_whole : int
        Rows that determine their own prediction, which are left out of the sums.
    squared : ndarray of shape (q,)
        Sum of weighted squared errors.
    rss : ndarray of shape (q,)
        Sum of weighted squared residuals, of all rows.
    leverage : ndarray of shape (t,)
        Sum of the leverages, which is the effective number of degrees of freedom.
    leverages, errors : Largest
        The rows of largest leverage and of largest error over all targets; their facts are
        leverage and then errors, (k, 1 + q).

    References
    ----------
    Cook and Weisberg (1982), "Residuals and influence in regression".
    """

    stays_behind = ("predictor", "deviation", "n_largest")

    def __init__(self, predictor: Predictor, deviation: Deviation, n_largest: int = 10) -> None:
        self.predictor = predictor
        self.deviation = deviation
        self.n_largest = n_largest
        self.weight = 0.0
        self.n_rows = 0
        self.n_whole = 0
        self.squared: Floats | float = 0.0
        self.rss: Floats | float = 0.0
        self.leverage: Floats | float = 0.0
        self.leverages = Largest(n_largest)
        self.errors = Largest(n_largest)

    def zero(self) -> LeaveOneOut:
        """Return the statistic of no rows, for the same model."""
        return LeaveOneOut(self.predictor, self.deviation, self.n_largest)

    def update(self, blocks: Iterable[Block]) -> None:
        """Add rows."""
        for block in blocks:
            weights = np.ones(len(block)) if block.weights is None else block.weights
            leverages = weights[:, None] * self.deviation.leverages(block.X)
            residuals = block.y - self.predictor.predict(block.X).reshape(block.y.shape)
            spare = 1.0 - leverages
            whole = leverages.max(axis=1) >= _WHOLE
            errors = np.where(whole[:, None], 0.0, residuals / np.where(whole[:, None], 1.0, spare))
            self.squared = self.squared + weights @ errors**2
            self.rss = self.rss + weights @ residuals**2
            self.leverage = self.leverage + leverages.sum(axis=0)
            self.weight += float(weights[~whole].sum())
            self.n_rows += len(block)
            self.n_whole += int(whole.sum())
            largest = leverages.max(axis=1)
            facts = np.column_stack([largest, errors])
            self.leverages.add(largest, block.places(), facts)
            self.errors.add(np.abs(errors).max(axis=1), block.places(), facts)

    def merge(self, other: LeaveOneOut) -> LeaveOneOut:
        """Return the statistic of both sets of rows."""
        both = self.zero()
        both.weight = self.weight + other.weight
        both.n_rows = self.n_rows + other.n_rows
        both.n_whole = self.n_whole + other.n_whole
        both.squared = self.squared + other.squared
        both.rss = self.rss + other.rss
        both.leverage = self.leverage + other.leverage
        for name in ("leverages", "errors"):
            for part in (getattr(self, name), getattr(other, name)):
                if len(part.values):
                    getattr(both, name).add(part.values, part.places, part.facts)
        return both

    @property
    def rmse(self) -> Floats:
        """The root mean squared leave-one-out error, (q,); NaN where no row has one."""
        with np.errstate(invalid="ignore"):
            rmse: Floats = np.sqrt(self.squared / self.weight)
        return rmse
