"""Column statistics: what the cells of one column hold, for type inference."""

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.errors import DataError
from streamkern.sources.preprocessing import cells
from streamkern.sources.preprocessing.cells import compute, pa, types
from streamkern.sources.preprocessing.column_encoders import PERIODS

# Of a label or a category, in UTF-8: labels take as much in every row as the longest.
MOST_BYTES = 1024
# Beyond either a column is not one of categories.
MOST_LEVELS = 10_000
_LEVEL_BYTES = 1 << 20
_MARKS = "give `convert` decimal (--decimal ,) for 1,5, or thousands (--thousands ,) for 1,234, or "
_TRUTH = {"true", "false"}
_MOST_EXACT = 2.0**53


class ColumnContents:
    """Counts of a column's cells, in memory that does not grow with the rows."""

    def __init__(
        self, name: str, kind: Any, missing: Sequence[str], as_categories: bool, is_written: bool
    ) -> None:
        self.name = name
        self.missing = missing
        self.is_text = cells.is_text(kind)
        values = getattr(kind, "value_type", None)  # of a dictionary, and of lists
        is_coded = hasattr(kind, "index_type") and (self.is_text or cells.is_number(values))
        self.as_categories = as_categories or is_coded
        self.is_written = is_written and self.is_text
        # Texts may be how numbers and times are written.
        self._is_open = self.is_written and not self.as_categories
        self.is_time = cells.is_time(kind)
        self.is_ordered = is_coded and bool(kind.ordered)
        self.ranked: list[Any] | None = None
        self.rows = self.absent = 0
        self.levels: Counter[Any] = Counter()
        self.level_bytes = 0
        self.longest = 0
        self.has_too_many = False
        # The first that is not plain, such as 1,5, where all are numbers; else None.
        self.odd_number = "" if self.is_text and not as_categories else None
        self.examples: dict[str, str] = {}
        self.measured = _Summary()
        if as_categories and self.is_time:
            raise DataError(
                f"column {name!r} is to be categories, but holds dates or times; make them text."
            )
        is_known = self.is_text or self.is_time or cells.is_number(kind) or is_coded
        if not is_known and str(kind) != "null":
            raise DataError(
                f"column {name!r} must hold numbers, text, dates or times, but has type {kind}; "
                f"make one of these of it, as seconds of a duration, or name it in drop (--drop)."
            )

    def update(self, part: Any) -> None:
        """Take in some cells, an array of Arrow."""
        self.rows += len(part)
        if self.is_ordered:
            self._note_order(part)
        if self.is_time:
            self._measure("times", cells.seconds(self.name, part, self.missing))
        elif not self.is_text and not self.as_categories:
            self._measure("numbers", cells.numbers(self.name, part, self.missing))
        elif not self.is_text:
            found = cells.numbers(self.name, part, self.missing)
            if (np.abs(found) >= _MOST_EXACT).any():
                raise DataError(
                    f"column {self.name!r} is to be categories, but has numbers that are infinite "
                    f"or of {_MOST_EXACT:.2g} and more, which are not told apart; make them text."
                )
            self.absent += int(np.isnan(found).sum())
            values, counts = np.unique(found[~np.isnan(found)], return_counts=True)
            self._count(zip(values.tolist(), counts.tolist(), strict=True))
        else:
            self._update_texts(cells.texts(part, self.missing))

    def _update_texts(self, part: Any) -> None:
        self.absent += part.null_count
        present = part.drop_null()
        if self._is_open and not self.levels and "times" not in self.examples:
            with suppress(pa.ArrowInvalid):  # most columns of most tables
                found = present.cast(pa.float64())
                self._measure("numbers", found.to_numpy(zero_copy_only=False))
                return
        counted = present.value_counts()
        values, counts = counted.field("values"), counted.field("counts")
        if self._is_open:
            for what, pattern, read in (
                ("numbers", cells.NUMBER, cells.numbers),
                ("times", cells.TIME, cells.seconds),
            ):
                chosen = compute.match_substring_regex(values, pattern)
                some = values.filter(chosen)
                if len(some):
                    self.examples.setdefault(what, some[0].as_py())
                    weights = counts.filter(chosen).to_numpy(zero_copy_only=False)
                    self._measure(what, read(self.name, some, ()), weights)
                rest = compute.invert(chosen)
                values, counts = values.filter(rest), counts.filter(rest)
        if len(values):
            self.examples.setdefault("text", values[0].as_py()[:80])
            lengths = compute.binary_length(values)
            self.longest = max(self.longest, compute.max(lengths).as_py())
            if self.odd_number is not None:
                plain = compute.match_substring_regex(values, cells.NUMBER)
                odd = self.odd_number or next(map(str, values.filter(compute.invert(plain))), "")
                are = compute.match_substring_regex(values, cells.ODD_NUMBER)
                self.odd_number = odd[:80] if compute.all(are).as_py() else None
        self._count(zip(values.to_pylist(), counts.to_pylist(), strict=True))

    def _measure(self, what: str, values: Floats, counts: Any = None) -> None:
        is_absent = np.isnan(values)
        if counts is None:
            self.absent += int(is_absent.sum())
            counts = np.ones(len(values))
        present = values[~is_absent]
        if len(present):
            self.examples.setdefault(what, f"{present[0]:.6g}")
            self.measured.update(present, counts[~is_absent])

    def _count(self, found: Any) -> None:
        if self.has_too_many:
            return
        for level, count in found:
            if level not in self.levels:
                self.level_bytes += len(level.encode()) if isinstance(level, str) else 8
            self.levels[level] += count
        if len(self.levels) > MOST_LEVELS or self.level_bytes > _LEVEL_BYTES:
            self.has_too_many = True
            self.levels = Counter(dict.fromkeys(list(self.levels)[:1], 1))  # something was there

    def _note_order(self, part: Any) -> None:
        """Keep the order of an ordered dictionary, as long as all pieces have the same."""
        if not types.is_dictionary(part.type):
            self.is_ordered = False
            return
        given = part.dictionary.drop_null().to_pylist()
        ranked = [level.strip() if isinstance(level, str) else level for level in given]
        self.is_ordered = self.ranked in (None, ranked)
        self.ranked = ranked

    @property
    def present(self) -> int:
        return self.rows - self.absent

    @property
    def remedy(self) -> str:
        """What helps where all cells are numbers, but not all are plain."""
        has_options = self.is_written and self.odd_number and not {*"%$€£¥dD"} & {*self.odd_number}
        return (_MARKS * bool(has_options) + "write plain numbers") * bool(self.odd_number)

    @property
    def is_truth(self) -> bool:
        return self._is_open and bool(self.levels) and {w.lower() for w in self.levels} <= _TRUTH

    def measured_truth(self) -> "_Summary":
        measured = _Summary()
        values = [float(level.lower() == "true") for level in self.levels]
        measured.update(np.array(values), np.array(list(self.levels.values()), dtype=float))
        return measured

    def numbered_levels(self) -> dict[Any, int]:
        """Return how often there is each level: a number where all are plain ones, else a text."""
        plain = re.compile(rf"(?![+-]?0\d)({cells.NUMBER})")  # 01 is another than 1
        are = (plain.match(text) and np.isfinite(float(text)) for text in self.levels)
        if not (self.is_written and all(are)):
            return dict(self.levels)
        counts: Counter[float] = Counter()
        for level, count in self.levels.items():
            counts[float(level)] += count
        # Larger numbers that differ may be the same float.
        return dict(self.levels if max(map(abs, counts)) >= _MOST_EXACT else counts)

    def what(self) -> str:
        """Return what the column holds: nothing, numbers, times or text."""
        if not self.present:
            return "nothing"
        if self.as_categories or not self.is_written:
            by_type = "times" if self.is_time else "numbers"
            return "text" if self.is_text or self.as_categories else by_type
        if len(self.examples) > 1:
            shown = " and ".join(f"{what} ({value!r})" for what, value in self.examples.items())
            how = f"{self.remedy}, or " if self.remedy else ""
            raise DataError(
                f"column {self.name!r} holds {shown}; {how}name what means missing in missing "
                f"(--missing), or the column in categorical (--categorical {self.name}) if all are "
                f"categories, or in drop (--drop {self.name})."
            )
        what = next(iter(self.examples))
        return "numbers" if self.is_truth else what


class _Summary:
    """Mean and range of numbers, by counts; of times also whether they differ within days."""

    def __init__(self) -> None:
        self.count = 0.0
        self.mean = 0.0
        self.least, self.most = np.inf, -np.inf
        self.has_clock = False

    def update(self, values: Floats, counts: Floats) -> None:
        """Take in numbers (rows,), each so many times."""
        self.least = min(self.least, float(values.min()))
        self.most = max(self.most, float(values.max()))
        finite = np.isfinite(values)
        if finite.any():
            counts, values = counts[finite], values[finite]
            self.has_clock = self.has_clock or bool((values % PERIODS["day"] != 0).any())
            before, self.count = self.count, self.count + float(counts.sum())
            # No sum is larger than the numbers themselves.
            self.mean = self.mean * (before / self.count) + float(values @ (counts / self.count))

    @property
    def periods(self) -> tuple[str, ...]:
        """The periods that times go through at least twice; of a day only where they differ."""
        spread = self.most - self.least
        long = [name for name, length in PERIODS.items() if spread >= 2 * length]
        return tuple(name for name in long if name != "day" or self.has_clock)
