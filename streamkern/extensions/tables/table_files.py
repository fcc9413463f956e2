"""Tables in CSV and Parquet files that are the rows of one data set, and arrays in an `.npz`."""

import zipfile
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array
from streamkern.engine.scheduler import delayed
from streamkern.engine.task_stream import stream
from streamkern.errors import DataError, ParameterError
from streamkern.errors.formatting import listed, unknown
from streamkern.extensions.tables.cells import pa
from streamkern.extensions.tables.column_contents import ColumnContents
from streamkern.extensions.tables.csv_table import CSVTable, counted
from streamkern.extensions.tables.discovery import RecipeOptions, discover
from streamkern.extensions.tables.parquet_table import ParquetTable, values_of_folder
from streamkern.extensions.tables.recipe import Recipe
from streamkern.extensions.tables.stored_tables import StoredTable, reading
from streamkern.registry import EXTENSIONS
from streamkern.runtime.memory import available_bytes, in_words
from streamkern.sources.stored_files import StoredFile, in_threads

TABLES = tuple(ending for ending in EXTENSIONS["tables"].files if "/" not in ending)
# Of rows whose columns one task looks into.
_ROWS = 1 << 18


class NoRowsError(DataError):
    """Tables have no rows, or none with a label."""


class TableFile(NamedTuple):
    """A table, and the folders in its path whose names may be columns."""

    path: str  # a `StoredFile` where it is in a store
    folders: str = ""

    def __str__(self) -> str:
        return self.path

    def __fspath__(self) -> str:
        return self.path


def no_labels(table: StoredTable, recipe: Recipe, n_rows: int) -> NoRowsError:
    return NoRowsError(
        f"none of the {n_rows:,} rows of {table.path} has a label in {recipe.targets[0]!r}; fill "
        f"that column."
    )


def is_table(path: str | Path) -> bool:
    return str(path).lower().endswith(TABLES)


def checked_file(source: str | Path) -> str:
    """Return the ending of a table's name, or raise DataError if it is none, or no file."""
    known, name = (*TABLES, ".npz"), str(source).lower()
    ending = next((e for e in known if name.endswith(e)), None)
    if name.endswith(".npy"):
        raise DataError(
            f"{source} is one array, and convert takes .npz with X and y; save these, or fit to "
            f"numpy.load(path, mmap_mode='r')."
        )
    if ending is None:
        raise DataError(f"{source} must end in {', '.join(known)}; export it as one of these.")
    if not isinstance(source, StoredFile) and not Path(source).is_file():
        raise DataError(f"{source} does not exist or is not a file; check the path.")
    return ending


def open_tables(files: Sequence[TableFile], how: Recipe | RecipeOptions) -> list[StoredTable]:
    """Read the headers of tables of one kind; CSV files whole, to count their rows."""
    endings = [checked_file(file.path) for file in files]

    def opened(file: TableFile, ending: str) -> StoredTable:
        if ending == ".parquet":
            values = values_of_folder(file.folders)
            if isinstance(how, Recipe):  # of one folder of many, too
                inputs = {column.name for column in how.columns}
                more = values_of_folder(str(Path(file.path).parent))
                values |= {name: value for name, value in more.items() if name in inputs}
            return ParquetTable.open(file.path, values)
        return CSVTable.open(file.path, how.delimiter, header=how.header)

    tables = _with_one_schema(in_threads(opened, zip(files, endings, strict=True)))
    for table in tables:
        table.check_names()
    lines = [table for table in tables if isinstance(table, CSVTable)]
    known = iter(counted(lines) if lines else ())
    return [next(known) if isinstance(table, CSVTable) else table for table in tables]


def _with_one_schema(tables: list[StoredTable]) -> list[StoredTable]:
    """Let tables of the same columns hold one schema: with many files, a shard has it once."""
    schema = tables[0].schema
    return [
        replace(table, schema=schema)
        if isinstance(table, ParquetTable) and table.schema.equals(schema, check_metadata=True)
        else table
        for table in tables
    ]


def discover_tables(
    tables: Sequence[StoredTable], targets: Sequence[str] | None, options: RecipeOptions
) -> Recipe:
    """Return the recipe of tables whose rows are one data set."""
    if targets and len(set(targets)) < len(targets):
        raise DataError(f"the targets are {', '.join(targets)}; name every target once.")
    source, is_csv = tables[0].path, isinstance(tables[0], CSVTable)
    schema = _common_schema(tables)
    for what in ("delimiter", "decimal", "thousands"):
        if getattr(options, what) and not is_csv:
            raise ParameterError(f"{what} is for CSV, but {source} is Parquet; leave it out.")
    names = schema.names
    for name in options.named():
        is_target = name in (targets or ()) and name not in options.categorical
        if name not in names or is_target:
            what = "is a target" if is_target else "is no column"
            others = {*names} - {*options.drop, name}
            raise DataError(
                f"{unknown(name, others)} {what} of {source}; its columns are {listed(names)}."
            )
    others = {*options.drop, *options.ids, options.weights}
    _check_targets(source, [name for name in names if name not in others], targets)

    def scanned(contents: dict[str, ColumnContents]) -> dict[str, ColumnContents]:
        # Dask would look for tasks in every column, and in every table.
        read = [partial(_contents, contents, ranges) for ranges in _joined(tables)]
        tasks = (delayed(each, name="columns") for each in read)
        found: dict[str, ColumnContents] = {}
        for each in stream(tasks):
            found = found or each
            for name, column in found.items():
                if each is not found:
                    column.merge(each[name])
        return found

    if not sum(table.n_rows for table in tables):
        raise NoRowsError(f"{source} has no rows; at least one is needed.")
    try:
        unread = {name: why for table in tables for name, why in table.long_texts.items()}
        how: Any = {"written": tables[0].written, "unread": unread}
        return discover(schema, scanned, targets or (), options, **how)
    except DataError as error:
        if str(error).startswith(tuple(table.path for table in tables)):
            raise
        raise DataError(f"{source}: {error}") from error


def _joined(tables: Sequence[StoredTable]) -> Iterator[list[tuple[StoredTable, int, int]]]:
    """Yield rows of tables for one task each: some of one, or those of small ones."""
    some, n_rows = [], 0
    for table in tables:
        for start, end in _ranges(table.groups):
            some.append((table, start, end))
            n_rows += end - start
            if n_rows >= _ROWS:
                yield some
                some, n_rows = [], 0
    if some:
        yield some


def _ranges(groups: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the beginnings and ends of groups of rows, of small ones several at a time."""
    start = 0
    for end in accumulate(groups):
        if end - start >= _ROWS:
            yield start, end
            start = end
    if start < sum(groups):
        yield start, sum(groups)


def _contents(
    empty: dict[str, ColumnContents], ranges: Sequence[tuple[StoredTable, int, int]]
) -> dict[str, ColumnContents]:
    """Return what the columns of some rows hold."""
    contents = deepcopy(empty)
    for table, start, stop in ranges:
        for batch in table.read(list(contents), start, stop):
            with table.naming():
                for name, column in contents.items():
                    column.update(batch.column(name))
    return contents


def _common_schema(tables: Sequence[StoredTable]) -> Any:
    """Return the columns of several tables, or raise DataError where these are not the same."""
    schema, first = tables[0].schema, tables[0].path
    for table in tables[1:]:
        if type(table) is not type(tables[0]):
            raise DataError(f"{table.path} is no table of the kind of {first}; name one kind.")
        names = table.schema.names
        if odd := {*names} ^ {*schema.names}:
            holder, other = (table.path, first) if min(odd) in names else (first, table.path)
            raise DataError(
                f"tables of one data set must have the same columns, but {holder} has "
                f"{unknown(min(odd), {*names, *schema.names} - odd)} and {other} has not; "
                f"rename it."
            )
        if table.schema.types == schema.types:
            continue
        try:
            schema = pa.unify_schemas([schema, table.schema], promote_options="permissive")
        except pa.ArrowException as error:
            raise DataError(
                f"a column has one type in {first}, but another in {table.path} ({error}); write "
                f"both with one type."
            ) from error
    return schema


def _check_targets(source: str, names: Sequence[str], targets: Sequence[str] | None) -> None:
    if unfound := [name for name in targets or () if name not in names]:
        raise DataError(
            f"{source} has no column {unknown(unfound[0], names)}; its columns are {listed(names)}."
        )
    if targets is not None and not targets:
        raise DataError(
            f"{source} needs a target; name a column as y (--target), of: {listed(names)}; or "
            f"convert it with targets=None (--no-target) to a file of inputs alone."
        )
    if {*names} <= {*(targets or ())}:
        raise DataError(
            f"{source} has no columns but targets ({listed(names)}); inputs are needed too."
        )


def check_columns(tables: Sequence[StoredTable], recipe: Recipe, *, with_targets: bool) -> None:
    """Raise DataError unless tables have the columns that a recipe needs."""
    needed = [column.name for column in recipe.columns]
    needed += [*recipe.targets, *filter(None, [recipe.weights])] if with_targets else []
    for table in tables:
        present = table.schema.names
        known = {*present}
        if absent := [name for name in needed if name not in known]:
            is_target = absent[0] in recipe.targets
            remedy = "; targets=None (--no-target) and `predict` take inputs alone" * is_target
            if absent[0] == recipe.weights:
                remedy = "; a column of ones weighs all rows the same"
            raise DataError(
                f"{table.path} has no column {unknown(absent[0], present)}, which the recipe "
                f"needs; its columns are {listed(present)}{remedy}."
            )


def read_npz(source: Path, *, with_y: bool) -> tuple[Array, Array | None]:
    """Return the arrays X (n, p) and y (n,) or (n, q), None where there is none, of an `.npz`."""
    with reading(source), zipfile.ZipFile(source) as held:
        names = [name.removesuffix(".npy") for name in held.namelist()]
        claimed = sum(each.file_size for each in held.infolist())
    if claimed > available_bytes():
        raise DataError(
            f"{source} is read whole, which takes {in_words(claimed)}, more than is free; write "
            f"X and y as datasets of HDF5."
        )
    if "X" not in names:
        raise DataError(f"{source} needs an array X (n, p), but holds: {', '.join(names)}.")
    with reading(source), np.load(source, allow_pickle=False) as arrays:
        X = _numbers(source, "X", arrays["X"], (2,))
        y = _numbers(source, "y", arrays["y"], (1, 2)) if with_y and "y" in names else None
    if y is not None and len(y) != len(X):
        raise DataError(f"{source}: X has {len(X):,} rows, but y has {len(y):,}; make them equal.")
    return X, y


def _numbers(source: Path, name: str, array: Array, ndims: tuple[int, ...]) -> Array:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub":
        held = getattr(array, "dtype", "no array")
        raise DataError(f"{source}: {name} must hold numbers, not {held}; convert it first.")
    if array.ndim not in ndims or 0 in array.shape[1:]:
        raise DataError(
            f"{source}: {name} must be a table, not of shape {array.shape}; reshape it."
        )
    return array.view(np.uint8) if array.dtype.kind == "b" else array
