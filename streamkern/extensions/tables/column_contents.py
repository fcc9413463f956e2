"""Column statistics: what the cells of one column hold, for type inference."""

import re
from collections import Counter
from contextlib import suppress
from typing import Any, Self

import numpy as np

from streamkern._typing import Floats
from streamkern.errors import DataError
from streamkern.extensions.tables.cells import (
    MARKS,
    NUMBER,
    TIME,
    Writing,
    all_like,
    compute,
    is_number,
    is_text,
    is_time,
    numbers,
    pa,
    plain_numbers,
    seconds,
    texts,
    types,
)
from streamkern.extensions.tables.column_encoders import PERIODS

# Of a label or a category, in UTF-8: labels take as much in every row as the longest.
MOST_BYTES = 1024
# Beyond either a column is not one of categories.
MOST_LEVELS = 10_000
_LEVEL_BYTES = 1 << 20
# Numbers as people write them: 1,5 and 1,234.5, 12.3%, $5.1 and 1.2D+00.
_MARKED = r"(\d{1,3}(,\d{3})+(\.\d*)?|\d{1,3}([.' ]\d{3})+(,\d*)?|\d*[.,]?\d+)"
_ODD_NUMBER = rf"^[+-]?[$€£¥]? ?[+-]?{_MARKED}([eEdD][+-]?\d+)? ?[%$€£¥]?$"
_MOST_EXACT = 2.0**53


class ColumnContents:
    """Counts of a column's cells, in memory that does not grow with the rows.

    Cells that are `written`, as in a CSV, may be numbers or times; those of a column that is
    `as_categories` are texts, or numbers to count one by one.
    """

    def __init__(
        self, name: str, kind: Any, how: Writing, *, as_categories: bool, is_written: bool
    ) -> None:
        self.name, self.how = name, how
        self.is_text, self.is_time = is_text(kind), is_time(kind)
        is_coded = types.is_dictionary(kind) and (self.is_text or is_number(kind.value_type))
        self.as_categories = as_categories or is_coded
        self.is_written = is_written and self.is_text
        self.is_ordered = is_coded and bool(kind.ordered)
        self.ranked: list[Any] | None = None
        self.rows = self.absent = 0
        self.levels: Counter[Any] = Counter()
        self.longest = 0
        self.has_too_many = False
        # The first that is not plain, such as 1,5, where all are numbers; else None.
        self.odd_number = "" if self.is_text and not as_categories else None
        self.examples: dict[str, str] = {}
        # Of numbers and times: mean, range, and whether times differ within days.
        self.mean, self.least, self.most, self.has_clock = 0.0, np.inf, -np.inf, False
        self.n_finite = 0
        if as_categories and self.is_time:
            raise DataError(
                f"column {name!r} is to be categories, but holds dates or times; make them text."
            )
        is_known = self.is_text or self.is_time or is_number(kind) or is_coded
        if not is_known and not types.is_null(kind):
            raise DataError(
                f"column {name!r} must hold numbers, text, dates or times, but has type {kind}; "
                f"make one of these of it, as seconds of a duration, or name it in drop (--drop)."
            )

    def update(self, part: Any) -> None:
        """Take in some cells, an array of Arrow."""
        self.rows += len(part)
        if self.is_ordered:
            self._note_order(part)
        if self.is_text:
            if self.is_written and not self.as_categories and self._take_plain_numbers(part):
                return
            # Of texts that come up again and again each is looked at once.
            counted = None if self.is_written else part.value_counts()
            found = texts(part if counted is None else counted.field(0), self.how.missing)
            counts = None if counted is None else counted.field(1)
            present = found.is_valid()
            here = found if found.null_count == 0 else found.filter(present)
            if counts is not None:
                counts = counts.filter(present)
            n_present = len(here) if counts is None else compute.sum(counts).as_py() or 0
            self.absent += len(part) - n_present
            if len(here) and not (self.is_written and self._take_numbers_or_times(here)):
                self._take_texts(here, counts)
            return
        found = (seconds if self.is_time else numbers)(self.name, part, self._reading)
        self.absent += int(np.isnan(found).sum())
        found = found[~np.isnan(found)]
        if not self.as_categories:
            self._measure("times" if self.is_time else "numbers", found)
            return
        if (np.abs(found) >= _MOST_EXACT).any():
            raise DataError(
                f"column {self.name!r} is to be categories, but has numbers that are infinite or "
                f"of {_MOST_EXACT:.2g} and more, which are not told apart; make them text."
            )
        counted = pa.array(found).value_counts()
        self._count(counted.field(0), counted.field(1))

    def merge(self, other: Self) -> None:
        """Take in what another found in the rows that come next."""
        self.rows, self.absent = self.rows + other.rows, self.absent + other.absent
        self.longest = max(self.longest, other.longest)
        odd = self.odd_number, other.odd_number
        self.odd_number = None if None in odd else odd[0] or odd[1]
        self.examples = {**other.examples, **self.examples}
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)
        self.has_clock |= other.has_clock
        if n := self.n_finite + other.n_finite:
            parts = (each.mean * (each.n_finite / n) for each in (self, other))
            self.mean, self.n_finite = sum(parts), n
        same = self.ranked == other.ranked or not (self.rows and other.rows)
        self.is_ordered = self.is_ordered and other.is_ordered and same
        self.ranked = self.ranked or other.ranked if self.is_ordered else None
        self.levels.update(other.levels)
        self.has_too_many |= other.has_too_many
        self._limit()

    @property
    def _reading(self) -> Any:
        return () if self.is_time else self.how

    def _take_plain_numbers(self, part: Any) -> bool:
        """Take in texts that all are plain numbers, or not there; say whether they are."""
        found = plain_numbers(part, self.how)
        if found is None or np.count_nonzero(np.isnan(found)) != part.null_count:
            return False
        self.absent += part.null_count
        here = part.drop_null()
        if len(here):
            self._measure("numbers", found[~np.isnan(found)], here[0].as_py())
        return True

    def _take_numbers_or_times(self, part: Any) -> bool:
        """Take in texts that all are numbers, or all times; say whether they are."""
        if self.as_categories:
            return False
        with suppress(DataError):
            is_truth = part[0].as_py().lower() in ("true", "false")
            found = numbers(self.name, part, self.how)
            self._measure("true or false" if is_truth else "numbers", found, part[0].as_py())
            return True
        if all_like(part, TIME):
            self._measure("times", seconds(self.name, part, ()), part[0].as_py())
            return True
        return False

    def _take_texts(self, part: Any, counts: Any = None) -> None:
        if self.is_written and not self.as_categories:
            for what, pattern in (("numbers", self.how.number), ("times", TIME)):
                are = compute.match_substring_regex(part, pattern)
                if len(some := part.filter(are)):
                    self.examples.setdefault(what, some[0].as_py())
                part = part.filter(compute.invert(are))
        if not len(part):
            return
        self.examples.setdefault("text", part[0].as_py()[:80])
        self.longest = max(self.longest, compute.max(compute.binary_length(part)).as_py())
        if self.odd_number is not None:
            odd = part.filter(compute.invert(compute.match_substring_regex(part, NUMBER)))
            first = self.odd_number or (odd[0].as_py()[:80] if len(odd) else "")
            self.odd_number = first if all_like(part, _ODD_NUMBER) else None
        if counts is None:
            part, counts = (part.value_counts().field(i) for i in range(2))
        self._count(part, counts)

    def _measure(self, what: str, values: Floats, example: str | None = None) -> None:
        if not len(values):
            return
        self.examples.setdefault(what, example or f"{values[0]:.6g}")
        self.least = min(self.least, float(values.min()))
        self.most = max(self.most, float(values.max()))
        values = values[np.isfinite(values)]
        if len(values):
            self.has_clock = self.has_clock or bool((values % PERIODS["day"] != 0).any())
            before, self.n_finite = self.n_finite, self.n_finite + len(values)
            # No sum is larger than the numbers themselves.
            shares = np.full(len(values), 1.0 / self.n_finite)
            self.mean = self.mean * (before / self.n_finite) + float(values @ shares)

    def _count(self, levels: Any, counts: Any) -> None:
        if self.has_too_many:
            return
        for level, count in zip(levels.to_pylist(), counts.to_pylist(), strict=True):
            self.levels[level] += count
        self._limit()

    def _limit(self) -> None:
        n_bytes = sum(len(level) if isinstance(level, str) else 8 for level in self.levels)
        if self.has_too_many or len(self.levels) > MOST_LEVELS or n_bytes > _LEVEL_BYTES:
            self.has_too_many = True
            self.levels = Counter()

    def _note_order(self, part: Any) -> None:
        """Keep the order of an ordered dictionary, as long as all pieces have the same."""
        given = part.dictionary.drop_null().to_pylist() if types.is_dictionary(part.type) else None
        ranked = given and [each.strip() if isinstance(each, str) else each for each in given]
        self.is_ordered = given is not None and self.ranked in (None, ranked)
        self.ranked = ranked if self.is_ordered else None

    @property
    def present(self) -> int:
        return self.rows - self.absent

    @property
    def periods(self) -> tuple[str, ...]:
        """The periods that times go through at least twice; of a day only where they differ."""
        spread = self.most - self.least
        long = [name for name, length in PERIODS.items() if spread >= 2 * length]
        return tuple(name for name in long if name != "day" or self.has_clock)

    @property
    def remedy(self) -> str:
        """What helps where all cells are numbers, but not all are plain."""
        has_options = self.is_written and self.odd_number and not {*"%$€£¥dD"} & {*self.odd_number}
        return (MARKS * bool(has_options) + "write plain numbers") * bool(self.odd_number)

    def numbered_levels(self) -> dict[Any, int]:
        """Return how often there is each level: a number where all are plain ones, else a text."""
        plain = re.compile(rf"(?![+-]?0\d)({NUMBER})")  # 01 is another than 1
        are = (plain.match(text) and abs(float(text)) < _MOST_EXACT for text in self.levels)
        if not (self.is_written and all(are)):
            return dict(self.levels)
        counts: Counter[float] = Counter()
        for level, count in self.levels.items():
            counts[float(level)] += count
        return dict(counts)

    def what(self) -> str:
        """Return what the column holds: nothing, numbers, true or false, times or text."""
        if not self.present:
            return "nothing"
        if self.as_categories:
            return "text"
        if len(self.examples) > 1:
            shown = " and ".join(f"{what} ({value!r})" for what, value in self.examples.items())
            how = f"{self.remedy}, or " if self.remedy else ""
            raise DataError(
                f"column {self.name!r} holds {shown}; {how}name what means missing in missing "
                f"(--missing), or the column in categorical (--categorical {self.name}) if all are "
                f"categories, or in drop (--drop {self.name})."
            )
        return next(iter(self.examples))
