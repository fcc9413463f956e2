"""Type inference: the recipe of a table, from one pass over its rows."""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from streamkern.errors import DataError, ParameterError, warn
from streamkern.errors.formatting import listed
from streamkern.extensions.tables.cells import (
    MISSING,
    SINGLE_EXACT,
    TIME,
    Writing,
    all_like,
    arrow_table,
    is_number,
    is_text,
    pa,
    texts,
    types,
)
from streamkern.extensions.tables.column_contents import MOST_BYTES, MOST_LEVELS, ColumnContents
from streamkern.extensions.tables.column_encoders import Categories, Column, Numbers, Ordinal, Times
from streamkern.extensions.tables.recipe import Recipe, reserved
from streamkern.runtime.private_names import meta_of

# A target of text, and inputs of a column of categories.
_MOST_LABELS, _MOST_INPUTS = 1_000, 64
# What each column holds, by its name.
Contents = dict[str, ColumnContents]
# What pandas and Dask call an index without a name; pandas writes none in a CSV.
_INDEX = re.compile(r"(__(index_level_\d+|null_dask_index)__|Unnamed: 0(\.\d+)*)?")


@dataclass(frozen=True)
class RecipeOptions:
    """What a user says of a table, beside its targets."""

    categorical: Sequence[str] = ()
    missing: Sequence[str] | None = None
    drop: Sequence[str] = ()
    weights: str | None = None
    impute: bool = False
    header: bool = True
    ids: Sequence[str] = ()
    delimiter: str | None = None
    decimal: str | None = None
    thousands: str | None = None

    def __post_init__(self) -> None:
        mark = self.delimiter
        if mark is not None and (len(mark) != 1 or mark in '"\r\n' or mark > "~"):
            raise ParameterError(
                f"the delimiter must be one character of ASCII, not {mark!r}; give it."
            )
        marks = self.decimal or ".", self.thousands or " "
        if any(len(each) != 1 or each.isalnum() for each in marks) or len({*marks}) == 1:
            raise ParameterError(
                f"decimal and thousands must be two marks, not {marks[0]!r} and {marks[1]!r}; give "
                f"',' and '.', for instance."
            )
        if taken := reserved(self.ids):
            raise ParameterError(
                f"an id may not be called {taken[0]!r}, as datasets of rows and predictions are; "
                f"rename the column."
            )
        named = self.named()
        if twice := {name for name in named if named.count(name) > 1}:
            raise ParameterError(
                f"{min(twice)!r} is named for two things; a column is either categorical, or "
                f"dropped, or an id, or the weights."
            )

    @property
    def is_given(self) -> bool:
        return self != RecipeOptions()

    def named(self) -> list[str]:
        others = filter(None, [self.weights])
        return [*self.categorical, *self.drop, *self.ids, *others]


def discover(
    schema: Any,
    scanned: Callable[[Contents], Contents],
    targets: Sequence[str],
    options: RecipeOptions,
    *,
    written: Container[str] = (),
    fills: bool = False,
    unread: Mapping[str, str] = MappingProxyType({}),
) -> Recipe:
    """Return the recipe of a table, by the rules of `streamkern.convert`, from one pass.

    `scanned(columns)` returns these with what all rows hold.  Texts of the columns `written`, as
    all of a CSV are, may be numbers or times.  With `fills`, numbers of which none is missing
    are filled in later tables.  Columns that are `unread` are left out for the reasons given.
    """
    missing = MISSING if options.missing is None else tuple(options.missing)
    how = Writing(missing, options.decimal, options.thousands)
    contents: dict[str, ColumnContents] = {}
    left_out = dict.fromkeys(options.drop, "dropped")
    named = {*options.named(), *targets}
    left_out |= {name: why for name, why in unread.items() if name not in named}
    left_out |= unnamed_index({*schema.names} - named)
    for name, kind in zip(schema.names, schema.types, strict=True):
        if name in left_out or name in options.ids or name == options.weights:
            continue
        chosen = name in options.categorical and (name not in targets or is_text(kind))
        may_be = {"as_categories": chosen, "is_written": name in written}
        contents[name] = ColumnContents(name, kind, how, **may_be)
    contents = scanned(contents)
    kinds = {name: column.what() for name, column in contents.items()}
    for name in targets:  # of labels that are all plain numbers
        if kinds[name] == "text" and {*map(type, contents[name].numbered_levels())} == {float}:
            kinds[name] = "numbers"
    is_asked_for = {*options.categorical} - {*targets} or options.missing is not None
    is_mixed = (
        bool(is_asked_for or unread)
        or options.impute
        or any(
            kinds[name] in ("text", "times") or (column.absent and name not in targets)
            for name, column in contents.items()
        )
    )
    columns: list[Column] = []
    single = True
    for name, column in contents.items():
        if name in targets:
            continue
        fill = column.mean if fills else None
        found = _column(column) if is_mixed else Numbers(name, fill)
        if isinstance(found, str):
            left_out[name] = found
            continue
        columns.append(found)
        is_small = is_mixed and (
            isinstance(found, (Categories, Ordinal)) or kinds[name] == "true or false"
        )
        single &= is_small or str(schema.field(name).type) in SINGLE_EXACT
    for remedy in dict.fromkeys(each.remedy for each in contents.values() if each.remedy):
        odd = [each for each in contents.values() if each.remedy == remedy]
        said = listed(f"{each.name} (as {each.odd_number})" for each in odd)
        warn(f"columns of numbers are written as text: {said}; {remedy}.")
    if not columns:
        said = listed(f"{name}: {why}" for name, why in left_out.items())
        raise DataError(f"no column is left to be an input ({said}); inputs are needed.")
    return Recipe(
        columns=tuple(columns),
        targets=tuple(targets),
        labels=_labels([(contents[name], kinds[name]) for name in targets]),
        weights=options.weights,
        left_out=left_out,
        missing=missing,
        single=single,
        header=options.header,
        ids=tuple(options.ids),
        delimiter=options.delimiter,
        decimal=options.decimal,
        thousands=options.thousands,
    )


def unnamed_index(names: Iterable[str]) -> dict[str, str]:
    """Return the columns that are an index without a name, and so why they are left out."""
    return {name: "an index without a name" for name in sorted(names) if _INDEX.fullmatch(name)}


def warn_of_left_out(recipe: Recipe) -> None:
    left = [f"{name!r} ({why})" for name, why in recipe.left_out.items() if why != "dropped"]
    if left:
        warn(f"columns that are no inputs: {listed(left)}.")


def recipe_of_frame(frame: Any, *, keep_missing: bool = False) -> Recipe | None:
    """Return the recipe of a data frame; None of one of numbers whose columns have no names.

    Numbers of which none is missing stay as they are, and where missing ones are kept those of a
    table of numbers alone.  Texts that are all dates are read as dates.  A Dask DataFrame is read
    for it: by its workers if it is of numbers alone, else here, a partition at a time.
    """
    names = frame.column_names if isinstance(frame, pa.Table) else list(frame.columns)
    is_sparse = any(str(kind).startswith("Sparse") for kind in getattr(frame, "dtypes", ()))
    if is_sparse or len(set(names)) < len(names):
        return None
    is_lazy = type(frame).__module__.startswith("dask.")
    table = pa.table(arrow_table(meta_of(frame, with_rows=True) if is_lazy else frame))
    schema = table.schema

    def batches(names: list[str]) -> Iterator[Any]:
        parts = (arrow_table(part.compute()) for part in frame.partitions) if is_lazy else [table]
        for part in parts:
            same = part.cast(schema) if is_lazy else part
            yield from same.select(names).combine_chunks().to_batches()

    def scanned(contents: Contents) -> Contents:
        for batch in batches(list(contents)):
            for name, column in contents.items():
                column.update(batch.column(name))
        return contents

    index = unnamed_index(schema.names)
    kinds = {each.name: str(each.type) for each in schema if each.name not in index}
    if kinds and all(map(is_number, schema.types)) and (is_lazy or keep_missing):
        columns = map(Numbers, kinds)
        if not keep_missing:
            from dask import compute

            inputs = frame.drop(columns=[*index])
            means, absent = compute(inputs.mean(), inputs.isna().any())
            fills = np.nan_to_num(means.to_numpy(float), posinf=0.0, neginf=0.0)
            columns = map(Numbers, kinds, fills.tolist(), absent.tolist())
        recipe = Recipe(tuple(columns), single={*kinds.values()} <= SINGLE_EXACT, left_out=index)
    else:
        first = next(batches(schema.names), table)
        dates = [name for name in schema.names if _are_times(first.column(name))]
        recipe = discover(schema, scanned, (), RecipeOptions(), written=dates, fills=True)
    warn_of_left_out(recipe)
    are_named = all(isinstance(name, str) for name in names)
    return recipe if are_named or not recipe.keeps_numbers else None


def _column(contents: ColumnContents) -> Column | str:
    """Return what a column becomes, or why it is left out."""
    name, what, is_missing = contents.name, contents.what(), bool(contents.absent)
    if what == "nothing":
        return "no values"
    if what == "text":
        return _categories(contents)
    if contents.least == contents.most and not is_missing:
        return "one value"
    if what == "times":
        return Times(name, contents.mean, contents.periods, is_missing)
    return Numbers(name, contents.mean, is_missing)


def _are_times(column: Any) -> bool:
    """Say whether cells are texts that all are dates or times, but for missing ones."""
    is_plain = is_text(column.type) and not types.is_dictionary(column.type)
    return is_plain and all_like(texts(column, MISSING), TIME)


def _categories(contents: ColumnContents) -> Column | str:
    name, is_missing = contents.name, bool(contents.absent)
    if contents.longest > MOST_BYTES:
        return f"text of up to {contents.longest:,} bytes"
    if contents.has_too_many:
        return f"text with more than {MOST_LEVELS:,} values, or of great length"
    levels = contents.numbered_levels()
    if ranked := contents.is_ordered and contents.ranked:
        places = {level: place for place, level in enumerate(ranked)}
        mean = sum(places[level] * count for level, count in levels.items()) / contents.present
        return Ordinal(name, tuple(ranked), float(mean), is_missing)
    if len(levels) == 1 and not is_missing:
        return "one value"
    if len(levels) > max(_MOST_INPUTS, contents.present // 2):
        return f"{len(levels):,} values in {contents.present:,} rows tell rows apart, not kinds"
    pooled = len(levels) > _MOST_INPUTS
    if pooled:
        by_count = sorted(levels, key=lambda level: (-levels[level], level))
        levels = {level: levels[level] for level in by_count[: _MOST_INPUTS - 1]}
    return Categories(name, tuple(sorted(levels)), pooled, is_missing)


def _labels(targets: Sequence[tuple[ColumnContents, str]]) -> tuple[str, ...] | None:
    """Return the labels of a target of text, None where targets are numbers."""
    for column, what in targets:
        name = column.name
        if what == "times" or (what == "text" and len(targets) > 1):
            needed = "numbers" if len(targets) > 1 else "numbers or labels"
            raise DataError(
                f"target {name!r} must hold {needed}, but has {what}; make it numbers first."
            )
        if what == "text" and column.longest > MOST_BYTES:
            raise DataError(
                f"target {name!r} has a label of {column.longest:,} bytes, but at most "
                f"{MOST_BYTES:,} are taken; shorten it."
            )
    if "text" not in [what for _, what in targets]:
        return None
    column = targets[0][0]
    if column.has_too_many or len(column.levels) > _MOST_LABELS:
        what = f"target {column.name!r} is text with more than {_MOST_LABELS:,} values"
        if column.remedy:
            raise DataError(f"{what}, all of numbers, as {column.odd_number!r}; {column.remedy}.")
        raise DataError(f"{what}; as labels there may be so many.")
    return tuple(sorted(column.levels))
