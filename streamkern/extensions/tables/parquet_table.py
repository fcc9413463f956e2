"""Tables in Parquet files, which workers read a row group, or some rows of one, at a time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self
from urllib.parse import unquote

from streamkern.errors import DataError
from streamkern.extensions.tables import stored_tables
from streamkern.extensions.tables.cells import is_text, pa, parquet
from streamkern.extensions.tables.stored_tables import StoredTable, opened_bytes, reading
from streamkern.sources.stored_files import version_of

# Rows that are read at once of a wide table, and of any.
_FEW_ROWS, _MOST_ROWS = 64, 1 << 14
# Half of what Arrow's libraries take, since a shard is read beside another.
_LIBRARY_BYTES = 16 << 20
# Of one column while its pages are read: buffered bytes, and a page as it is and decompressed.
_BUFFER_BYTES, _PAGE_BYTES = 1 << 18, 3 << 20
# Of a text on average: more is no label and no category, and pages of it may be of any size.
_TEXT_BYTES, _FEW_BYTES = 2 << 10, 1 << 20
# What Hive calls a missing value.
_NONE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class ParquetTable(StoredTable):
    """A Parquet file, and what names of its folders, as `year=2020`, say of all its rows."""

    path: str
    schema: Any
    groups: tuple[int, ...]
    version: tuple[int, float | str]
    group_bytes: int  # of the largest group, decoded
    folders: Mapping[str, str | None] = field(default_factory=dict)  # values by column
    first_group: int = 0  # in the file
    long_texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def written(self) -> set[str]:
        return {*self.folders}

    @classmethod
    def open(cls, path: str, folders: Mapping[str, str | None]) -> Self:
        """Read what the footer of a file says."""
        with reading(path):
            version = version_of(path)
            with opened_bytes(path) as raw, _open(raw) as file:
                schema, footer = file.schema_arrow, file.metadata
                groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
                long = _long_texts(schema, groups)
        folders = {name: v for name, v in folders.items() if name not in schema.names}
        for name in folders:
            schema = schema.append(pa.field(name, pa.string()))
        rows, largest = [g.num_rows for g in groups], [g.total_byte_size for g in groups]
        return cls(path, schema, tuple(rows), version, max(largest, default=0), folders, 0, long)

    @property
    def kept_bytes(self) -> int:
        pages = max(len(self.schema.names), 1) * (_PAGE_BYTES + _BUFFER_BYTES)
        return _LIBRARY_BYTES + min(stored_tables.ARROW_BYTES + pages, 8 * self.group_bytes)

    @property
    def _batch_rows(self) -> int:
        row_bytes = 8 * max(len(self.schema.names), 1)
        few = min(_FEW_ROWS, 8 * stored_tables.PIECE_BYTES // row_bytes)
        return min(max(stored_tables.PIECE_BYTES // row_bytes, few, 1), _MOST_ROWS)

    def narrowed(self, first: int, last: int) -> Self:
        groups, first_group = self.groups[first:last], self.first_group + first
        return replace(self, groups=groups, first_group=first_group)

    def batches(self, names: Sequence[str], first: int, last: int) -> Iterator[Any]:
        wanted = range(self.first_group + first, self.first_group + last)
        stored = [name for name in names if name not in self.folders]
        for name in self.long_texts.keys() & {*stored}:
            raise DataError(
                f"{self.path}: column {name!r} has {self.long_texts[name]}, but at most "
                f"{_TEXT_BYTES:,} are read; shorten them."
            )
        kept_bytes = getattr(self.path, "kept_bytes", 0)
        buffer_bytes = max(_BUFFER_BYTES, kept_bytes // 2 // max(len(stored), 1))
        with reading(self.path), opened_bytes(self.path) as raw, _open(raw, buffer_bytes) as file:
            held = range(file.metadata.num_row_groups)[wanted[0] : wanted[-1] + 1]
            rows = tuple(file.metadata.row_group(i).num_rows for i in held)
            if rows != self.groups[first:last]:
                raise self.changed()
            for groups in [[group] for group in wanted] if kept_bytes else [wanted]:
                if kept_bytes:
                    raw.load(*_parts(file.metadata.row_group(groups[0]), stored))
                how = {"row_groups": groups, "columns": stored, "use_threads": False}
                for batch in file.iter_batches(self._batch_rows, **how):
                    batch.validate(full=True)  # texts of a damaged file may be none
                    yield self._with_folders(batch, names)

    def _with_folders(self, batch: Any, names: Sequence[str]) -> Any:
        if not self.folders:
            return batch
        columns = {
            name: pa.repeat(pa.scalar(self.folders[name], pa.string()), len(batch))
            if name in self.folders
            else batch.column(name)
            for name in names
        }
        return pa.record_batch(columns)


def _long_texts(schema: Any, groups: Sequence[Any]) -> dict[str, str]:
    """Return the columns of texts that are longer than any label or category, and how long."""
    texts = {name for name, kind in zip(schema.names, schema.types, strict=True) if is_text(kind)}
    found = {}
    for group in groups if texts else ():
        most = max(_TEXT_BYTES * group.num_rows, _FEW_BYTES)
        if group.total_byte_size > most:
            columns = map(group.column, range(group.num_columns))
            long = (each for each in columns if each.total_uncompressed_size > most)
            for each in long:
                mean = each.total_uncompressed_size // max(group.num_rows, 1)
                found[each.path_in_schema] = f"texts of {mean:,} bytes on average"
    return {name: why for name, why in found.items() if name in texts}


def _parts(group: Any, names: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return where the bytes of some columns of a group begin and end in its file."""
    columns = [group.column(i) for i in range(group.num_columns)]
    columns = [each for each in columns if each.path_in_schema in names]
    starts = [each.dictionary_page_offset or each.data_page_offset for each in columns]
    sizes = [each.total_compressed_size for each in columns]
    return starts, [start + size for start, size in zip(starts, sizes, strict=True)]


def _open(raw: Any, buffer_bytes: int = _BUFFER_BYTES) -> Any:
    how = {"buffer_size": buffer_bytes, "pre_buffer": False, "page_checksum_verification": True}
    return parquet.ParquetFile(pa.PythonFile(raw, "r"), **how)


def values_of_folder(folders: str) -> dict[str, str | None]:
    """Return what the folders of a file, as `year=2020/month=1`, say of its rows, as texts."""
    parts = [part.partition("=") for part in folders.split("/")]
    values = {key: unquote(value) for key, mark, value in parts if mark}
    return {key: None if value == _NONE else value for key, value in values.items()}
