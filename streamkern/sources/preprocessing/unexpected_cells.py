"""Cells that a recipe did not expect, counted."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import TYPE_CHECKING

from streamkern.errors import StreamkernWarning
from streamkern.errors.formatting import listed

if TYPE_CHECKING:
    from streamkern.sources.preprocessing.column_encoders import Unexpected

# Categories that are remembered by name, and how many are named.
_KNOWN, _NAMED = 1_000, 5


class Tally:
    """Counts of categories that are new and of cells that are missing."""

    def __init__(self) -> None:
        self._counts = {"unseen_categories": 0, "imputed_cells": 0}
        self._categories: Counter[str] = Counter()
        self._columns: Counter[str] = Counter()

    def add(self, name: str, found: Unexpected) -> None:
        """Count cells of a column."""
        self._counts["unseen_categories"] += len(found.categories)
        self._counts["imputed_cells"] += found.n_missing
        self._columns += Counter({name: found.n_missing})
        for category in found.categories:
            called = f"{name}={category}"
            if called in self._categories or len(self._categories) < _KNOWN:
                self._categories[called] += 1

    def as_dict(self) -> dict[str, int]:
        """Return the counts, none where all are 0."""
        return dict(self._counts) if any(self._counts.values()) else {}

    def warn(self, stacklevel: int = 2) -> None:
        """Warn of what was counted, in one sentence, unless that is nothing."""
        whats = "hold categories that the fit had not", "are missing and were imputed"
        said = [
            f"{what}: {n:,}, {listed((f'{of} ({k:,})' for of, k in each.most_common()), _NAMED)}"
            for what, n, each in zip(
                whats, self._counts.values(), (self._categories, self._columns), strict=True
            )
            if n
        ]
        if said:
            text = f"the table has cells that {'; and that '.join(said)}."
            warnings.warn(text, StreamkernWarning, stacklevel=stacklevel + 1)
