"""Rows with an exposure or an offset, as rows of rates or of differences.

With a logarithm for the link, the mean of a row is e exp(eta), where e is its exposure or the
exponential of its offset.  Its deviance is e^(2 - p) times that of y / e at exp(eta), where the
variance is in proportion to mean^p.  So the rows are those of the rates y / e, with such weights.
Without a link, they are those of y less the offset.

Jorgensen (1987), "Exponential dispersion models".
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamkern._typing import Array
from streamkern.errors import DataError
from streamkern.extensions.losses.loss import Loss
from streamkern.sources import Block, Source
from streamkern.sources.rows_beside import Joining, RowsBeside


@dataclass(frozen=True)
class Exposed(Joining):
    """What an exposure, or an offset, makes of rows; `power` is None where there is no link."""

    kind: str
    power: float | None

    def values(self, part: Array, start: int) -> Array:
        """Return exposures, or differences, of rows, (n,); NaN where there is none."""
        try:
            is_text = np.asarray(part).dtype.kind in "OSU"  # as columns with missing cells are read
            found = np.array([each or np.nan for each in part] if is_text else part, dtype=float)
        except (TypeError, ValueError):
            raise DataError(
                f"the {self.kind} of rows is numbers, but row {start:,} or one after it has text; "
                f"give numbers."
            ) from None
        with np.errstate(over="ignore"):
            is_log = self.kind == "offset" and self.power is not None
            used = np.exp(found) if is_log else found
        wrong = np.flatnonzero(np.isinf(used) | ((self.power is not None) & (used <= 0)))
        if len(wrong):
            error = DataError(
                f"has the {self.kind} {found[wrong[0]]:g}, but it is a finite number"
                f"{' above 0' * (self.kind == 'exposure')}; leave such rows out."
            )
            error.row = start + int(wrong[0])
            raise error
        return used

    def joined(self, block: Block, values: Array) -> Block:
        if self.power is None:
            return replace(block, y=block.y - values[:, None])
        units = np.where(np.isnan(values), 1.0, values) ** (2.0 - self.power)
        return replace(block, y=block.y / values[:, None], weights=block.each_weight() * units)


class ExposedRows(RowsBeside):
    """Rows of rates, or of differences, by a column of exposures or offsets."""

    def __init__(self, rows: Source, kind: str, name: str, loss: Loss) -> None:
        super().__init__(rows, rows.column(name))
        self.joining = Exposed(kind, getattr(loss, "power", None))
        self.weighted_by = rows.weighted_by or (None if loss.link == "identity" else name)
        self.described = {kind: name}

    def describe(self) -> dict[str, Any]:
        return self.rows.describe() | self.described
