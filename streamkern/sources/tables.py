"""Tables in CSV and Parquet files, read a piece at a time."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array
from streamkern.errors import DataError, ParameterError
from streamkern.errors.formatting import listed, unknown
from streamkern.sources.numpy_tables import NotNumbersError, Table, read_npy, read_npz, reading
from streamkern.sources.preprocessing import Recipe, RecipeOptions, discover
from streamkern.sources.preprocessing.cells import SINGLE_EXACT, csv, is_number, pa, parquet

_PIECE_BYTES = 4 << 20
TABLES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
# The column that pandas or Dask adds to a Parquet file for an index without a name.
_UNNAMED_INDEX = re.compile(r"__(index_level_\d+|null_dask_index)__")


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


def open_batches(source: Path, *, header: bool = True, delimiter: str | None = None) -> Batches:
    is_parquet = _checked_ending(source, TABLES) == ".parquet"
    batches = _parquet_batches(source) if is_parquet else _csv_batches(source, header, delimiter)
    names = batches.schema.names
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise DataError(f"{source} has two columns {twice[0]!r}; rename one.")
    return batches


def discover_tables(
    sources: Sequence[Path], targets: Sequence[str] | None, options: RecipeOptions
) -> Recipe:
    """Return the recipe of tables whose rows are one data set."""
    _check_targets(targets)
    how: Any = {"header": options.header, "delimiter": options.delimiter}
    tables, source = [open_batches(each, **how) for each in sources], sources[0]
    schema, is_written = _common_schema(sources, tables), tables[0].is_written
    if options.delimiter and not is_written:
        raise ParameterError(f"a delimiter is for CSV, but {source} is Parquet; leave it out.")
    for name in options.named():
        if name not in schema.names or name in (targets or ()):
            what = "is a target" if name in (targets or ()) else "is no column"
            columns = [name for name in schema.names if name not in options.drop]
            raise DataError(
                f"{unknown(name, set(columns) - {name})} {what} of {source}; its columns are "
                f"{', '.join(columns[:20])}."
            )
    others = {*options.drop, *options.ids, options.weights}
    _split_columns(source, [name for name in schema.names if name not in others], targets)

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
            if kind != found[name] and not (is_number(kind) and is_number(found[name])):
                raise DataError(
                    f"column {name!r} is {found[name]} in {first}, but {kind} in {source}; write "
                    f"both with one type."
                )
            found[name] = found[name] if kind == found[name] else pa.float64()
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
        raise DataError(f"--target names {', '.join(targets)}; name every target once.")


def _split_columns(
    source: Path, names: Sequence[str], targets: Sequence[str] | None
) -> tuple[list[int], list[int]]:
    """Return the places of the features and of the targets among named columns."""
    shown = listed(names)
    for name in targets or ():
        if names.count(name) != 1:
            found = "more than one column" if name in names else "no column"
            other = unknown(name, set(names) - {name})
            marks = [mark for mark in ";\t|" if len(names) == 1 and mark in names[0]]
            hint = f"; cells between {marks[0]!r} need delimiter (--delimiter)" if marks else ""
            raise DataError(f"{source} has {found} {other}; its columns are {shown}{hint}.")
    if targets is not None and not targets:
        raise DataError(
            f"{source} needs a target; name a column as y (--target), of: {shown}; or convert it "
            f"with --no-target to a file of inputs alone."
        )
    features = [j for j, name in enumerate(names) if name not in (targets or ())]
    features = [j for j in features if not _UNNAMED_INDEX.fullmatch(names[j])]
    if not features:
        raise DataError(f"{source} has no columns but targets ({shown}); inputs are needed too.")
    return features, [names.index(name) for name in targets or ()]


def _unpacked(source: Path) -> Any:
    return pa.input_stream(str(source), "gzip" if source.name.lower().endswith(".gz") else None)


def _end_of(source: Path) -> bytes:
    end = b""
    with _unpacked(source) as stream:
        while piece := stream.read(_PIECE_BYTES):
            end = (end + piece).rstrip()[-1:]
    return end


def _opened_csv(
    source: Path, convert: Any = None, *, header: bool = True, delimiter: str | None = None
) -> Any:
    tabs = source.name.lower().removesuffix(".gz").endswith(".tsv")
    # Up to 32 blocks are read ahead; no line may be longer than one.
    read = csv.ReadOptions(
        block_size=_PIECE_BYTES // 2, use_threads=False, autogenerate_column_names=not header
    )
    between = delimiter or ("\t" if tabs else ",")
    parse = csv.ParseOptions(delimiter=between, newlines_in_values=True)
    return csv.open_csv(_unpacked(source), read, parse, convert)


def _csv_batches(source: Path, header: bool, delimiter: str | None) -> Batches:
    how: Any = {"header": header, "delimiter": delimiter}
    with reading(source):
        found = _opened_csv(source, **how).schema.names
    names = [name.strip() if header else str(j) for j, name in enumerate(found)]
    called = dict(zip(names, found, strict=True))

    def read(wanted: list[str]) -> Iterator[Any]:
        columns = [called[name] for name in wanted]
        needed = list(dict.fromkeys([*columns, found[-1]]))
        types = dict.fromkeys(needed, pa.string())
        texts = csv.ConvertOptions(include_columns=needed, column_types=types)
        last = None
        with reading(source):
            for batch in _opened_csv(source, texts, **how):
                last = batch.column(found[-1])[-1].as_py() if len(batch) else last
                yield batch.select(columns).rename_columns(wanted)
            if last and "\n" in last and _end_of(source) != b'"':
                raise DataError(
                    f"{source}: a quotation mark is never closed, which makes one value of all "
                    f"rows after it; close it, or write it twice within quotation marks."
                )

    return Batches(pa.schema([(name, pa.string()) for name in names]), read, is_written=True)


def _read_csv(source: Path, targets: Sequence[str] | None) -> Table:
    with reading(source):
        guessed = _opened_csv(source).schema
        # A type guessed from the first rows may not hold for the rest.
        types = [t if pa.types.is_boolean(t) else pa.float64() for t in guessed.types]
        numbers = csv.ConvertOptions(column_types=dict(zip(guessed.names, types, strict=True)))
        names = [name.strip() for name in guessed.names]
    schema = pa.schema(zip(names, types, strict=True))
    return _arrow_table(source, schema, targets, lambda: _opened_csv(source, numbers))


def _opened_parquet(source: Path) -> tuple[Any, int]:
    """Return a Parquet file, and how many of its rows to read at once."""
    with reading(source):
        file = parquet.ParquetFile(
            source, buffer_size=_PIECE_BYTES, pre_buffer=False, page_checksum_verification=True
        )
        return file, max(_PIECE_BYTES // (8 * max(len(file.schema_arrow), 1)), 1)


def _parquet_batches(source: Path) -> Batches:
    file, batch_rows = _opened_parquet(source)

    def read(wanted: list[str]) -> Iterator[Any]:
        with reading(source):
            yield from file.iter_batches(batch_rows, columns=wanted)

    kept = [field for field in file.schema_arrow if not _UNNAMED_INDEX.fullmatch(field.name)]
    return Batches(pa.schema(kept), read, is_written=False)


def _read_parquet(source: Path, targets: Sequence[str] | None) -> Table:
    file, batch_rows = _opened_parquet(source)
    with reading(source):
        schema = file.schema_arrow
        for field in schema:
            is_kept = str(field.type) != "null" and not _UNNAMED_INDEX.fullmatch(field.name)
            if is_kept and not is_number(field.type):
                raise NotNumbersError
    return _arrow_table(source, schema, targets, lambda: file.iter_batches(batch_rows))


def _arrow_table(source: Path, schema: Any, targets: Sequence[str] | None, batches: Any) -> Table:
    """Return the table whose record batches `batches()` yields."""
    features, wanted = _split_columns(source, schema.names, targets)

    def matrix(batch: Any, columns: list[int]) -> Array:
        exact = all(str(schema.types[j]) in SINGLE_EXACT for j in columns)
        rows = np.empty((batch.num_rows, len(columns)), np.float32 if exact else np.float64)
        for place, j in enumerate(columns):
            column = batch.column(j).cast("float32" if exact else "float64", safe=False)
            rows[:, place] = column.to_numpy(zero_copy_only=False)
        return rows

    def pieces() -> Iterator[tuple[Array, Array | None]]:
        with reading(source):
            for batch in batches():
                y = matrix(batch, wanted) if wanted else None
                yield matrix(batch, features), y[:, 0] if y is not None and len(wanted) == 1 else y

    return Table([schema.names[j] for j in features], targets or (), pieces())


_READERS = {
    **dict.fromkeys(TABLES[:-1], _read_csv),
    ".parquet": _read_parquet,
    ".npz": read_npz,
    ".npy": read_npy,
}
