"""Headers of HDF5 files: opened, and checked before any row is read."""

from __future__ import annotations

import errno
import glob
import os
import time
from contextlib import contextmanager
from pathlib import Path
from traceback import clear_frames
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import h5py

from streamkern.errors import DataError
from streamkern.errors.urls import is_url
from streamkern.sources.dataset_checks import Tables, compression
from streamkern.sources.external_files import check_plain_file
from streamkern.sources.object_stores import StoredFile, files_at
from streamkern.sources.preprocessing import RECIPE, Recipe
from streamkern.sources.range_file import RangeFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

# HDF5's own default; a chunk cache is raised above it where a row of chunks is larger.
CHUNK_CACHE_BYTES = 8 << 20
# Errors that networks and their file systems recover from, and seconds to give them for it.
OUTAGES = {errno.EAGAIN, errno.EINTR, errno.ESTALE, errno.ETIMEDOUT}
_PASSING = {errno.EIO, *OUTAGES}
_WAITS = (0.05, 0.2, 0.8)
# Of URLs that are paths.
_LOCAL = ("file", "local")
# What HDF5 says, and what that means.
_KNOWN_REASONS = {
    "truncated": "is a truncated HDF5 file: it is shorter than its header says; copy it again.",
    "already open for": "is open in a program that writes to it (SWMR), or was when that died; let "
    "it end, or run `h5clear -s` on the file.",
}

T = TypeVar("T")


class FileRows(NamedTuple):
    path: str  # a `StoredFile` where it is in a store
    n_rows: int
    n_features: int
    target_shape: tuple[int, ...]
    dtype: str
    chunk_rows: int
    chunk_bytes: int
    file_bytes: int
    modified: float | str  # the time of its last change, or what a store says of its content
    storage: str
    parts: tuple[tuple[str, int, float], ...] = ()  # other files that rows are in, size and time
    recipe: str = ""  # how a table became these rows, as JSON

    def is_unchanged(self) -> bool:
        """Say whether the file, and all others that its rows are in, are what they were."""
        if isinstance(self.path, StoredFile):
            return self.path.is_unchanged()
        found = ((self.path, self.file_bytes, self.modified), *self.parts)
        try:
            return all(_size_and_time(path) == (size, time) for path, size, time in found)
        except OSError:
            return False

    @property
    def paths(self) -> list[str]:
        """All files that the rows are read from, without those in stores."""
        if isinstance(self.path, StoredFile):
            protocol, path = self.path.place
            return [path] if protocol in _LOCAL else []
        return [self.path, *(path for path, *_ in self.parts)]

    @property
    def columns(self) -> str:
        target = "".join(f", {q}" for q in self.target_shape) or ","
        return f"{self.n_features} inputs and targets (n{target})"


def _size_and_time(path: str | Path) -> tuple[int, float]:
    status = Path(path).stat()
    return status.st_size, status.st_mtime


def matching(pattern: str, storage_options: Mapping[str, Any] | None = None) -> list[str]:
    """Return the paths that a path, a URL or a glob pattern stands for, sorted."""
    protocol, mark, path = pattern.partition("://")
    if mark and protocol in _LOCAL:
        pattern = path
    elif is_url(pattern):
        return list(files_at(pattern, storage_options or {}))
    if not glob.has_magic(pattern) or Path(pattern).exists():
        return [pattern]
    found = sorted(glob.glob(pattern))  # noqa: PTH207  patterns may be absolute
    if not found:
        raise DataError(f"no file matches {pattern}; check the pattern and where you are.")
    return found


@contextmanager
def opened(
    where: str | RangeFile, cache_bytes: int = CHUNK_CACHE_BYTES, *, name: str | None = None
) -> Iterator[h5py.File]:
    """Open a file for reading, or raise DataError saying why it cannot be, by its name if given."""
    if isinstance(where, (StoredFile, RangeFile)):
        raw = where if isinstance(where, RangeFile) else RangeFile(where)
        with raw, _open_range(raw, cache_bytes) as file:
            yield file
        return
    path = Path(where)

    def open_file() -> h5py.File:
        if path.is_dir():
            raise DataError(f"{name or where} is a folder, not an HDF5 file; name the files in it.")
        path.stat()
        check_plain_file(path, name)
        return h5py.File(path, "r", locking="best-effort", rdcc_nbytes=cache_bytes)

    try:
        file = with_retries(open_file, lambda error: error.errno in _PASSING)
    except OSError as error:
        why = _why_not_opened(error, lambda: h5py.is_hdf5(path))
        raise DataError(f"{name or where} {why}") from error
    with file:
        yield file


def _open_range(raw: RangeFile, cache_bytes: int) -> h5py.File:
    try:
        return h5py.File(raw, "r", rdcc_nbytes=cache_bytes)
    except OSError as error:
        unsigned = "signature not found" in str(error)
        why = _why_not_opened(error, lambda: not unsigned)
        # What its frames hold would crash h5py 3.16 if it lived to the end of the program.
        clear_frames(error.__traceback__)
    raise DataError(f"{raw} {why}")  # out of the handler, to take nothing along


def with_retries(read: Callable[[], T], passes: Callable[[OSError], bool]) -> T:
    for seconds in _WAITS:
        try:
            return read()
        except OSError as error:
            if not passes(error):
                raise
        time.sleep(seconds)
    return read()


def _why_not_opened(error: OSError, is_hdf5: Callable[[], bool]) -> str:
    said = str(error)
    if isinstance(error, FileNotFoundError):
        return "does not exist; check the path."
    if isinstance(error, PermissionError) or "Permission denied" in said:
        return "cannot be read: permission denied; ask its owner."
    if "unable to lock file" in said:
        return (
            f"cannot be locked ({os.strerror(error.errno or errno.EAGAIN)}); let the program that "
            f"writes to it end, or set HDF5_USE_FILE_LOCKING=FALSE where there is none."
        )
    for words, sentence in _KNOWN_REASONS.items():
        if words in said:
            return sentence
    if not is_hdf5():
        return "is not an HDF5 file; `streamkern convert` makes one from CSV, Parquet or NumPy."
    return f"cannot be opened as HDF5 ({error}); copy it again."


@contextmanager
def undamaged(path: str) -> Iterator[None]:
    try:
        yield
    except DataError:
        raise
    except (ArithmeticError, KeyError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise DataError(f"{path} has damaged headers ({error}); copy it again.") from error


def describe_rows(
    path: str, x: str, y: str | None, weights: str | None = None, labels: str | None = None
) -> FileRows:
    whole = path if isinstance(path, StoredFile) else os.path.realpath(path)
    with opened(whole, name=path) as file, undamaged(path):
        tables = Tables(file, path)

        def require(condition: bool, otherwise: str) -> None:
            if not condition:
                raise DataError(f"{path}: {otherwise}")

        X = tables.numbers(x)
        require(
            X.ndim == 2,
            f"{x} must be 2-D (rows, columns), but has shape {X.shape}; store it as a table.",
        )
        require(0 not in X.shape[1:], f"{x} has no columns; at least one is needed.")
        n, target_shape = len(X), (0,)
        if y is not None:
            target = tables.numbers(y, with_booleans=False)
            require(
                target.ndim in (1, 2) and 0 not in target.shape[1:],
                f"{y} must have shape (n,) or (n, q), but has {target.shape}; store one row of "
                f"targets per row of {x}.",
            )
            require(
                len(target) == n,
                f"{x} has {n:,} rows but {y} has {target.shape[0]:,}; they must be equally long.",
            )
            target_shape = target.shape[1:]
        if weights is not None:
            shape = tables.numbers(weights).shape
            require(
                shape == (n,),
                f"{weights} must hold one weight a row, with shape ({n},), but has {shape}; store "
                f"one number per row of {x}.",
            )
        chunk_bytes = tables.chunk_bytes
        if labels is not None:
            shape = tables.labels(labels).shape
            require(
                len(shape) in (1, 2) and shape[1:] in ((), (1,)),
                f"{labels} must have shape (n,) to hold labels, but has {shape}; store one label "
                f"a row.",
            )
            require(
                shape[0] == n,
                f"there are {n:,} rows but {labels} has {shape[0]:,}; they must be equally long.",
            )
        modified: float | str
        if isinstance(path, StoredFile):
            size, modified = path.size, path.version
        else:
            size, modified = _size_and_time(path)
        return FileRows(
            path=whole,
            n_rows=n,
            n_features=X.shape[1],
            target_shape=target_shape,
            dtype=X.dtype.str[1:],
            chunk_rows=X.chunks[0] if X.chunks else 1,
            chunk_bytes=chunk_bytes,
            file_bytes=size,
            modified=modified,
            storage=_storage(X),
            parts=tuple((part, *_size_and_time(part)) for part in sorted(tables.files)),
            recipe=_recipe(file, X.shape[1]) if x == "X" else "",
        )


def _recipe(file: h5py.File, n_features: int) -> str:
    """Return the text of how a table became these inputs, empty where there is none."""
    if not isinstance(file.get(RECIPE, getlink=True), h5py.HardLink):
        return ""
    dataset = file[RECIPE]
    size = dataset.dtype.itemsize
    # Of a virtual dataset, which stores nothing, HDF5 would look for the shape in other files.
    if dataset.id.get_storage_size() < size or dataset.shape or dataset.dtype.kind != "S":
        raise ValueError("a recipe that is no text of fixed length")
    text = bytes(dataset[()]).decode()
    return text if len(Recipe.from_json(text).feature_names) == n_features else ""


def _storage(dataset: h5py.Dataset) -> str:
    if dataset.is_virtual:
        return "virtual"
    if not dataset.chunks:
        return "contiguous"
    filters = compression(dataset) or "uncompressed"
    return f"chunks {'x'.join(map(str, dataset.chunks))}, {filters}"
