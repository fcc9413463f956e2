"""Tables in NumPy files, and what readers of all tables share."""

import csv
import lzma
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from streamkern._typing import Array
from streamkern.errors import DataError, first_line
from streamkern.runtime.memory import available_bytes, in_words

_PIECE_BYTES = 4 << 20
_UNREADABLE = (
    *(OSError, EOFError, ValueError, KeyError, TypeError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, tokenize.TokenError, SyntaxError, csv.Error),
)


class NotNumbersError(DataError):
    """A table has other cells than numbers, so it needs a recipe; nobody is told."""


class NoRowsError(DataError):
    """A table has no rows, or none with a label; of several, others may have some."""


class Table(NamedTuple):
    """A table of numbers whose rows have not been read yet."""

    feature_names: Sequence[str]
    target_names: Sequence[str]
    pieces: Iterator[tuple[Array, Array | None]]


@contextmanager
def reading(source: Path) -> Iterator[None]:
    try:
        yield
    except DataError:
        raise
    except _UNREADABLE as error:
        reason = first_line(error)
        if ": invalid value '" in str(error):  # of a column of a CSV
            raise NotNumbersError from error
        if any(words in reason for words in ("Object arrays", "Python objects", "pickled")):
            raise DataError(
                f"{source} holds Python objects, which are never loaded; save it as plain numbers."
            ) from error
        raise DataError(f"{source} cannot be read ({reason}); mend or replace it.") from error
    except MemoryError as error:
        raise DataError(
            f"{source} takes more memory than there is; write it again in smaller pieces."
        ) from error


def read_npz(source: Path, targets: Sequence[str] | None) -> Table:
    if targets:
        raise DataError(f"{source} names its target itself, as the array y; give no targets.")
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
    return Table((), (), ((X[rows], None if y is None else y[rows]) for rows in _slices(X)))


def read_npy(source: Path, targets: Sequence[str] | None) -> Table:
    targets = targets or ()
    with reading(source):
        array = np.load(source, mmap_mode="r", allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise DataError(f"{source} is an .npz, not an .npy; rename it.")
        array = _numbers(source, "the array", array, (2,))
    p = array.shape[1]
    numbered = {str(j): j % p for j in range(-p, p)}
    if unknown := [name for name in targets if name not in numbered]:
        raise DataError(f"{source} has columns 0 to {p - 1}, but the target is {unknown[0]}.")
    wanted = [numbered[name] for name in targets]
    if len(set(wanted)) < len(wanted):
        raise DataError(f"{source}: the targets are {', '.join(targets)}; name every target once.")
    features = [j for j in range(p) if j not in wanted]
    if not features:
        raise DataError(f"{source} has no columns but targets; inputs are needed too.")
    y_columns = wanted[0] if len(wanted) == 1 else wanted
    parts = (array[rows] for rows in _slices(array))
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


def _slices(array: Array) -> Iterator[slice]:
    step = max(_PIECE_BYTES // (array.shape[1] * array.itemsize), 1)
    return (slice(start, start + step) for start in range(0, len(array), step))
