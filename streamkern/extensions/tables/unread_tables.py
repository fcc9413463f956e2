"""Tables of other libraries that nobody has read yet, and that are whole Parquet files here."""

import json
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from streamkern.errors import DataError
from streamkern.errors.urls import is_url
from streamkern.extensions.tables.cells import pa, parquet
from streamkern.extensions.tables.table_files import TableFile
from streamkern.extensions.tables.table_rows import files_of


def files_behind(table: Any, beside: Sequence[Any]) -> list[TableFile]:
    """Return the files whose rows are those of a dataset of Arrow or a lazy frame of polars.

    There are none where it leaves out rows or changes cells, where its files are elsewhere or of
    another format, and where lists among `beside` are values, not names of its columns.
    """
    is_arrow = type(table).__module__.startswith("pyarrow")
    columns = table.schema.names if is_arrow else table.collect_schema().names()
    if not all({*map(str, each)} <= {*columns} for each in beside if isinstance(each, list)):
        return []
    paths = _of_dataset(table) if is_arrow else _of_lazy_frame(table)
    if not paths or is_url(paths[0]) or not all(path.endswith(".parquet") for path in paths):
        return []
    stored = parquet.read_schema(paths[0])
    if is_arrow and any(field not in table.schema for field in stored):
        return []
    folders = {*columns} - {*stored.names}
    files = [TableFile(path, _named_in(path, folders)) for path in paths]
    keys = {len(file.folders.split("/")) if folders else 0 for file in files}
    return files if {*stored.names} <= {*columns} and keys == {len(folders)} else []


def _named_in(path: str, names: Collection[str]) -> str:
    parts = Path(path).parent.parts
    return "/".join(part for part in parts if part.partition("=")[0] in names)


def _of_dataset(dataset: Any) -> list[str]:
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # as of one with a filter
        return []
    is_parquet = isinstance(dataset.format, pa.dataset.ParquetFileFormat)
    if not is_parquet or not isinstance(dataset.filesystem, pa.fs.LocalFileSystem):
        return []
    is_whole = all(each.num_row_groups == each.metadata.num_row_groups for each in fragments)
    return list(dataset.files) if is_whole else []


def _of_lazy_frame(frame: Any) -> list[str]:
    """Return what a plain `scan_parquet` reads, which is one that polars writes as this frame."""
    import polars as pl

    if not frame.explain(optimized=False).startswith("Parquet SCAN"):
        return []  # and may have its rows in memory, which would be written
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no other way of polars tells all of a scan
        try:
            told = json.loads(frame.serialize(format="json"))
            told = told.get("IR", {}).get("dsl", told)  # of one whose columns were asked for
            named = [each["inner"] for each in told["Scan"]["sources"]["Paths"]]
            if told != json.loads(pl.scan_parquet(named).serialize(format="json")):
                return []
            paths = [str(file) for file in files_of(named)]
            scans = frame, pl.scan_parquet(paths, glob=False)
            first, same = (each.explain(optimized=False).partition("]")[0] for each in scans)
        except (KeyError, TypeError, ValueError, DataError, pl.exceptions.PolarsError):
            return []
    return paths if first == same else []
