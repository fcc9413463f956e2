"""Tables in CSV files, which workers read some lines at a time, where these can be told apart."""

import gzip
import io
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from csv import reader as rows_of
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise
from typing import Any, Self

import numpy as np

from streamkern.engine.scheduler import compute_all, delayed
from streamkern.errors import DataError
from streamkern.extensions.tables import stored_tables
from streamkern.extensions.tables.cells import csv, pa
from streamkern.extensions.tables.stored_tables import (
    StoredTable,
    opened_bytes,
    reading,
    version_of,
)

# Of the first line.
_LINE_BYTES = 8 << 20
# Times its bytes is read at once, at least.
_FEW_ROWS = 64


@dataclass(frozen=True)
class CSVTable(StoredTable):
    """A CSV file, its names of columns, and where groups of its lines begin and end."""

    path: str
    schema: Any  # all text
    called: tuple[str, ...]  # as Arrow calls the columns
    delimiter: str
    header_lines: int  # empty ones before that of names, -1 where there are no names
    line_bytes: int  # of the first
    version: tuple[int, float | str]
    groups: tuple[int, ...] = ()  # rows
    ends: tuple[int, ...] = ()  # of each group in the file; none where lines cannot be told apart
    begin: int = 0  # of the first group

    @classmethod
    def open(cls, path: str, delimiter: str | None, *, header: bool) -> Self:
        """Read the first line of a file."""
        usual = "\t" if path.lower().removesuffix(".gz").endswith(".tsv") else ","
        between = delimiter or usual
        how: Any = {"encoding": "utf-8-sig", "errors": "replace", "newline": ""}
        with reading(path):
            version = version_of(path)
            with io.TextIOWrapper(_lines(path), **how) as file:
                lines = iter(lambda: file.readline(_LINE_BYTES), "")
                n_empty, first = next((e for e in enumerate(lines) if e[1].strip()), (0, ""))
                found = next(rows_of(chain([first], lines), delimiter=between), [])
        marks = [mark for mark in ";\t|," if len(found) == 1 and mark in found[0]]
        wrong = "it is empty; at least a line of names is needed" * (not first)
        if "\0" in first:
            wrong = "it is UTF-16, or has zero bytes; save it as UTF-8"
        elif len(first) == _LINE_BYTES:
            wrong = f"its first line has {_LINE_BYTES:,} bytes or more; give shorter names"
        elif marks and not delimiter:
            wrong = f"it has one column, with {marks[0]!r} in it; give delimiter (--delimiter), "
            wrong += f"{marks[0]!r} if that is between cells, and else {usual!r}"
        if wrong:
            raise DataError(f"{path} cannot be read: {wrong}.")
        numbered = [str(j) for j in range(len(found))]
        names = [name.strip() for name in found] if header else numbered
        schema = pa.schema([(name, pa.string()) for name in names])
        called = tuple(found) if header else tuple(f"f{j}" for j in range(len(found)))
        return cls(path, schema, called, between, n_empty if header else -1, len(first), version)

    @property
    def written(self) -> set[str]:
        return {*self.schema.names}

    @property
    def kept_bytes(self) -> int:
        block = max(stored_tables.PIECE_BYTES, self._options()[0].block_size)
        return min(stored_tables.ARROW_BYTES + 8 * block, 16 * max(self.version[0], 1 << 18))

    def read(self, names: Sequence[str], start: int = 0, stop: int | None = None) -> Iterator[Any]:
        left = (self.n_rows if stop is None else stop) - start
        for batch in self._groups(names, start, start + left):
            skipped = min(start, len(batch))
            part, start = batch.slice(skipped, left), start - skipped
            left -= len(part)
            if len(part):
                yield part
            if not left:
                return
        if left:
            raise self.changed()

    def part(self, start: int, stop: int) -> tuple[Self, int, int]:
        if not self.ends:
            return self, start, stop
        first, last, skipped = self.groups_of(start, stop)
        begin = self.ends[first - 1] if first else self.begin
        groups, ends = self.groups[first:last], self.ends[first:last]
        table = replace(self, groups=groups, ends=ends, begin=begin)
        return table, skipped, skipped + stop - start

    def _groups(self, names: Sequence[str], start: int, stop: int) -> Iterator[Any]:
        """Yield batches, with empty ones in place of groups without rows that are asked for."""
        if not self.ends:
            yield from self._batches(names)
            return
        rows = list(accumulate(self.groups, initial=0))
        begins = [self.begin, *self.ends[:-1]]
        for i, ends in enumerate(zip(begins, self.ends, strict=True)):
            if rows[i + 1] <= start or rows[i] >= stop:
                yield pa.nulls(self.groups[i])
                continue
            try:
                yield from self._batches(names, *ends)
            except DataError:
                for _ in self._batches(names):  # to name the row by its place in the file
                    pass
                raise

    def _batches(
        self, names: Sequence[str], start: int = 0, end: int | None = None
    ) -> Iterator[Any]:
        called = dict(zip(self.schema.names, self.called, strict=True))
        needed = list(dict.fromkeys([*(called[name] for name in names), self.called[-1]]))
        types, last = dict.fromkeys(needed, pa.string()), None
        texts = csv.ConvertOptions(include_columns=needed, column_types=types)
        with reading(self.path):
            lines: Any = _lines(self.path)
            if end is not None:
                with opened_bytes(self.path) as file:
                    file.seek(start)
                    lines = io.BytesIO(file.read(end - start))
            with lines:
                for batch in csv.open_csv(lines, *self._options(is_first=not start), texts):
                    last = batch.column(self.called[-1])[-1].as_py() if len(batch) else last
                    yield pa.record_batch({name: batch.column(called[name]) for name in names})
                if end is None and last and "\n" in last and lines.end != b'"':
                    raise DataError(
                        f"{self.path}: a quotation mark is never closed, which makes one value of "
                        f"all rows after it; close it, or write it twice within quotation marks."
                    )

    def count(self, start: int, end: int | None) -> int | None:
        """Return the rows of some lines, None where these cannot be read by themselves."""
        with suppress(DataError):
            return sum(map(len, self._batches([self.schema.names[-1]], start, end)))
        return None

    def count_whole(self) -> int:
        return sum(map(len, self._batches([self.schema.names[-1]])))

    def _options(self, *, is_first: bool = True) -> tuple[Any, Any]:
        # Up to 32 blocks are read ahead, and no line may be longer than one.
        most = min(_FEW_ROWS * self.line_bytes, 8 * stored_tables.PIECE_BYTES)
        read: Any = {"block_size": max(stored_tables.PIECE_BYTES // 2, most, 2 * self.line_bytes)}
        if is_first and self.header_lines >= 0:
            read["skip_rows"] = self.header_lines
        else:
            read["column_names"] = self.called
        parse = {"newlines_in_values": True, "ignore_empty_lines": len(self.called) > 1}
        return (
            csv.ReadOptions(use_threads=False, **read),
            csv.ParseOptions(delimiter=self.delimiter, **parse),
        )

    def group_ends(self) -> tuple[int, ...]:
        """Return where groups of whole lines end; none where a line may be part of a value."""
        if len(self.called) == 1 or self.path.lower().endswith(".gz"):
            return ()
        ends, place, rest = list[int](), 0, b""
        with reading(self.path), opened_bytes(self.path) as file:
            while data := file.read(2 * stored_tables.PIECE_BYTES):
                data = rest + data
                lines, mark, rest = data.rpartition(b"\n")
                if not mark or not _are_lines(lines + mark):
                    return ()
                place += len(lines) + 1
                ends.append(place)
        if rest.strip() and not _are_lines(rest):
            return ()
        return (*ends[:-1], place + len(rest)) if ends else ()


def _are_lines(data: bytes) -> bool:
    """Say whether lines end in LF, or CR and LF, and each has an even number of quotation marks."""
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        return False
    if b'"' not in data:
        return True
    letters = np.frombuffer(data, np.uint8)
    marks = np.searchsorted(
        np.flatnonzero(letters == ord('"')), np.flatnonzero(letters == ord("\n"))
    )
    return not (np.diff(marks, prepend=0) % 2).any() and data.count(b'"') % 2 == 0


def counted(tables: Sequence[CSVTable]) -> list[CSVTable]:
    """Return tables with their groups of lines, for which the whole files are read."""
    found = compute_all([delayed(CSVTable.group_ends, table, name="lines") for table in tables])
    ranges: list[list[Any]] = [[*pairwise((0, *ends))] or [(0, None)] for ends in found]
    tasks = [
        delayed(CSVTable.count, table, *each, name="count")
        for table, some in zip(tables, ranges, strict=True)
        for each in some
    ]
    counts, made = iter(compute_all(tasks)), []
    for table, ends, some in zip(tables, found, ranges, strict=True):
        groups = [next(counts) for _ in some]
        if None in groups:  # read again, for an error to name the row by its place in the file
            made.append(replace(table, groups=(table.count_whole(),)))
        else:
            made.append(replace(table, groups=tuple(groups), ends=ends))
    return made


def _lines(path: str) -> Any:
    return _Lines(path)


class _Lines(io.RawIOBase):
    """The bytes of a CSV without empty lines at its end, which would be cells of one column.

    No piece ends in CR where LF follows: Arrow would lose that, even of a value in quotes.
    """

    def __init__(self, path: str) -> None:
        self._stack = ExitStack()
        self._file: Any = self._stack.enter_context(opened_bytes(path))
        if path.lower().endswith(".gz"):
            self._file = self._stack.enter_context(gzip.GzipFile(fileobj=self._file))
        self._held = self.end = b""

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._stack.close()
        super().close()

    def read(self, size: int = -1) -> bytes:
        text = b""
        while not text and (data := self._file.read(size)):
            data = self._held + data + (self._file.read(1) if data.endswith(b"\r") else b"")
            text = data.rstrip(b"\r\n")
            self.end = text.rstrip()[-1:] or self.end
            if text:
                text = data[: len(text) + 1 + data.startswith(b"\r\n", len(text))]
            self._held = data[len(text) :]
        return text
