"""Batches of rows of CSV and Parquet files, whatever their columns hold."""

from __future__ import annotations

import lzma
import re
import tokenize
import zipfile
import zlib
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from streamkern.errors import DataError, first_line
from streamkern.sources.preprocessing.cells import csv, pa, parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

_PIECE_BYTES = 4 << 20
TABLES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
# The column that pandas adds to a Parquet file for an index without a name.
UNNAMED_INDEX = re.compile(r"__index_level_\d+__")
_UNREADABLE = (
    *(OSError, EOFError, ValueError, KeyError, TypeError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, tokenize.TokenError, SyntaxError),
)
_BAD_CELL = re.compile(r"CSV column #(\d+): .*invalid value '(.*)'", re.DOTALL)


class NotNumbersError(DataError):
    """A column of a table is not of numbers."""


class Batches(NamedTuple):
    """A table whose columns may hold anything, and whose rows have not been read yet."""

    schema: Any
    read: Callable[[list[str]], Iterator[Any]]
    is_written: bool


def open_batches(source: Path, *, header: bool = True) -> Batches:
    """Open a CSV or Parquet file whose columns may hold anything."""
    is_parquet = checked_ending(source, TABLES) == ".parquet"
    batches = _parquet_batches(source) if is_parquet else _csv_batches(source, header)
    names = batches.schema.names
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise DataError(f"{source} has two columns {twice[0]!r}; rename one.")
    return batches


def is_table(path: str | Path) -> bool:
    """Say whether a path ends like a table whose columns have names."""
    return str(path).lower().endswith(TABLES)


def checked_ending(source: Path, known: Iterable[str]) -> str:
    """Return which of the known endings a file has, or raise DataError if it has none."""
    ending = next((e for e in known if source.name.lower().endswith(e)), None)
    if ending is None:
        raise DataError(f"{source} must end in {', '.join(known)}; export it as one of these.")
    if not source.is_file():
        raise DataError(f"{source} does not exist or is not a file; check the path.")
    return ending


@contextmanager
def reading(source: Path, names: Sequence[str] = ()) -> Iterator[None]:
    """Turn what other libraries raise into one sentence."""
    try:
        yield
    except DataError:
        raise
    except _UNREADABLE as error:
        reason = first_line(error)
        if cell := _BAD_CELL.search(str(error)):
            raise not_numbers(source, names[int(cell[1])], f"the value {cell[2]!r}") from error
        if any(words in reason for words in ("Object arrays", "Python objects", "pickled")):
            raise DataError(
                f"{source} holds Python objects, which are never loaded; save it as plain numbers."
            ) from error
        raise DataError(f"{source} cannot be read ({reason}); mend or replace it.") from error
    except MemoryError as error:
        raise DataError(
            f"{source} takes more memory than there is; write it again in smaller pieces."
        ) from error


def not_numbers(source: Path, column: str, found: str) -> NotNumbersError:
    """Return the error that says which column holds what else."""
    return NotNumbersError(f"{source}: column {column!r} must hold numbers, but has {found}.")


def _unpacked(source: Path) -> Any:
    return pa.input_stream(str(source), "gzip" if source.name.lower().endswith(".gz") else None)


def _end_of(source: Path) -> bytes:
    """Return the last character of a CSV that is no white space."""
    end = b""
    with _unpacked(source) as stream:
        while piece := stream.read(_PIECE_BYTES):
            end = (end + piece).rstrip()[-1:]
    return end


def csv_opener(source: Path, piece_bytes: int, *, header: bool = True) -> Callable[..., Any]:
    """Return what opens a CSV, with options of how its columns are converted."""
    tabs = source.name.lower().removesuffix(".gz").endswith(".tsv")
    # Up to 32 blocks are read ahead; no line may be longer than one.
    read = csv.ReadOptions(
        block_size=piece_bytes // 2, use_threads=False, autogenerate_column_names=not header
    )
    parse = csv.ParseOptions(delimiter="\t" if tabs else ",", newlines_in_values=True)

    def opened(convert: Any = None) -> Any:
        return csv.open_csv(_unpacked(source), read, parse, convert)

    return opened


def _csv_batches(source: Path, header: bool) -> Batches:
    opened = csv_opener(source, _PIECE_BYTES, header=header)
    with reading(source):
        found = opened().schema.names
    names = [name.strip() if header else str(j) for j, name in enumerate(found)]
    called = dict(zip(names, found, strict=True))

    def read(wanted: list[str]) -> Iterator[Any]:
        columns = [called[name] for name in wanted]
        needed = list(dict.fromkeys([*columns, found[-1]]))
        options = csv.ConvertOptions(
            include_columns=needed, column_types=dict.fromkeys(needed, pa.string())
        )
        last = None
        with reading(source, names):
            for batch in opened(options):
                last = batch.column(found[-1])[-1].as_py() if len(batch) else last
                yield batch.select(columns).rename_columns(wanted)
            if last and "\n" in last and _end_of(source) != b'"':
                raise DataError(
                    f"{source}: a quotation mark is never closed, which makes one value of all "
                    f"rows after it; close it, or write it twice within quotation marks."
                )

    return Batches(pa.schema([(name, pa.string()) for name in names]), read, is_written=True)


def opened_parquet(source: Path, piece_bytes: int) -> tuple[Any, int]:
    """Return a Parquet file, and how many of its rows to read at once."""
    with reading(source):
        file = parquet.ParquetFile(
            source, buffer_size=piece_bytes, pre_buffer=False, page_checksum_verification=True
        )
        return file, max(piece_bytes // (8 * max(len(file.schema_arrow), 1)), 1)


def _parquet_batches(source: Path) -> Batches:
    file, batch_rows = opened_parquet(source, _PIECE_BYTES)

    def read(wanted: list[str]) -> Iterator[Any]:
        with reading(source):
            yield from file.iter_batches(batch_rows, columns=wanted)

    kept = [field for field in file.schema_arrow if not UNNAMED_INDEX.fullmatch(field.name)]
    return Batches(pa.schema(kept), read, is_written=False)
