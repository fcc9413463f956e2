"""What was not expected of rows that a recipe is applied to, counted."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import TYPE_CHECKING

from streamkern.errors import StreamkernWarning
from streamkern.wording import listed

if TYPE_CHECKING:
    from streamkern.recipes.columns import Noted

# Categories that are remembered by name, and columns and categories that are named.
_KNOWN, _NAMED = 1_000, 5


class Tally:
    """Counts of categories that are new and of cells that are missing.

    Attributes
    ----------
    unseen_categories, imputed_cells : int
        Cells of either kind.
    """

    def __init__(self) -> None:
        self.unseen_categories = self.imputed_cells = 0
        self._categories: Counter[str] = Counter()
        self._columns: Counter[str] = Counter()

    def add(self, name: str, noted: Noted) -> None:
        """Count what was noted of some cells of a column."""
        self.unseen_categories += len(noted.unseen)
        self.imputed_cells += noted.missing
        if noted.missing:
            self._columns[name] += noted.missing
        for category in noted.unseen:
            called = f"{name}={category}"
            if called in self._categories or len(self._categories) < _KNOWN:
                self._categories[called] += 1

    def as_dict(self) -> dict[str, int]:
        """Return the counts, as JSON has them."""
        return {"unseen_categories": self.unseen_categories, "imputed_cells": self.imputed_cells}

    def warn(self, stacklevel: int = 2) -> None:
        """Warn of what was counted, in one sentence, unless that is nothing."""
        said = []
        for n, what, counts in (
            (self.unseen_categories, "hold categories that the fit had not", self._categories),
            (self.imputed_cells, "are missing and were imputed", self._columns),
        ):
            if n:
                named = (f"{name} ({count:,})" for name, count in counts.most_common())
                said.append(f"{what}: {n:,}, {listed(named, _NAMED)}")
        if said:
            text = f"the table has cells that {'; and that '.join(said)}."
            warnings.warn(text, StreamkernWarning, stacklevel=stacklevel + 1)
