"""Rows of tables that are named by paths, patterns, folders and URLs."""

import glob
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from streamkern.engine.scheduler import compute_all, delayed
from streamkern.errors import DataError, first_line
from streamkern.errors.urls import is_url, shown
from streamkern.extensions.tables.discovery import RecipeOptions, warn_of_left_out
from streamkern.extensions.tables.recipe import Recipe
from streamkern.extensions.tables.table_files import (
    NoRowsError,
    TableFile,
    check_columns,
    discover_tables,
    is_table,
    no_labels,
    open_tables,
)
from streamkern.extensions.tables.table_source import TableSource
from streamkern.sources.base import Opened
from streamkern.sources.headers import matching

# Labels that one task looks at.
_LABELS = 1 << 20
# What may be said of tables whose recipe is there already, and of new ones.
_SAID = ("weights", "delimiter", "decimal", "thousands", "ids")


def files_of(paths: Sequence[str | os.PathLike[str]]) -> list[TableFile]:
    """Return the tables that paths, patterns and folders of Parquet stand for; none for HDF5."""
    files = [file for path in paths for file in _named(path)]
    kinds = {is_table(file.path): file for file in reversed(files)}
    if len(kinds) > 1:
        raise DataError(
            f"{kinds[False]} is no CSV or Parquet, but {kinds[True]} is; name one kind."
        )
    if True not in kinds:
        return []
    seen = set[str]()
    for file in files:
        if file.path in seen:
            raise DataError(f"{file} is named twice, but its rows count once; name it once.")
        seen.add(file.path)
    return files


def files_behind(dataset: Any, beside: Sequence[Any]) -> list[TableFile]:
    """Return the files whose rows are those of a dataset of Arrow.

    There are none where it leaves out rows or changes cells, where its files are elsewhere or of
    another format, where folders are text that would be read as numbers, and where `beside` has
    values, not names of its columns.
    """
    from pyarrow import dataset as datasets
    from pyarrow import fs

    try:
        parts = list(dataset.get_fragments())
    except ValueError:  # as of one with a filter
        return []
    columns, is_parquet = dataset.schema, isinstance(dataset.format, datasets.ParquetFileFormat)
    is_here = is_parquet and isinstance(dataset.filesystem, fs.LocalFileSystem)
    if not (parts and is_here and all(part.path.endswith(".parquet") for part in parts)):
        return []
    keys = [datasets.get_partition_keys(part.partition_expression) for part in parts]
    stored = [*parts[0].physical_schema, *map(columns.field, keys[0])]
    is_whole = len(stored) == len(columns) and all(field in columns for field in stored)
    is_whole &= all(part.physical_schema.equals(parts[0].physical_schema) for part in parts)
    is_whole &= all(part.num_row_groups == part.metadata.num_row_groups for part in parts)
    values = [each for each in beside if not (each is None or isinstance(each, str))]
    is_whole &= all(isinstance(v, list) and {*map(str, v)} <= {*columns.names} for v in values)
    folders_as_text = {str(v) for each in keys for v in each.values() if isinstance(v, str)}
    is_whole &= not any(map(_could_be_number, folders_as_text))
    if not is_whole or any(None in each.values() for each in keys):
        return []
    folders = ("/".join(f"{key}={quote(str(v))}" for key, v in each.items()) for each in keys)
    return [TableFile(part.path, each) for part, each in zip(parts, folders, strict=True)]


def _could_be_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _named(given: str | os.PathLike[str]) -> list[TableFile]:
    if isinstance(given, TableFile):
        return [given]
    path = os.fspath(given)
    if path.endswith("/") if is_url(path) else Path(path).is_dir():
        return _in_folder(path)
    found = matching(path)
    if is_url(path) or not glob.has_magic(path):
        return [TableFile(each) for each in found]
    root = path
    while glob.has_magic(root):
        root = str(Path(root).parent)
    return [TableFile(each, os.path.relpath(Path(each).parent, root)) for each in found]


def _in_folder(path: str) -> list[TableFile]:
    """Return the Parquet files in a folder, but for those of writers that have not ended."""
    if is_url(path):
        found = {name[len(shown(path)) :]: name for name in matching(f"{path}**")}
    else:
        names = sorted(map(str, Path(path).rglob("*")))
        found = {os.path.relpath(name, path): name for name in names}
    snapshot = _snapshot(path) if any("_delta_log" in name.split("/") for name in found) else found
    return [
        TableFile(name, inside.rpartition("/")[0])
        for inside, name in found.items()
        if inside in snapshot
        and inside.endswith(".parquet")
        and not re.search(r"(^|/)[_.]", inside)
    ]


def _snapshot(path: str) -> set[str]:
    """Return the files of the present version of a Delta table, as they are called inside it."""
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    except ImportError as error:
        raise DataError(
            f"{path} is a Delta table, which deltalake reads; pip install 'streamkern[delta]'."
        ) from error
    try:
        table = DeltaTable(path)
        if "deletionVectors" in (table.protocol().reader_features or ()):
            raise DataError(
                f"{path} is a Delta table with deletion vectors, which are not read; purge it, or "
                f"write it again without."
            )
        root, files = table.table_uri.removeprefix("file://").rstrip("/") + "/", table.file_uris()
    except (DeltaError, OSError) as error:
        raise DataError(
            f"{path} cannot be read as a Delta table ({first_line(error)}); mend or replace it."
        ) from error
    names = {uri.removeprefix("file://").removeprefix(root) for uri in files}
    return names | set(map(unquote, names))


def opened(
    files: Sequence[TableFile],
    recipe: Recipe | None,
    options: Mapping[str, Any],
    *,
    targets: Sequence[str] | None = (),
    with_targets: bool = True,
    with_ids: bool = False,
    told: set[str] | None = None,
    labels: bool = False,
) -> Opened:
    """Open tables by a recipe, or by one that is made of them; `options` come first.

    Without targets there are no weights either.  After a pass it warns of cells that a given recipe
    did not expect, unless of these is `told`.  `labels` is as of `open_hdf5`.
    """
    given = {name: options[name] for name in _SAID if options.get(name)}
    how: Any = RecipeOptions(**given, drop=options.get("drop", ()))
    if is_known := recipe is not None:
        how = replace(recipe.of_targets(targets or ()), **given)
    tables = open_tables(files, how)
    used: Recipe = how
    if not is_known:
        categorical = (targets or ()) if labels else ()
        used = discover_tables(tables, targets, replace(how, categorical=categorical))
        if told is None:
            warn_of_left_out(used)
    reads_targets = with_targets and bool(used.targets)
    check_columns(tables, used, with_targets=with_targets)
    if not sum(table.n_rows for table in tables):
        raise NoRowsError(f"{files[0]} has no rows; at least one is needed.")
    names = [{*table.schema.names} for table in tables]
    source = TableSource(
        files=tuple(tables),
        recipe=used,
        reads_targets=reads_targets,
        reads_weights=with_targets,
        ids=tuple(name for name in used.ids * with_ids if all(name in each for each in names)),
        told=(set() if told is None else told) if is_known else None,
    )
    if not (reads_targets and used.labels):
        return Opened(source, 0, source.tally)
    if not labels:
        raise DataError(
            f"{files[0]}: {used.targets[0]} must hold numbers, but holds text; convert it to "
            f"numbers first, or, if these are labels of classes, take a classifier (--classify)."
        )
    source = replace(source, unlabelled=_unlabelled(source))
    return Opened(source, source.unlabelled, source.tally)


def _unlabelled(source: TableSource) -> int:
    """Return how many rows have no label, or raise DataError if none has one."""
    _, labels = source.labelled()
    readers = map(labels.reader, source.shards(_LABELS))
    found = sum(compute_all([delayed(_missing, reader, name="labels") for reader in readers]))
    if found == source.n_samples:
        raise no_labels(source.files[0], source.recipe, found)
    return found


def _missing(labels: Any) -> int:
    return sum(int((part == "").sum()) for part in labels)
