"""Tables in CSV and Parquet files, read a piece at a time."""

import gzip
import io
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from csv import reader as rows_of
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array
from streamkern.errors import DataError, ParameterError
from streamkern.errors.formatting import listed, unknown
from streamkern.sources.numpy_tables import NotNumbersError, Table, read_npy, read_npz, reading
from streamkern.sources.preprocessing import Recipe, RecipeOptions, discover
from streamkern.sources.preprocessing.cells import (
    SINGLE_EXACT,
    csv,
    is_number,
    is_text,
    pa,
    parquet,
    with_points,
)
from streamkern.sources.preprocessing.discovery import unnamed_index

_PIECE_BYTES = 4 << 20
# Of a wide table that are read at once, if they are not too large.
_ROWS = 64
# Of the first line of a CSV, and of long texts of Parquet that are read at once.
_LINE_BYTES, _TEXT_BYTES = 8 << 20, 64 << 20
TABLES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
_AS_USUAL = RecipeOptions()


class Batches(NamedTuple):
    """A table whose columns may hold anything, and whose rows have not been read yet."""

    schema: Any
    read: Callable[[list[str]], Iterator[Any]]
    is_written: bool  # whether texts may be numbers


def is_table(path: str | Path) -> bool:
    return str(path).lower().endswith(TABLES)


def open_table(source: Path, targets: Sequence[str] | None) -> Table:
    """Open a file of numbers according to its ending; parameters as in `streamkern.convert`."""
    ending = _checked_ending(source, _READERS)
    _check_targets(targets)
    return _READERS[ending](source, targets)


def open_batches(source: Path, how: Recipe | RecipeOptions) -> Batches:
    is_parquet = _checked_ending(source, TABLES) == ".parquet"
    batches = _parquet_batches(source) if is_parquet else _csv_batches(source, how)
    names = batches.schema.names
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise DataError(f"{source} has two columns {twice[0]!r}; rename one.")
    return batches


def discover_tables(
    sources: Sequence[Path], targets: Sequence[str] | None, options: RecipeOptions
) -> Recipe:
    """Return the recipe of tables whose rows are one data set."""
    _check_targets(targets)
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
            columns = [name for name in names if name not in options.drop]
            raise DataError(
                f"{unknown(name, set(columns) - {name})} {what} of {source}; its columns are "
                f"{', '.join(columns[:20])}."
            )
    others = {*options.drop, *options.ids, options.weights}
    _split_columns(source, [name for name in names if name not in others], targets)

    def read(names: list[str]) -> Iterator[Any]:
        for table in tables:
            yield from table.read(names)

    try:
        return discover(schema, read, targets or (), options, is_written=is_written)
    except DataError as error:
        raise DataError(f"{source}: {error}") from error


def _common_schema(sources: Sequence[Path], tables: Sequence[Batches]) -> Any:
    """Return the columns of several tables, or raise DataError where these are not the same."""
    known, first = tables[0].schema, sources[0]
    found = dict(zip(known.names, known.types, strict=True))
    for source, table in zip(sources[1:], tables[1:], strict=True):
        if table.is_written != tables[0].is_written:
            raise DataError(f"{source} is no table of the kind of {first}; name one kind.")
        names = table.schema.names
        if odd := {*names} ^ {*found}:
            holder, other = (source, first) if min(odd) in names else (first, source)
            raise DataError(
                f"tables of one data set must have the same columns, but {holder} has "
                f"{unknown(min(odd), {*names, *found} - odd)} and {other} has not; rename it."
            )
        for name, kind in zip(names, table.schema.types, strict=True):
            if pa.null() in (kind, found[name]):  # of no cells
                found[name] = kind if found[name] == pa.null() else found[name]
            elif kind != found[name] and not (is_number(kind) and is_number(found[name])):
                raise DataError(
                    f"column {name!r} is {found[name]} in {first}, but {kind} in {source}; write "
                    f"both with one type."
                )
            elif kind != found[name]:
                found[name] = pa.float64()
    return pa.schema(list(found.items()))


def _checked_ending(source: Path, known: Iterable[str]) -> str:
    """Return which of the known endings a file has, or raise DataError if it has none."""
    ending = next((e for e in known if source.name.lower().endswith(e)), None)
    if ending is None:
        raise DataError(f"{source} must end in {', '.join(known)}; export it as one of these.")
    if not source.is_file():
        raise DataError(f"{source} does not exist or is not a file; check the path.")
    return ending


def _check_targets(targets: Sequence[str] | None) -> None:
    if targets and len(set(targets)) < len(targets):
        raise DataError(f"the targets are {', '.join(targets)}; name every target once.")


def _split_columns(
    source: Path, names: Sequence[str], targets: Sequence[str] | None
) -> tuple[list[int], list[int]]:
    """Return the places of the features and of the targets among named columns."""
    shown = listed(names)
    for name in targets or ():
        if names.count(name) != 1:
            found = "more than one column" if name in names else "no column"
            other = unknown(name, set(names) - {name})
            raise DataError(f"{source} has {found} {other}; its columns are {shown}.")
    if targets is not None and not targets:
        raise DataError(
            f"{source} needs a target; name a column as y (--target), of: {shown}; or convert it "
            f"with targets=None (--no-target) to a file of inputs alone."
        )
    wanted = {*(targets or ())}
    features = [j for j, name in enumerate(names) if name not in wanted]
    if not features:
        raise DataError(f"{source} has no columns but targets ({shown}); inputs are needed too.")
    return features, [names.index(name) for name in targets or ()]


def _opened(source: Path) -> Any:
    return gzip.open(source) if source.name.lower().endswith(".gz") else source.open("rb")


class _Lines(io.RawIOBase):
    """The bytes of a CSV without empty lines at its end.

    No piece ends in CR where LF follows: Arrow would lose that, even of a value in quotes.
    """

    def __init__(self, source: Path) -> None:
        self._file, self.end = _opened(source), b""
        self._ready: deque[bytes] = deque()
        self._empty: list[bytes] = []  # line ends that are lines where others follow

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def read(self, size: int = -1) -> bytes:
        while not self._ready and (data := self._file.read(size)):
            data += self._file.read(1) if data.endswith(b"\r") else b""
            text = data.rstrip(b"\r\n")
            if text:
                self.end = text.rstrip()[-1:] or self.end
                last = len(text) + 1 + data.startswith(b"\r\n", len(text))
                self._ready.extend([*self._empty, data[:last]])
                self._empty, data = [], data[last:]
            if data:  # kept once, however often it comes
                self._empty.append(data if data not in self._empty[-1:] else self._empty[-1])
        return self._ready.popleft() if self._ready else b""


def _csv_options(source: Path, how: Recipe | RecipeOptions) -> tuple[list[str], Any, Any]:
    """Return the cells of the first line of a CSV, and the options that it is read with."""
    usual = "\t" if source.name.lower().removesuffix(".gz").endswith(".tsv") else ","
    between = how.delimiter or usual
    # Latin 1 gives every byte a character, so lines of any encoding are told from each other.
    with reading(source), io.TextIOWrapper(_opened(source), "latin-1", newline="") as file:
        lines = iter(lambda: file.readline(_LINE_BYTES), "")
        n_empty, first = next((each for each in enumerate(lines) if each[1].strip()), (0, ""))
        texts = (line.encode("latin-1").decode("utf-8-sig") for line in chain([first], lines))
        wrong = "it is UTF-16, or has zero bytes; save it as UTF-8" * ("\0" in first)
        if not first:
            wrong = "it is empty; at least a line of names is needed"
        if len(first) == _LINE_BYTES:
            wrong = f"its first line has {_LINE_BYTES:,} bytes or more; give shorter names"
        names = [] if wrong else next(rows_of(texts, delimiter=between), [])
    marks = [mark for mark in ";\t|," if len(names) == 1 and mark in names[0]]
    if marks and not how.delimiter:
        wrong = f"it has one column, with {marks[0]!r} in it; give delimiter (--delimiter), "
        wrong += f"{marks[0]!r} if that is between cells, and else {usual!r}"
    if wrong:
        raise DataError(f"{source} cannot be read: {wrong}.")
    # Up to 32 blocks are read ahead; no line may be longer than one, and every block costs as much
    # for each of its columns as some of its rows.
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
        texts = csv.ConvertOptions(include_columns=needed, column_types=types)
        last, marks = None, (how.decimal, how.thousands)
        numbers = {*wanted} - {*how.ids} if any(marks) else ()
        with reading(source):
            lines = _Lines(source)
            for batch in csv.open_csv(lines, *options, texts):
                cells = dict(zip(needed, batch.columns, strict=True))
                last = cells[found[-1]][-1].as_py() if len(batch) else last
                columns = {name: cells[called[name]] for name in wanted}
                columns |= {name: with_points(name, columns[name], *marks) for name in numbers}
                yield pa.record_batch(columns)
            if last and "\n" in last and lines.end != b'"':
                raise DataError(
                    f"{source}: a quotation mark is never closed, which makes one value of all "
                    f"rows after it; close it, or write it twice within quotation marks."
                )

    return Batches(pa.schema([(name, pa.string()) for name in names]), read, is_written=True)


def _read_csv(source: Path, targets: Sequence[str] | None) -> Table:
    names, *options = _csv_options(source, _AS_USUAL)
    numbers = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.float64()))
    schema = pa.schema([(name.strip(), pa.float64()) for name in names])

    def batches() -> Any:
        return csv.open_csv(_Lines(source), *options, numbers)

    return _arrow_table(source, schema, targets, batches)


def _opened_parquet(source: Path) -> tuple[Any, int]:
    """Return a Parquet file, and how many of its rows to read at once."""
    with reading(source):
        file = parquet.ParquetFile(
            source, buffer_size=_PIECE_BYTES, pre_buffer=False, page_checksum_verification=True
        )
        row = 8 * max(len(file.schema_arrow), 1)
        return file, max(_PIECE_BYTES // row, min(_ROWS, 8 * _PIECE_BYTES // row), 1)


def _parquet_batches(source: Path) -> Batches:
    file, batch_rows = _opened_parquet(source)
    texts = {field.name for field in file.schema_arrow if is_text(field.type)}

    def read(wanted: list[str]) -> Iterator[Any]:
        chosen = texts & {*wanted}
        for group in map(file.metadata.row_group, range(file.num_row_groups)):
            for j, name in enumerate(file.schema.names if chosen else ()):
                n_bytes = group.column(j).total_uncompressed_size if name in chosen else 0
                if n_bytes > max(_TEXT_BYTES, group.num_rows << 12):
                    raise DataError(
                        f"{source}: column {name!r} has {n_bytes:,} bytes of text in "
                        f"{group.num_rows:,} rows; shorten it, or name it in drop (--drop)."
                    )
        with reading(source):
            yield from file.iter_batches(batch_rows, columns=wanted)

    return Batches(file.schema_arrow, read, is_written=False)


def _read_parquet(source: Path, targets: Sequence[str] | None) -> Table:
    file, batch_rows = _opened_parquet(source)
    with reading(source):
        schema = file.schema_arrow
        if not all(is_number(kind) or kind == pa.null() for kind in schema.types):
            raise NotNumbersError
    return _arrow_table(source, schema, targets, lambda: file.iter_batches(batch_rows))


def _arrow_table(source: Path, schema: Any, targets: Sequence[str] | None, batches: Any) -> Table:
    """Return the table whose record batches `batches()` yields."""
    names, types = schema.names, list(map(str, schema.types))
    if unnamed_index(names):
        raise NotNumbersError
    features, wanted = _split_columns(source, names, targets)

    def matrix(batch: Any, columns: list[int]) -> Array:
        exact = all(types[j] in SINGLE_EXACT for j in columns)
        kind, part = pa.float32() if exact else pa.float64(), batch.select(columns)
        if {*part.schema.types} != {kind}:
            schema = pa.schema([(name, kind) for name in part.schema.names])
            part = part.cast(schema, safe=False)
        return np.asarray(part.to_tensor(null_to_nan=True))

    def pieces() -> Iterator[tuple[Array, Array | None]]:
        with reading(source):
            for batch in batches():
                y = matrix(batch, wanted) if wanted else None
                yield matrix(batch, features), y[:, 0] if y is not None and len(wanted) == 1 else y

    return Table([names[j] for j in features], targets or (), pieces())


_READERS = {
    **dict.fromkeys(TABLES[:-1], _read_csv),
    ".parquet": _read_parquet,
    ".npz": read_npz,
    ".npy": read_npy,
}
