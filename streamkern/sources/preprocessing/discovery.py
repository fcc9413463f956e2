"""Type inference: the recipe of a table, from one pass over its rows."""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamkern.errors import DataError, ParameterError, warn
from streamkern.errors.formatting import listed
from streamkern.runtime.private_names import meta_of
from streamkern.sources.preprocessing.cells import (
    MISSING,
    SINGLE_EXACT,
    are_times,
    arrow_table,
    is_number,
    is_text,
    pa,
)
from streamkern.sources.preprocessing.column_contents import MOST_BYTES, MOST_LEVELS, ColumnContents
from streamkern.sources.preprocessing.column_encoders import (
    Categories,
    Column,
    Numbers,
    Ordinal,
    Times,
    level_name,
)
from streamkern.sources.preprocessing.recipe import Recipe, reserved

# A target of text.
_MOST_LABELS = 1_000
# What pandas and Dask call an index without a name; pandas writes none in a CSV.
_INDEX = re.compile(r"(__(index_level_\d+|null_dask_index)__|Unnamed: 0(\.\d+)*)?")


@dataclass(frozen=True)
class RecipeOptions:
    """What a user says of a table, beside its targets."""

    categorical: Sequence[str] = ()
    ordinal: Mapping[str, Sequence[str]] = field(default_factory=dict)
    missing: Sequence[str] | None = None
    drop: Sequence[str] = ()
    weights: str | None = None
    max_levels: int = 64
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
        if self.max_levels < 2:
            raise ParameterError(f"max_levels must be at least 2, not {self.max_levels}; take 64.")
        for name, levels in self.ordinal.items():
            if len(levels) < 2 or len(set(levels)) < len(levels):
                raise ParameterError(
                    f"the order of {name!r} must name two categories or more, each once, not "
                    f"{', '.join(levels) or 'none'}; name them from the least."
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
                f"ordinal, or dropped, or an id, or the weights."
            )

    @property
    def is_given(self) -> bool:
        return self != RecipeOptions()

    def named(self) -> list[str]:
        others = filter(None, [self.weights])
        return [*self.categorical, *self.ordinal, *self.drop, *self.ids, *others]


def discover(
    schema: Any,
    batches: Callable[[list[str]], Iterable[Any]],
    targets: Sequence[str],
    options: RecipeOptions,
    *,
    is_written: bool | Container[str],
    fills: bool = False,
) -> Recipe:
    """Return the recipe of a table, by the rules of `streamkern.convert`, from one pass.

    `batches(names)` yields pieces of columns; `is_written` where texts may be numbers, as in a CSV,
    or in which columns.  With `fills`, numbers of which none is missing are filled in later tables.
    """
    missing = MISSING if options.missing is None else tuple(options.missing)
    contents: dict[str, ColumnContents] = {}
    left_out = dict.fromkeys(options.drop, "dropped")
    left_out |= unnamed_index({*schema.names} - {*options.named(), *targets})
    for name, kind in zip(schema.names, schema.types, strict=True):
        if name in left_out or name in options.ids or name == options.weights:
            continue
        chosen = name in options.categorical or name in options.ordinal
        chosen = chosen and (name not in targets or is_text(kind))
        written = is_written if isinstance(is_written, bool) else name in is_written
        contents[name] = ColumnContents(name, kind, missing, chosen, written)
    for batch in batches(list(contents)):
        for name, column in contents.items():
            column.update(batch.column(name))
    kinds = {name: column.what() for name, column in contents.items()}
    for name in targets:  # of labels that are all plain numbers
        if kinds[name] == "text" and {*map(type, contents[name].numbered_levels())} == {float}:
            kinds[name] = "numbers"
    is_asked_for = {*options.categorical} - {*targets} or options.ordinal or options.impute
    is_mixed = bool(is_asked_for or options.missing is not None) or any(
        kinds[name] in ("text", "times") or (column.absent and name not in targets)
        for name, column in contents.items()
    )
    columns: list[Column] = []
    single = True
    for name, column in contents.items():
        if name in targets:
            continue
        fill = column.measured.mean if fills else None
        found = _column(column, options) if is_mixed else Numbers(name, fill)
        if isinstance(found, str):
            left_out[name] = found
            continue
        columns.append(found)
        is_small = is_mixed and (isinstance(found, (Categories, Ordinal)) or column.is_truth)
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

    index = unnamed_index(schema.names)
    kinds = {each.name: str(each.type) for each in schema if each.name not in index}
    if kinds and all(map(is_number, schema.types)) and (is_lazy or keep_missing):
        columns = map(Numbers, kinds)
        if not keep_missing:
            from dask import compute  # noqa: PLC0415  tables of files need none

            inputs = frame.drop(columns=[*index])
            means, absent = compute(inputs.mean(), inputs.isna().any())
            fills = np.nan_to_num(means.to_numpy(float), posinf=0.0, neginf=0.0)
            columns = map(Numbers, kinds, fills.tolist(), absent.tolist())
        recipe = Recipe(tuple(columns), single={*kinds.values()} <= SINGLE_EXACT, left_out=index)
    else:
        first = next(batches(schema.names), table)
        dates = [name for name in schema.names if are_times(first.column(name))]
        recipe = discover(schema, batches, (), RecipeOptions(), is_written=dates, fills=True)
    warn_of_left_out(recipe)
    are_named = all(isinstance(name, str) for name in names)
    return recipe if are_named or not recipe.keeps_numbers else None


def _column(contents: ColumnContents, options: RecipeOptions) -> Column | str:
    """Return what a column becomes, or why it is left out."""
    name, what, is_missing = contents.name, contents.what(), bool(contents.absent)
    if what == "nothing":
        return "no values"
    if what == "text":
        return _categories(contents, options)
    measured = contents.measured_truth() if contents.is_truth else contents.measured
    if measured.least == measured.most and not is_missing:
        return "one value"
    if what == "times":
        return Times(name, measured.mean, measured.periods, is_missing)
    return Numbers(name, measured.mean, is_missing)


def _categories(contents: ColumnContents, options: RecipeOptions) -> Column | str:
    name, is_missing = contents.name, bool(contents.absent)
    if contents.longest > MOST_BYTES:
        return f"text of up to {contents.longest:,} bytes"
    if contents.has_too_many:
        return f"text with more than {MOST_LEVELS:,} values, or of great length"
    levels = contents.numbered_levels()
    ranked: Sequence[Any] = options.ordinal.get(name, ())
    if not ranked and contents.is_ordered:
        ranked = contents.ranked or ()
    if ranked:
        if isinstance(next(iter(levels)), float):
            ranked = [_number(name, level) for level in ranked]
        places = {level: place for place, level in enumerate(ranked)}
        if unknown := [level for level in levels if level not in places]:
            raise DataError(
                f"column {name!r} has {level_name(unknown[0])!r}, which its order "
                f"({', '.join(map(level_name, ranked))}) does not name; name every category."
            )
        mean = sum(places[level] * count for level, count in levels.items()) / contents.present
        return Ordinal(name, tuple(ranked), float(mean), is_missing)
    if len(levels) == 1 and not is_missing:
        return "one value"
    if len(levels) > max(options.max_levels, contents.present // 2):
        return f"{len(levels):,} values in {contents.present:,} rows tell rows apart, not kinds"
    pooled = len(levels) > options.max_levels
    if pooled:
        by_count = sorted(levels, key=lambda level: (-levels[level], level))
        levels = {level: levels[level] for level in by_count[: options.max_levels - 1]}
    return Categories(name, tuple(sorted(levels)), pooled, is_missing)


def _number(name: str, level: str) -> float:
    try:
        return float(level)
    except ValueError as error:
        raise DataError(
            f"column {name!r} holds numbers, but its order names {level!r}; name numbers."
        ) from error


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
        raise DataError(
            f"target {column.name!r} is text with more than {_MOST_LABELS:,} values; as labels "
            f"there may be so many."
        )
    return tuple(sorted(column.levels))
