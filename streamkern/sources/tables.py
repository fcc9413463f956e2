"""Tables in CSV, Parquet and NumPy files, read a piece at a time."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamkern.errors import DataError
from streamkern.errors.formatting import listed
from streamkern.runtime.memory import available_bytes, in_words
from streamkern.sources.preprocessing import discover
from streamkern.sources.preprocessing.cells import SINGLE_EXACT, csv, is_number, pa
from streamkern.sources.table_batches import (
    TABLES,
    UNNAMED_INDEX,
    checked_ending,
    csv_opener,
    not_numbers,
    open_batches,
    opened_parquet,
    reading,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from streamkern._typing import Array
    from streamkern.sources.preprocessing import Recipe, RecipeOptions

_PIECE_BYTES = 4 << 20


class Table(NamedTuple):
    """A table whose rows have not been read yet."""

    feature_names: Sequence[str]
    target_names: Sequence[str]
    pieces: Iterator[tuple[Array, Array | None]]


def open_table(source: Path, targets: Sequence[str] | None) -> Table:
    """Open a file according to its ending; parameters as in `streamkern.convert`."""
    ending = checked_ending(source, _READERS)
    _check_targets(targets)
    return _READERS[ending](source, targets)


def discover_table(source: Path, targets: Sequence[str] | None, options: RecipeOptions) -> Recipe:
    """Return the recipe of a table, from a pass over its rows."""
    _check_targets(targets)
    batches = open_batches(source, header=options.header)
    names = [name for name in batches.schema.names if name not in options.drop]
    for name in options.named():
        if name not in batches.schema.names or name in (targets or ()):
            what = "is a target" if name in (targets or ()) else "is no column"
            raise DataError(
                f"{name!r} {what} of {source}; its columns are {', '.join(names[:20])}."
            )
    split_columns(source, names, targets)
    try:
        return discover(
            batches.schema, batches.read, targets or (), options, is_written=batches.is_written
        )
    except DataError as error:
        raise DataError(f"{source}: {error}") from error


def _check_targets(targets: Sequence[str] | None) -> None:
    """Raise DataError if a target is named twice."""
    if targets and len(set(targets)) < len(targets):
        raise DataError(f"--target names {', '.join(targets)}; name every target once.")


def split_columns(
    source: Path, names: Sequence[str], targets: Sequence[str] | None
) -> tuple[list[int], list[int]]:
    """Return the places of the features and of the targets among named columns."""
    shown = listed(names)
    for name in targets or ():
        if names.count(name) != 1:
            found = "more than one column" if name in names else "no column"
            raise DataError(f"{source} has {found} {name!r}; its columns are {shown}.")
    if targets is not None and not targets:
        raise DataError(
            f"{source} needs a target; name a column with --target, of: {shown}; or give "
            f"--no-target for a file of inputs alone."
        )
    targets = targets or ()
    features = [j for j, name in enumerate(names) if name not in targets]
    features = [j for j in features if not UNNAMED_INDEX.fullmatch(names[j])]
    if not features:
        raise DataError(f"{source} has no columns but targets ({shown}); inputs are needed too.")
    return features, [names.index(name) for name in targets]


def _arrow_table(source: Path, schema: Any, targets: Sequence[str] | None, batches: Any) -> Table:
    """Return the table whose record batches `batches()` yields."""
    names = schema.names
    features, wanted = split_columns(source, names, targets)

    def matrix(batch: Any, columns: list[int]) -> Array:
        exact = all(str(schema.types[j]) in SINGLE_EXACT for j in columns)
        rows = np.empty((batch.num_rows, len(columns)), np.float32 if exact else np.float64)
        for place, j in enumerate(columns):
            column = batch.column(j).cast("float32" if exact else "float64", safe=False)
            rows[:, place] = column.to_numpy(zero_copy_only=False)
        return rows

    def pieces() -> Iterator[tuple[Array, Array | None]]:
        with reading(source, names):
            for batch in batches():
                y = matrix(batch, wanted)
                one, none = len(wanted) == 1, not wanted
                yield matrix(batch, features), None if none else y[:, 0] if one else y

    return Table([names[j] for j in features], targets or (), pieces())


def _read_csv(source: Path, targets: Sequence[str] | None) -> Table:
    opened = csv_opener(source, _PIECE_BYTES)
    with reading(source):
        guessed = opened().schema
        # A type guessed from the first rows may not hold for the rest.
        types = [t if pa.types.is_boolean(t) else pa.float64() for t in guessed.types]
        numbers = csv.ConvertOptions(column_types=dict(zip(guessed.names, types, strict=True)))
        schema = pa.schema(
            [(name.strip(), t) for name, t in zip(guessed.names, types, strict=True)]
        )
    return _arrow_table(source, schema, targets, lambda: opened(numbers))


def _read_parquet(source: Path, targets: Sequence[str] | None) -> Table:
    file, batch_rows = opened_parquet(source, _PIECE_BYTES)
    with reading(source):
        schema = file.schema_arrow
        for j, field in enumerate(schema):
            if UNNAMED_INDEX.fullmatch(field.name) or str(field.type) == "null":
                continue
            if not is_number(field.type):
                first = next(file.iter_batches(batch_rows), None)
                values = first.column(j).drop_null()[:1].to_pylist() if first else []
                example = f", such as {values[0]!r}" if values else ""
                raise not_numbers(source, field.name, f"type {field.type}{example}")
    return _arrow_table(source, schema, targets, lambda: file.iter_batches(batch_rows))


def _read_npz(source: Path, targets: Sequence[str] | None) -> Table:
    if targets:
        raise DataError(f"{source} names its target itself, as the array y; give no --target.")
    with reading(source), zipfile.ZipFile(source) as held:
        names = [name.removesuffix(".npy") for name in held.namelist()]
        claimed = sum(each.file_size for each in held.infolist())
    if claimed > available_bytes():
        raise DataError(
            f"{source} is read whole, which takes {in_words(claimed)}, more than is free; save it "
            f"as .npy."
        )
    if "X" not in names:
        raise DataError(f"{source} needs an array X (n, p), but holds: {', '.join(names)}.")
    with reading(source), np.load(source, allow_pickle=False) as arrays:
        X = _numbers(source, "X", arrays["X"], (2,))
        with_y = "y" in names and targets is not None
        y = _numbers(source, "y", arrays["y"], (1, 2)) if with_y else None
    if y is not None and len(y) != len(X):
        raise DataError(f"{source}: X has {len(X):,} rows, but y has {len(y):,}; make them equal.")
    return Table((), (), ((X[rows], None if y is None else y[rows]) for rows in _pieces(X)))


def _read_npy(source: Path, targets: Sequence[str] | None) -> Table:
    targets = targets or ()
    with reading(source):
        array = np.load(source, mmap_mode="r", allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise DataError(f"{source} is an .npz, not an .npy; rename it.")
        array = _numbers(source, "the array", array, (2,))
    p = array.shape[1]
    numbered = {str(j): j % p for j in range(-p, p)}
    if unknown := [name for name in targets if name not in numbered]:
        raise DataError(f"{source} has columns 0 to {p - 1}, but --target is {unknown[0]}.")
    wanted = [numbered[name] for name in targets]
    if len(set(wanted)) < len(wanted):
        raise DataError(f"{source}: --target {', '.join(targets)}; name every target once.")
    features = [j for j in range(p) if j not in wanted]
    if not features:
        raise DataError(f"{source} has no columns but targets; inputs are needed too.")
    y_columns = wanted[0] if len(wanted) == 1 else wanted
    parts = (array[rows] for rows in _pieces(array))
    pieces = ((part[:, features], part[:, y_columns] if wanted else None) for part in parts)
    return Table([str(j) for j in features], [str(j) for j in wanted], pieces)


def _numbers(source: Path, name: str, array: Array, ndims: tuple[int, ...]) -> Array:
    if not isinstance(array, np.ndarray):
        raise DataError(f"{source}: {name} is no array; save it with NumPy.")
    if array.dtype.kind not in "fiub":
        raise DataError(f"{source}: {name} must hold numbers, not {array.dtype}; convert it first.")
    if array.ndim not in ndims or 0 in array.shape[1:]:
        raise DataError(
            f"{source}: {name} must be a table, not of shape {array.shape}; reshape it."
        )
    return array.view(np.uint8) if array.dtype.kind == "b" else array


def _pieces(array: Array) -> Iterator[slice]:
    step = max(_PIECE_BYTES // (array.shape[1] * array.itemsize), 1)
    return (slice(start, start + step) for start in range(0, len(array), step))


_READERS = {
    **dict.fromkeys(TABLES[:-1], _read_csv),
    ".parquet": _read_parquet,
    ".npz": _read_npz,
    ".npy": _read_npy,
}
