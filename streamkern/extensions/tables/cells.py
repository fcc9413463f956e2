"""Tables of Arrow, and the cells of a column of one, as numbers, as times and as texts.

Columns are arrays of Arrow.  Texts are read without the spaces around them, and those that mean
missing are missing, whatever a column holds.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.errors import DataError, first_line
from streamkern.errors.formatting import listed
from streamkern.sources.containers import LazyModule

# Of type Any: Arrow has no types of its own that mypy could check.
pa: Any = LazyModule("pyarrow")
compute: Any = LazyModule("pyarrow.compute")
csv: Any = LazyModule("pyarrow.csv")
parquet: Any = LazyModule("pyarrow.parquet")
types: Any = LazyModule("pyarrow.types")

# Texts that mean missing: what pyarrow takes for it in columns of numbers, and a question mark.
MISSING = (
    *("?", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"),
)
# Types of Arrow whose values a float32 holds.
SINGLE_EXACT = {"bool", "int8", "uint8", "int16", "uint16", "halffloat", "float", "null"}
_INFINITE = r"^[+-]?(?i:inf|infinity)$"
NUMBER = rf"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|{_INFINITE}"
TIME = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}(:?\d{2})?)?)?$"
_ZONE = r":.*(Z|[+-]\d{2}(:?\d{2})?)$"
MARKS = "give `convert` decimal (--decimal ,) for 1,5, or thousands (--thousands ,) for 1,234, or "


class Whole(tuple[Any, ...]):
    """A tuple that Dask does not look through for tasks: of many columns that takes seconds."""

    __slots__ = ()


class Writing(NamedTuple):
    """How texts are written: what means missing, and the marks of numbers."""

    missing: Sequence[str] = MISSING
    decimal: str | None = None  # a point
    thousands: str | None = None

    @property
    def number(self) -> str:
        """A pattern of numbers."""
        if not (self.decimal or self.thousands):
            return NUMBER
        point, mark = re.escape(self.decimal or "."), re.escape(self.thousands or "")
        whole = rf"(\d+|\d{{1,3}}({mark}\d{{3}})+)" if mark else r"\d+"
        return rf"^[+-]?({whole}({point}\d*)?|{point}\d+)([eE][+-]?\d+)?$|{_INFINITE}"


def arrow_table(frame: Any) -> Any:
    """Return a table as one of Arrow, without an index, or raise DataError if it is none."""
    if isinstance(frame, pa.RecordBatch):
        return frame
    try:
        if hasattr(frame, "reset_index"):
            return pa.Table.from_pandas(frame, preserve_index=False)
        if hasattr(frame, "to_arrow"):  # of polars, whose views of texts have few functions
            from polars import CompatLevel

            frame = frame.to_arrow(compat_level=CompatLevel.oldest())
        return pa.table(frame)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise DataError(
            f"rows must be a table of pandas, polars or pyarrow whose columns each hold one "
            f"kind of value, not {type(frame).__name__} ({first_line(error)}); make it one."
        ) from error


def cells_of(table: Any, name: str) -> Any:
    found_at = table.schema.get_all_field_indices(name)
    if len(found_at) != 1:
        found = "more than one column" if found_at else "no column"
        raise DataError(
            f"the table has {found} {name!r}, which is needed; it has {listed(table.schema.names)}."
        )
    column = table.column(found_at[0])
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def is_text(kind: Any) -> bool:
    """Say whether a type of Arrow is of texts, or of texts by their numbers in a dictionary."""
    if types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view")


def is_number(kind: Any) -> bool:
    tests = types.is_integer, types.is_floating, types.is_boolean, types.is_decimal
    return any(test(kind) for test in tests)


def is_time(kind: Any) -> bool:
    return bool(types.is_date(kind) or types.is_timestamp(kind))


def all_like(column: Any, pattern: str) -> bool:
    """Say whether there are texts in a column, and all of them match a pattern."""
    return bool(compute.all(compute.match_substring_regex(column, pattern)).as_py())


def plain_cells(column: Any) -> Array:
    """Return integers as they are, and all other cells as texts, empty where there is none."""
    if types.is_integer(column.type) and not column.null_count:
        return column.to_numpy(zero_copy_only=False)
    shown = column.cast(pa.string()).fill_null("")
    return np.array(shown.to_pylist(), dtype=object)


def texts(column: Any, missing: Sequence[str]) -> Any:
    """Return texts without the spaces around them, and null where they mean missing."""
    trimmed = compute.utf8_trim_whitespace(column.cast(pa.string()))
    absent = compute.is_in(trimmed, value_set=pa.array(["", *missing], pa.string()))
    return compute.if_else(absent, pa.scalar(None, pa.string()), trimmed)


def numbers(name: str, column: Any, how: Writing) -> Floats:
    """Return a column as numbers (rows,), NaN where they are missing; true is 1 and false 0."""
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if is_text(column.type):
        plain = plain_numbers(column, how)
        if plain is not None:
            return plain
        column = _read_numbers(name, texts(column, how.missing), how)
    elif not is_number(column.type) and not types.is_null(column.type):
        raise _other_kind(name, "numbers", column)
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def plain_numbers(column: Any, how: Writing) -> Floats | None:
    """Return texts that all are plain numbers, or not there, at once; None where one is not."""
    if how == Writing():
        with suppress(pa.ArrowInvalid):
            found: Floats = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
            return found
    return None


def _read_numbers(name: str, column: Any, how: Writing) -> Any:
    if all_like(compute.utf8_lower(column), "^(true|false)$"):
        return compute.equal(compute.utf8_lower(column), "true")
    if how.number != NUMBER:
        others = compute.invert(compute.match_substring_regex(column, how.number))
        if compute.any(others).as_py():
            raise _other_kind(name, "numbers", column.filter(others.fill_null(False)))
        column = compute.replace_substring(column, how.thousands, "") if how.thousands else column
        column = compute.replace_substring(column, how.decimal or ".", ".")
    try:
        return column.cast(pa.float64())
    except pa.ArrowInvalid as error:
        others = compute.invert(compute.match_substring_regex(column, NUMBER)).fill_null(False)
        raise _other_kind(name, "numbers", column.filter(others)) from error


def seconds(name: str, column: Any, missing: Sequence[str]) -> Floats:
    """Return dates and times as seconds since the start of 1970 (rows,), NaN where missing.

    Times without a zone are taken as they stand, others in UTC; texts are those of ISO 8601.
    """
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if is_text(column.type):
        column = texts(column, missing)
        zoned = compute.match_substring_regex(column, _ZONE).fill_null(False)
        none = pa.scalar(None, pa.string())
        try:
            plain = compute.if_else(zoned, none, column).cast(pa.timestamp("us"))
            exact = compute.if_else(zoned, column, none).cast(pa.timestamp("us", "UTC"))
        except pa.ArrowInvalid as error:
            said = first_line(error)
            cell = said.partition("'")[2].rpartition("'")[0]  # which Arrow quotes
            others = f", such as {cell!r}" if cell else f" ({said})"
            raise DataError(
                f"column {name!r} must hold dates or times, but has others{others}; mend the "
                f"column, or make the recipe anew with `streamkern convert`."
            ) from error
        column = compute.coalesce(plain, exact.cast(pa.timestamp("us")))
    elif not is_time(column.type) and not types.is_null(column.type):
        raise _other_kind(name, "dates or times", column)
    ticks = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    found = ticks.cast(pa.float64(), safe=False)  # far from 1970 not to the microsecond
    return found.to_numpy(zero_copy_only=False) / 1e6


def places(name: str, column: Any, levels: Sequence[Any], how: Writing) -> Array:
    """Return the place of every cell among levels (rows,), -1 for others, -2 where missing."""
    if isinstance(levels[0], float):
        cells = pa.array(numbers(name, column, how) + 0.0, from_pandas=True)  # -0 is 0
    elif is_text(column.type) or types.is_null(column.type):
        column = column.cast(pa.string())
        found = _index_in(column, levels)  # most are written as the levels are
        others = np.flatnonzero(found == -1)
        if not len(others):
            return found
        cells = texts(column.take(pa.array(others)), how.missing)
        found[others] = np.where(cells.is_valid(), _index_in(cells, levels), -2)
        return found
    else:
        raise _other_kind(name, "text", column)
    return np.where(cells.is_valid(), _index_in(cells, levels), -2)


def _index_in(cells: Any, levels: Sequence[Any]) -> Array:
    found = compute.index_in(cells, value_set=pa.array(levels, cells.type)).fill_null(-1)
    return np.array(found)


def _other_kind(name: str, expected: str, column: Any) -> DataError:
    given, remedy = column.drop_null(), ""
    found = f"has others, of type {column.type}"
    if is_text(column.type) and len(given):
        others = f"{len(given):,} other{'s' * (len(given) > 1)}"
        found = f"has {others}, such as {given[0].as_py()[:80]!r}"
        remedy = MARKS * (expected == "numbers" and "," in given[0].as_py())
    return DataError(
        f"column {name!r} must hold {expected}, but {found}; {remedy}mend the column, or make "
        f"the recipe anew with `streamkern convert`."
    )
