"""Tables in CSV and Parquet files, read a piece at a time by Arrow, and arrays in an `.npz`."""

import gzip
import io
import lzma
import tokenize
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from csv import Error as CSVError
from csv import reader as rows_of
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array
from streamkern.errors import DataError, ParameterError, first_line
from streamkern.errors.formatting import listed, unknown
from streamkern.extensions.tables.cells import csv, pa, parquet
from streamkern.extensions.tables.discovery import RecipeOptions, discover
from streamkern.extensions.tables.recipe import Recipe
from streamkern.registry import EXTENSIONS
from streamkern.runtime.memory import available_bytes, in_words

_PIECE_BYTES = 4 << 20
# Of a wide table that are read at once, and of the first line of a CSV.
_ROWS, _LINE_BYTES = 64, 8 << 20
TABLES = tuple(EXTENSIONS["tables"].files)
_UNREADABLE = (
    *(OSError, EOFError, ValueError, KeyError, TypeError, RuntimeError, SyntaxError, CSVError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, tokenize.TokenError),
)


class NoRowsError(DataError):
    """A table has no rows, or none with a label; of several, others may have some."""


class Batches(NamedTuple):
    """A table whose columns may hold anything, and whose rows have not been read yet."""

    schema: Any
    read: Callable[[list[str]], Iterator[Any]]
    is_written: bool  # whether texts may be numbers


def is_table(path: str | Path) -> bool:
    return str(path).lower().endswith(TABLES)


@contextmanager
def _reading(source: Path) -> Iterator[None]:
    try:
        yield
    except DataError:
        raise
    except _UNREADABLE as error:
        reason = first_line(error)
        raise DataError(f"{source} cannot be read ({reason}); mend or replace it.") from error
    except MemoryError as error:
        raise DataError(
            f"{source} takes more memory than there is; write it again in smaller pieces."
        ) from error


def checked_file(source: Path) -> str:
    """Return the ending of a table's name, or raise DataError if it is none, or no file."""
    known = (*TABLES, ".npz")
    ending = next((e for e in known if source.name.lower().endswith(e)), None)
    if source.suffix.lower() == ".npy":
        raise DataError(
            f"{source} is one array, and convert takes .npz with X and y; save these, or fit to "
            f"numpy.load(path, mmap_mode='r')."
        )
    if ending is None:
        raise DataError(f"{source} must end in {', '.join(known)}; export it as one of these.")
    if not source.is_file():
        raise DataError(f"{source} does not exist or is not a file; check the path.")
    return ending


def open_batches(source: Path, how: Recipe | RecipeOptions) -> Batches:
    is_parquet = checked_file(source) == ".parquet"
    batches = _parquet_batches(source) if is_parquet else _csv_batches(source, how)
    names = batches.schema.names
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise DataError(f"{source} has two columns {twice[0]!r}; rename one.")
    return batches


def discover_tables(
    sources: Sequence[Path], targets: Sequence[str] | None, options: RecipeOptions
) -> Recipe:
    """Return the recipe of tables whose rows are one data set."""
    if targets and len(set(targets)) < len(targets):
        raise DataError(f"the targets are {', '.join(targets)}; name every target once.")
    tables, source = [open_batches(each, options) for each in sources], sources[0]
    schema, is_written = _common_schema(sources, tables), tables[0].is_written
    for what in ("delimiter", "decimal", "thousands"):
        if getattr(options, what) and not is_written:
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

    def read(names: list[str]) -> Iterator[Any]:
        for table in tables:
            yield from table.read(names)

    try:
        return discover(schema, read, targets or (), options, is_written=is_written)
    except DataError as error:
        raise DataError(f"{source}: {error}") from error


def _common_schema(sources: Sequence[Path], tables: Sequence[Batches]) -> Any:
    """Return the columns of several tables, or raise DataError where these are not the same."""
    schema, first = tables[0].schema, sources[0]
    for source, table in zip(sources[1:], tables[1:], strict=True):
        names = table.schema.names
        if table.is_written != tables[0].is_written:
            raise DataError(f"{source} is no table of the kind of {first}; name one kind.")
        if odd := {*names} ^ {*schema.names}:
            holder, other = (source, first) if min(odd) in names else (first, source)
            raise DataError(
                f"tables of one data set must have the same columns, but {holder} has "
                f"{unknown(min(odd), {*names, *schema.names} - odd)} and {other} has not; "
                f"rename it."
            )
        try:
            schema = pa.unify_schemas([schema, table.schema], promote_options="permissive")
        except pa.ArrowException as error:
            raise DataError(
                f"a column has one type in {first}, but another in {source} ({error}); write "
                f"both with one type."
            ) from error
    return schema


def _check_targets(source: Path, names: Sequence[str], targets: Sequence[str] | None) -> None:
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


class _Lines(io.RawIOBase):
    """The bytes of a CSV without empty lines at its end, which would be cells of one column.

    No piece ends in CR where LF follows: Arrow would lose that, even of a value in quotes.
    """

    def __init__(self, source: Path) -> None:
        opened: Any = gzip.open if source.name.lower().endswith(".gz") else open
        self._file = opened(source, "rb")
        self._held = self.end = b""

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
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


def _csv_options(source: Path, how: Recipe | RecipeOptions) -> tuple[list[str], Any, Any]:
    """Return the cells of the first line of a CSV, and the options that it is read with."""
    usual = "\t" if source.name.lower().removesuffix(".gz").endswith(".tsv") else ","
    between = how.delimiter or usual
    raw: Any = _Lines(source)
    how_read: Any = {"encoding": "utf-8-sig", "errors": "replace", "newline": ""}
    with _reading(source), io.TextIOWrapper(raw, **how_read) as file:
        lines = iter(lambda: file.readline(_LINE_BYTES), "")
        n_empty, first = next((each for each in enumerate(lines) if each[1].strip()), (0, ""))
        names = next(rows_of(chain([first], lines), delimiter=between), [])
    marks = [mark for mark in ";\t|," if len(names) == 1 and mark in names[0]]
    wrong = "it is empty; at least a line of names is needed" * (not first)
    if "\0" in first:
        wrong = "it is UTF-16, or has zero bytes; save it as UTF-8"
    elif len(first) == _LINE_BYTES:
        wrong = f"its first line has {_LINE_BYTES:,} bytes or more; give shorter names"
    elif marks and not how.delimiter:
        wrong = f"it has one column, with {marks[0]!r} in it; give delimiter (--delimiter), "
        wrong += f"{marks[0]!r} if that is between cells, and else {usual!r}"
    if wrong:
        raise DataError(f"{source} cannot be read: {wrong}.")
    # Up to 32 blocks are read ahead, and no line may be longer than one.
    block = max(_PIECE_BYTES // 2, min(_ROWS * len(first), 8 * _PIECE_BYTES), 2 * len(first))
    read = {"block_size": block, "use_threads": False, "autogenerate_column_names": not how.header}
    read |= {"skip_rows": n_empty * how.header}
    parse = {"newlines_in_values": True, "ignore_empty_lines": len(names) > 1}
    return names, csv.ReadOptions(**read), csv.ParseOptions(delimiter=between, **parse)


def _csv_batches(source: Path, how: Recipe | RecipeOptions) -> Batches:
    found, *options = _csv_options(source, how)
    names = [name.strip() if how.header else str(j) for j, name in enumerate(found)]
    found = found if how.header else [f"f{j}" for j in range(len(found))]  # as Arrow calls them
    called = dict(zip(names, found, strict=True))

    def read(wanted: list[str]) -> Iterator[Any]:
        needed = list(dict.fromkeys([*(called[name] for name in wanted), found[-1]]))
        types = dict.fromkeys(needed, pa.string())
        texts, last = csv.ConvertOptions(include_columns=needed, column_types=types), None
        with _reading(source):
            lines = _Lines(source)
            for batch in csv.open_csv(lines, *options, texts):
                last = batch.column(found[-1])[-1].as_py() if len(batch) else last
                yield pa.record_batch({name: batch.column(called[name]) for name in wanted})
            if last and "\n" in last and lines.end != b'"':
                raise DataError(
                    f"{source}: a quotation mark is never closed, which makes one value of all "
                    f"rows after it; close it, or write it twice within quotation marks."
                )

    return Batches(pa.schema([(name, pa.string()) for name in names]), read, is_written=True)


def _parquet_batches(source: Path) -> Batches:
    with _reading(source):
        file = parquet.ParquetFile(
            source, buffer_size=_PIECE_BYTES, pre_buffer=False, page_checksum_verification=True
        )
        row = 8 * max(len(file.schema_arrow), 1)
        n_rows = max(_PIECE_BYTES // row, min(_ROWS, 8 * _PIECE_BYTES // row), 1)

    def read(wanted: list[str]) -> Iterator[Any]:
        with _reading(source):
            yield from file.iter_batches(n_rows, columns=wanted)

    return Batches(file.schema_arrow, read, is_written=False)


def read_npz(source: Path, *, with_y: bool) -> tuple[Array, Array | None]:
    """Return the arrays X (n, p) and y (n,) or (n, q), None where there is none, of an `.npz`."""
    with _reading(source), zipfile.ZipFile(source) as held:
        names = [name.removesuffix(".npy") for name in held.namelist()]
        claimed = sum(each.file_size for each in held.infolist())
    if claimed > available_bytes():
        raise DataError(
            f"{source} is read whole, which takes {in_words(claimed)}, more than is free; write "
            f"X and y as datasets of HDF5."
        )
    if "X" not in names:
        raise DataError(f"{source} needs an array X (n, p), but holds: {', '.join(names)}.")
    with _reading(source), np.load(source, allow_pickle=False) as arrays:
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
