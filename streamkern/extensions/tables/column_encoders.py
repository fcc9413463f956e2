"""Column encoders: numbers, one-hot and ordinal categories, times."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import warn
from streamkern.errors.formatting import listed
from streamkern.extensions.tables.cells import Writing, numbers, places, seconds

# Seconds; a year is that of the Gregorian calendar, on average.
PERIODS = {"day": 86_400.0, "week": 604_800.0, "year": 31_556_952.0}
# Unexpected categories that are remembered by name, and how many are named.
_KNOWN, _NAMED = 1_000, 5
# The first of January 1970 was a Thursday, and weeks begin on Monday.
_STARTS = {"day": 0.0, "week": -3 * 86_400.0, "year": 0.0}


class Tally(Counter[tuple[str, str]]):
    """Counts of cells by column and category: new ones, and the empty one for those missing."""

    def add(self, name: str, n_missing: int, unseen: Sequence[str] = ()) -> None:
        """Count cells of a column: the missing ones, and categories that no level names."""
        if n_missing:
            self[name, ""] += n_missing
        for category in unseen:
            self._count((name, category[:80]), 1)

    def _count(self, key: tuple[str, str], n: int) -> None:
        is_known = key in self or not key[1] or len(self) < _KNOWN
        self[key if is_known else (key[0], "others")] += n

    def __add__(self, other: Counter[tuple[str, str]]) -> Tally:  # type: ignore[override]
        """Return the counts of both, and no more categories by name than one may have."""
        added = Tally(self)
        for key, n in other.items():
            added._count(key, n)
        return added

    def as_dict(self) -> dict[str, int]:
        missing = sum(n for (_, category), n in self.items() if not category)
        counts = {"unseen_categories": self.total() - missing, "imputed_cells": missing}
        return counts if any(counts.values()) else {}

    def warn(self, told: set[str]) -> None:
        """Warn of what was counted, in one sentence, but for columns that are told of already."""
        whats = "hold categories that the fit had not", "are missing and were imputed"
        said = dict[str, str]()
        for what, is_missing in zip(whats, (False, True), strict=True):
            cells = {key: n for key, n in self.most_common() if (not key[1]) == is_missing}
            columns = {f"{name} {what}" for name, _ in cells}
            if not columns <= told:
                told.update(columns)
                found = ("=".join(filter(None, key)) + f" ({n:,})" for key, n in cells.items())
                said[what] = f"{sum(cells.values()):,}, {listed(found, _NAMED)}"
        if said:
            text = "; and that ".join(f"{what}: {found}" for what, found in said.items())
            warn(f"the table has cells that {text}.")


class Column(ABC):
    """How one column of a table becomes inputs."""

    kind: ClassVar[str]
    has_sorted_levels: ClassVar[bool] = False
    name: str
    indicator: bool

    def _value_inputs(self) -> list[str]:
        """Return the names of the inputs, but for the one that says what is missing."""
        return [self.name]

    @abstractmethod
    def encode(self, cells: Any, how: Writing, out: Array, tally: Tally) -> None:
        """Write the inputs of cells, an array of Arrow, to `out` (rows, inputs), which is 0."""

    @abstractmethod
    def in_words(self) -> str:
        """Say what the column becomes, for people."""

    def inputs(self) -> list[str]:
        return self._value_inputs() + [f"{self.name} is missing"] * self.indicator

    def check(self) -> None:
        """Raise ValueError unless all values are such as a recipe has."""
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            may_be_none = value is None and field.default is None
            if not (may_be_none or _CHECKS[field.name](value)):
                raise ValueError(f"{field.name} {value!r} of {self.name!r}")
        levels = getattr(self, "levels", ())
        if self.has_sorted_levels and list(levels) != sorted(levels):
            raise ValueError(f"levels of {self.name!r} out of order")

    def as_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, **with_lists(vars(self))}


def with_lists(values: dict[str, Any]) -> dict[str, Any]:
    """Return fields as JSON has them, with lists for tuples."""
    return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}


def _are_levels(levels: Any) -> bool:
    kinds = {type(level) for level in levels} if isinstance(levels, tuple) else set()
    if kinds not in ({str}, {float}) or len(set(levels)) < len(levels):
        return False
    return kinds == {str} or bool(np.isfinite(levels).all())


def _are_periods(periods: Any) -> bool:
    found = set(periods) if isinstance(periods, tuple) else {None}
    return found <= set(PERIODS) and len(found) == len(periods)


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "name": lambda value: isinstance(value, str),
    "fill": lambda value: isinstance(value, float) and bool(np.isfinite(value)),
    **dict.fromkeys(("indicator", "pooled"), lambda value: isinstance(value, bool)),
    "levels": _are_levels,
    "periods": _are_periods,
}


def _unseen(cells: Any, rows: Array) -> list[str]:
    return [str(cells[j].as_py()).strip() for j in rows.tolist()]


def _filled(values: Floats, column: Numbers | Ordinal | Times, out: Array) -> int:
    """Write values to the first input, and whether they were missing to the last; count these."""
    absent = np.isnan(values)
    out[:, 0] = values if column.fill is None else np.where(absent, column.fill, values)
    if column.indicator:
        out[:, -1] = absent
    return int(absent.sum()) if column.fill is not None else 0


def level_name(level: str | float) -> str:
    """Return a level as its input is called: 3 for 3.0."""
    if isinstance(level, str):
        return level
    return str(int(level)) if level.is_integer() else repr(level)


@dataclass(frozen=True)
class Numbers(Column):
    """Numbers as they are."""

    kind: ClassVar[str] = "numbers"
    name: str
    fill: float | None = None
    indicator: bool = False

    def encode(self, cells: Any, how: Writing, out: Array, tally: Tally) -> None:
        tally.add(self.name, _filled(numbers(self.name, cells, how), self, out))

    def in_words(self) -> str:
        return f"number, {self.fill:.6g} where missing" if self.indicator else "number"


@dataclass(frozen=True)
class Categories(Column):
    """Categories, an input each: 1 for the rows that have it, else 0."""

    kind: ClassVar[str] = "categories"
    has_sorted_levels: ClassVar[bool] = True
    name: str
    levels: tuple[Any, ...]
    pooled: bool = False
    indicator: bool = False

    def _value_inputs(self) -> list[str]:
        named = [f"{self.name}={level_name(level)}" for level in self.levels]
        return named + [f"{self.name} is other"] * self.pooled

    def encode(self, cells: Any, how: Writing, out: Array, tally: Tally) -> None:
        found = places(self.name, cells, self.levels, how)
        rows = np.arange(len(found))
        unseen, absent = rows[found == -1], rows[found == -2]
        if self.pooled:
            found[unseen] = len(self.levels)
        known = rows if found.min(initial=0) >= 0 else rows[found >= 0]
        out[known, found[known]] = 1
        if self.indicator:
            out[absent, -1] = 1
        tally.add(self.name, len(absent), [] if self.pooled else _unseen(cells, unseen))

    def in_words(self) -> str:
        return f"{len(self.levels):,} categories" + (", others as one" if self.pooled else "")


@dataclass(frozen=True)
class Ordinal(Column):
    """Categories in an order, as their places in it: 0, 1, 2, ..."""

    kind: ClassVar[str] = "ordinal"
    name: str
    levels: tuple[Any, ...]
    fill: float
    indicator: bool = False

    def encode(self, cells: Any, how: Writing, out: Array, tally: Tally) -> None:
        found = places(self.name, cells, self.levels, how)
        _filled(np.where(found < 0, np.nan, found), self, out)
        tally.add(self.name, int((found == -2).sum()), _unseen(cells, np.flatnonzero(found == -1)))

    def in_words(self) -> str:
        least, most = level_name(self.levels[0]), level_name(self.levels[-1])
        return f"place in the order from {least} (0) to {most} ({len(self.levels) - 1})"


@dataclass(frozen=True)
class Times(Column):
    """Dates and times as seconds since the start of 1970, and where they are in some periods."""

    kind: ClassVar[str] = "times"
    name: str
    fill: float
    periods: tuple[str, ...] = ()
    indicator: bool = False

    def _value_inputs(self) -> list[str]:
        waves = [f"{self.name} {wave} of {p}" for p in self.periods for wave in ("sine", "cosine")]
        return [self.name, *waves]

    def encode(self, cells: Any, how: Writing, out: Array, tally: Tally) -> None:
        since = seconds(self.name, cells, how.missing)
        is_missing = np.isnan(since)
        for i, period in enumerate(self.periods):
            angles = (since - _STARTS[period]) * (2 * np.pi / PERIODS[period])
            out[:, 1 + 2 * i], out[:, 2 + 2 * i] = np.sin(angles), np.cos(angles)
            out[is_missing, 1 + 2 * i : 3 + 2 * i] = 0
        tally.add(self.name, _filled(since, self, out))

    def in_words(self) -> str:
        return ", ".join(["seconds since 1970", *(f"place in the {p}" for p in self.periods)])


KINDS: dict[str, type[Column]] = {kind.kind: kind for kind in (Numbers, Categories, Ordinal, Times)}
