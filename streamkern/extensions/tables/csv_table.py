"""Tables in CSV files, which workers read some lines at a time, where these can be told apart."""

import gzip
import io
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from csv import reader as rows_of
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any, Self

import numpy as np

from streamkern.engine.scheduler import compute_all, delayed
from streamkern.errors import DataError
from streamkern.extensions.tables import stored_tables
from streamkern.extensions.tables.cells import Whole, csv, pa
from streamkern.extensions.tables.stored_tables import StoredTable, opened_bytes, reading
from streamkern.sources.stored_files import version_of

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
            raw: Any = _Lines(path)
            with io.TextIOWrapper(raw, **how) as file:
                lines = iter(lambda: file.readline(_LINE_BYTES), "")
                n_empty, first = next((e for e in enumerate(lines) if e[1].strip()), (0, ""))
                found = next(rows_of(chain([first], lines), delimiter=between), [])
        marks = [mark for mark in ";\t|," if len(found) == 1 and mark in found[0]]
        wrong = "it is empty; at least a line of names is needed" * (not first)
        if "\0" in first:
            wrong = "it is UTF-16, or has zero bytes; save it as UTF-8"
        elif "\N{REPLACEMENT CHARACTER}" in first:
            wrong = "its first line is not UTF-8; save it as UTF-8"
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
        called = Whole(found if header else (f"f{j}" for j in range(len(found))))
        return cls(path, schema, called, between, n_empty if header else -1, len(first), version)

    @property
    def written(self) -> set[str]:
        return {*self.schema.names}

    @property
    def kept_bytes(self) -> int:
        block = max(stored_tables.PIECE_BYTES, self._options()[0].block_size)
        return min(stored_tables.ARROW_BYTES + 8 * block, 16 * max(self.version[0], 1 << 18))

    def narrowed(self, first: int, last: int) -> Self:
        if not self.ends:
            return self
        begin = self.ends[first - 1] if first else self.begin
        return replace(
            self, groups=self.groups[first:last], ends=self.ends[first:last], begin=begin
        )

    def batches(self, names: Sequence[str], first: int, last: int) -> Iterator[Any]:
        if not self.ends:
            yield from self._all(names)
            return
        for ends in [*pairwise((self.begin, *self.ends))][first:last]:
            try:
                yield from self._between(names, *ends)
            except DataError:
                for _ in self._all(names):  # to name the row by its place in the file
                    pass
                raise

    def _all(self, names: Sequence[str]) -> Iterator[Any]:
        last: Any = None
        with reading(self.path), _Lines(self.path) as lines:
            for batch, end in self._parsed(lines, names, is_first=True):
                last = end[-1].as_py() if len(batch) else last
                yield batch
            if last and "\n" in last and lines.end != b'"':
                raise DataError(
                    f"{self.path}: a quotation mark is never closed, which makes one value of "
                    f"all rows after it; close it, or write it twice within quotation marks."
                )

    def _between(self, names: Sequence[str], start: int, end: int) -> Iterator[Any]:
        with reading(self.path):
            with opened_bytes(self.path) as file:
                file.seek(start)
                lines = io.BytesIO(file.read(end - start))
            for batch, _ in self._parsed(lines, names, is_first=not start):
                yield batch

    def _parsed(
        self, lines: Any, names: Sequence[str], *, is_first: bool
    ) -> Iterator[tuple[Any, Any]]:
        """Yield batches with some columns, and the last column of each, of the file."""
        called = dict(zip(self.schema.names, self.called, strict=True))
        needed = list(dict.fromkeys([*(called[name] for name in names), self.called[-1]]))
        texts = dict.fromkeys(needed, pa.string())
        how = csv.ConvertOptions(include_columns=needed, column_types=texts)
        for batch in csv.open_csv(lines, *self._options(is_first=is_first), how):
            columns = {name: batch.column(called[name]) for name in names}
            yield pa.record_batch(columns), batch.column(self.called[-1])

    def count(self, start: int, end: int) -> int | None:
        """Return the rows of some lines, None where these cannot be read by themselves."""
        with suppress(DataError):
            return sum(map(len, self._between([self.schema.names[-1]], start, end)))
        return None

    def count_all(self) -> int:
        return sum(map(len, self._all([self.schema.names[-1]])))

    def _options(self, *, is_first: bool = True) -> tuple[Any, Any]:
        # Up to 32 blocks are read ahead, and no line may be longer than one.
        least = max(stored_tables.PIECE_BYTES // 2, 2 * self.line_bytes)
        read: Any = {"block_size": max(least, self._few_rows_bytes)}
        if is_first and self.header_lines >= 0:
            read["skip_rows"] = self.header_lines
        else:
            read["column_names"] = self.called
        parse = {"newlines_in_values": True, "ignore_empty_lines": len(self.called) > 1}
        return (
            csv.ReadOptions(use_threads=False, **read),
            csv.ParseOptions(delimiter=self.delimiter, **parse),
        )

    @property
    def _few_rows_bytes(self) -> int:
        return min(_FEW_ROWS * self.line_bytes, 8 * stored_tables.PIECE_BYTES)

    def group_ends(self) -> tuple[int, ...]:
        """Return where groups of whole lines end; none where a line may be part of a value."""
        if len(self.called) == 1 or self.path.lower().endswith(".gz"):
            return ()
        ends, place, rest = list[int](), 0, b""
        piece = max(2 * stored_tables.PIECE_BYTES, self._few_rows_bytes)
        with reading(self.path), opened_bytes(self.path) as file:
            while data := file.read(piece):
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
    tasks = [
        delayed(CSVTable.count, table, *each, name="count")
        for table, ends in zip(tables, found, strict=True)
        for each in pairwise((0, *ends))
    ]
    tasks += [
        delayed(CSVTable.count_all, table, name="count")
        for table, ends in zip(tables, found, strict=True)
        if not ends
    ]
    counts = compute_all(tasks)
    of_groups, of_files = iter(counts), iter(counts[sum(map(len, found)) :])
    made = []
    for table, ends in zip(tables, found, strict=True):
        groups = [next(of_groups) for _ in ends] or [next(of_files)]
        if None in groups:  # read again, for an error to name the row by its place in the file
            groups, ends = [table.count_all()], ()  # noqa: PLW2901
        made.append(replace(table, groups=tuple(groups), ends=ends))
    return made


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
