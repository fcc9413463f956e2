"""Cells that a recipe did not expect: missing ones, and new categories."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import TYPE_CHECKING

from streamkern.errors import StreamkernWarning
from streamkern.errors.formatting import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

# Categories that are remembered by name, and how many are named.
_KNOWN, _NAMED = 1_000, 5


class Tally:
    """Counts of categories that are new and of cells that are missing."""

    def __init__(self) -> None:
        self._n_unseen = 0
        self._categories: Counter[str] = Counter()
        self._columns: Counter[str] = Counter()

    def add(self, name: str, n_missing: int, unseen: Sequence[str] = ()) -> None:
        """Count cells of a column: the missing ones, and categories that no level names."""
        self._n_unseen += len(unseen)
        self._columns += Counter({name: n_missing})
        for category in unseen:
            called = f"{name}={category}"
            if called in self._categories or len(self._categories) < _KNOWN:
                self._categories[called] += 1

    def as_dict(self) -> dict[str, int]:
        counts = {"unseen_categories": self._n_unseen, "imputed_cells": self._columns.total()}
        return counts if any(counts.values()) else {}

    def warn(self, stacklevel: int = 2) -> None:
        """Warn of what was counted, in one sentence, unless that is nothing."""
        whats = "hold categories that the fit had not", "are missing and were imputed"
        which = self._categories, self._columns
        said = [
            f"{what}: {n:,}, {listed((f'{of} ({k:,})' for of, k in each.most_common()), _NAMED)}"
            for what, n, each in zip(whats, self.as_dict().values(), which, strict=False)
            if n
        ]
        if said:
            text = f"the table has cells that {'; and that '.join(said)}."
            warnings.warn(text, StreamkernWarning, stacklevel=stacklevel + 1)
