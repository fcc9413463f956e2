"""Rows in HDF5 files: checked from their headers, cut along storage chunks, read on the worker."""

from __future__ import annotations

import glob
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import h5py
import numpy as np

from streamkern.errors import DataError
from streamkern.sources.base import Block, Reader, Segment, Shard, Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streamkern._typing import Array

# HDF5's own default; a chunk cache is raised above it where a row of chunks is larger.
_CHUNK_CACHE_BYTES = 8 << 20
_SINGLE_EXACT = {"f2", "f4", "i1", "u1", "i2", "u2"}


class FileRows(NamedTuple):
    """The rows of one file, as its header describes them."""

    path: str
    n_rows: int
    n_features: int
    target_shape: tuple[int, ...]
    dtype: str
    chunk_rows: int
    chunk_bytes: int
    file_bytes: int
    modified: float
    storage: str


class Piece(NamedTuple):
    """Rows start to stop of one file."""

    path: str
    start: int
    stop: int


def open_hdf5(
    paths: str | Path | Sequence[str | Path], x: str = "X", y: str | None = "y"
) -> HDF5Source:
    """Describe rows stored in HDF5 files, without reading any.

    Parameters
    ----------
    paths : path, glob pattern, or sequence of these
        Several files are the rows of one data set: in the order given, a pattern sorted by name.
    x, y : str
        Names of the datasets of inputs (n, p) and of targets (n,) or (n, q); `y` None for inputs
        without targets.

    Returns
    -------
    HDF5Source

    Raises
    ------
    DataError
        If a file is missing or not HDF5, a dataset is absent or has a shape or dtype that is not
        a table of numbers, there are no rows, or files differ in their number of columns.
    """
    given = [paths] if isinstance(paths, (str, Path)) else list(paths)
    names = [name for path in given for name in matching(str(path))]
    if not names:
        raise DataError("no files are named; give at least one.")
    files = tuple(_describe(name, x, y) for name in names)
    first = files[0]
    for file in files[1:]:
        if (file.n_features, file.target_shape) != (first.n_features, first.target_shape):
            raise DataError(
                f"files of one data set must have the same columns, but {first.path} has "
                f"{_columns(first)} and {file.path} has {_columns(file)}; fit them separately."
            )
    if not sum(file.n_rows for file in files):
        raise DataError(f"{first.path} has zero rows; at least one is needed.")
    return HDF5Source(files, x, y)


def matching(pattern: str) -> list[str]:
    """Return the paths that a path or a glob pattern stands for, sorted."""
    if not glob.has_magic(pattern) or Path(pattern).exists():
        return [pattern]
    found = sorted(glob.glob(pattern))  # noqa: PTH207  patterns may be absolute
    if not found:
        raise DataError(f"no file matches {pattern}; check the pattern and where you are.")
    return found


def _columns(file: FileRows) -> str:
    return f"{file.n_features} inputs and {sum(file.target_shape) or 1} targets"


@contextmanager
def opened(path: str, cache_bytes: int = _CHUNK_CACHE_BYTES) -> Iterator[h5py.File]:
    """Open a file for reading, or raise DataError saying why it cannot be."""
    where = Path(path)
    try:
        if where.is_dir():
            raise DataError(f"{path} is a folder, not an HDF5 file; name the files in it.")
        where.stat()
        file = h5py.File(where, "r", locking="best-effort", rdcc_nbytes=cache_bytes)
    except OSError as error:
        raise DataError(f"{path} {_why_not_opened(where, error)}") from error
    with file:
        yield file


def _why_not_opened(where: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "does not exist; check the path."
    if isinstance(error, PermissionError) or "Permission denied" in str(error):
        return "cannot be read: permission denied; ask its owner."
    if "truncated" in str(error):
        return "is a truncated HDF5 file: it is shorter than its header says; copy it again."
    if not h5py.is_hdf5(where):
        return "is not an HDF5 file; `streamkern convert` makes one from CSV, Parquet or NumPy."
    return f"cannot be opened as HDF5 ({error}); copy it again."


@contextmanager
def _undamaged(path: str) -> Iterator[None]:
    """Turn what h5py raises on damaged headers into one sentence."""
    try:
        yield
    except DataError:
        raise
    except (KeyError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise DataError(f"{path} has damaged headers ({error}); copy it again.") from error


def _describe(path: str, x: str, y: str | None) -> FileRows:
    with opened(path) as file, _undamaged(path):
        X = _dataset(file, path, x)
        if X.ndim != 2:
            raise DataError(
                f"{path}: {x} must be 2-D (rows, columns), but has shape {X.shape}; store it as a "
                f"table."
            )
        if not X.shape[1]:
            raise DataError(f"{path}: {x} has no columns; at least one is needed.")
        target_shape: tuple[int, ...] = (0,)
        if y is not None:
            target = _dataset(file, path, y)
            if target.ndim not in (1, 2) or 0 in target.shape[1:]:
                raise DataError(
                    f"{path}: {y} must have shape (n,) or (n, q), but has {target.shape}; store "
                    f"one row of targets per row of {x}."
                )
            if len(target) != len(X):
                raise DataError(
                    f"{path}: {x} has {len(X):,} rows but {y} has {len(target):,}; they must be "
                    f"equally long."
                )
            target_shape = target.shape[1:]
        chunk_rows = X.chunks[0] if X.chunks else 1
        status = Path(path).stat()
        return FileRows(
            path=str(Path(path).resolve()),
            n_rows=len(X),
            n_features=X.shape[1],
            target_shape=target_shape,
            dtype=X.dtype.str[1:],
            chunk_rows=chunk_rows,
            chunk_bytes=chunk_rows * X.shape[1] * X.dtype.itemsize if X.chunks else 0,
            file_bytes=status.st_size,
            modified=status.st_mtime,
            storage=_storage(X),
        )


def _dataset(file: h5py.File, path: str, name: str) -> h5py.Dataset:
    found = file.get(name)
    if not isinstance(found, h5py.Dataset):
        present: list[str] = []
        file.visititems(lambda k, v: present.append(k) if isinstance(v, h5py.Dataset) else None)
        listed = ", ".join(sorted(present)[:20]) or "none"
        raise DataError(
            f"{path} has no dataset {name!r}; it holds: {listed}. Name the datasets with --x and "
            f"--y."
        )
    if found.dtype.kind not in "fiu":
        kind = "boolean" if found.dtype.kind == "b" else str(found.dtype)
        raise DataError(
            f"{path}: {name} must hold floats or integers, but its type is {kind}; convert it to "
            f"numbers first."
        )
    _need_filters(found, path, name)
    if found.is_virtual:
        _need_sources(found, path, name)
    return found


def _need_sources(dataset: h5py.Dataset, path: str, name: str) -> None:
    """Refuse a virtual dataset with a file missing: HDF5 would read its rows as zeros."""
    folder = Path(path).resolve().parent
    for source in dataset.virtual_sources():
        if source.file_name != "." and not (folder / source.file_name).is_file():
            raise DataError(
                f"{path}: {name} is made of rows in {source.file_name}, which does not exist; "
                f"put it back."
            )


def _need_filters(dataset: h5py.Dataset, path: str, name: str) -> None:
    """Register the plugins that a dataset's filters need, or say which filter is missing."""
    for code, label in _filters(dataset):
        if h5py.h5z.filter_avail(code):
            continue
        with suppress(ImportError):
            import hdf5plugin  # noqa: F401, PLC0415  slow, and registers its filters on import
        if not h5py.h5z.filter_avail(code):
            raise DataError(
                f"{path}: {name} is compressed with the filter {label} ({code}), which is not "
                f"available; install streamkern[compression]."
            )


def _filters(dataset: h5py.Dataset) -> list[tuple[int, str]]:
    properties = dataset.id.get_create_plist()
    filters = [properties.get_filter(i) for i in range(properties.get_nfilters())]
    return [(code, label.decode(errors="replace")) for code, _, _, label in filters]


def _storage(dataset: h5py.Dataset) -> str:
    if dataset.is_virtual:
        return "virtual"
    if not dataset.chunks:
        return "contiguous"
    labels = " + ".join(label.split(";")[0] for _, label in _filters(dataset)) or "uncompressed"
    return f"chunks {'x'.join(map(str, dataset.chunks))}, {labels}"


@dataclass(frozen=True)
class HDF5Source(Source):
    """Rows in HDF5 files; made by `open_hdf5`.

    Parameters
    ----------
    files : tuple of FileRows
    x : str
    y : str, optional
    """

    files: tuple[FileRows, ...]
    x: str
    y: str | None

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        """The number of rows in all files."""
        return sum(file.n_rows for file in self.files)

    @property
    def n_features(self) -> int:  # type: ignore[override]
        """The number of columns of X."""
        return self.files[0].n_features

    @property
    def n_targets(self) -> int:  # type: ignore[override]
        """The number of columns of y, 0 without y."""
        return sum(self.files[0].target_shape) if self.files[0].target_shape else 1

    @property
    def target_ndim(self) -> int:  # type: ignore[override]
        """The number of dimensions of y as stored."""
        return 1 + len(self.files[0].target_shape)

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        """The dtype that blocks of X have: single where that holds every stored value exactly."""
        single = all(file.dtype in _SINGLE_EXACT for file in self.files)
        return np.dtype(np.float32 if single else np.float64)

    @property
    def chunk_bytes(self) -> int:  # type: ignore[override]
        """The decoded size of the largest row of storage chunks."""
        return max(file.chunk_bytes for file in self.files)

    def segments(self) -> list[Segment]:
        """Return one segment a file."""
        stops = np.cumsum([file.n_rows for file in self.files]).tolist()
        return [
            Segment(stop - file.n_rows, stop, file.chunk_rows)
            for file, stop in zip(self.files, stops, strict=True)
        ]

    def reader(self, shard: Shard) -> HDF5Reader:
        """Return the places of the shard's rows in the files."""
        pieces = [
            Piece(
                file.path,
                max(shard.start, segment.start) - segment.start,
                min(shard.stop, segment.stop) - segment.start,
            )
            for file, segment in zip(self.files, self.segments(), strict=True)
            if segment.start < shard.stop and shard.start < segment.stop
        ]
        cache_bytes = max(_CHUNK_CACHE_BYTES, self.chunk_bytes)
        return HDF5Reader(
            tuple(pieces), self.x, self.y, shard.start, self.dtype.str, self.n_targets, cache_bytes
        )

    def locate(self, row: int) -> str:
        """Say which file a row is in, and where."""
        for file, segment in zip(self.files, self.segments(), strict=True):
            if row < segment.stop:
                return f"{file.path}, row {row - segment.start:,}"
        return f"row {row:,}"

    def describe(self) -> dict[str, Any]:
        """Return paths, shapes and sizes."""
        return {
            "kind": "hdf5",
            "x": self.x,
            "y": self.y,
            "rows": self.n_samples,
            "files": [file._asdict() for file in self.files],
        }


@dataclass(frozen=True)
class HDF5Reader(Reader):
    """Opens the files of one shard where it runs, and reads its rows in blocks."""

    pieces: tuple[Piece, ...]
    x: str
    y: str | None
    start: int
    dtype: str
    n_targets: int
    cache_bytes: int

    def blocks(self, n_rows: int) -> Iterator[Block]:
        """Yield the shard's rows in order; every block is read into the same memory."""
        total = sum(piece.stop - piece.start for piece in self.pieces)
        n_rows = min(n_rows, total)
        with ExitStack() as stack:
            files = [stack.enter_context(opened(p.path, self.cache_bytes)) for p in self.pieces]
            tables = self._datasets(files, self.x)
            X = np.empty((n_rows, tables[0].shape[1]), dtype=self.dtype)
            y = np.empty((n_rows, self.n_targets))
            targets = self._datasets(files, self.y) if self.y is not None else []
            for start in range(0, total, n_rows):
                stop = min(start + n_rows, total)
                self._read(tables, start, stop, X)
                if targets:
                    self._read(targets, start, stop, y)
                yield Block(X[: stop - start], y[: stop - start], self.start + start)

    def _datasets(self, files: list[h5py.File], name: str) -> list[h5py.Dataset]:
        found: list[h5py.Dataset] = []
        for file, piece in zip(files, self.pieces, strict=True):
            with _undamaged(piece.path):
                found.append(_dataset(file, piece.path, name))
            # h5py would repeat a single row as often as needed.
            if len(found[-1]) < piece.stop or found[-1].shape[1:] != found[0].shape[1:]:
                raise DataError(f"{piece.path} changed while it was in use; start again.")
        return found

    def _read(self, datasets: list[h5py.Dataset], start: int, stop: int, out: Array) -> None:
        """Read rows start to stop of the shard, which may cross from one file into the next."""
        done = 0
        for piece, dataset in zip(self.pieces, datasets, strict=True):
            n_rows = piece.stop - piece.start
            first, last = max(start, 0), min(stop, n_rows)
            start, stop = start - n_rows, stop - n_rows
            if first >= last:
                continue
            rows = slice(piece.start + first, piece.start + last)
            part = out[done : done + last - first]
            try:
                dataset.read_direct(part if dataset.ndim == 2 else part[:, 0], rows)
            except OSError as error:
                raise DataError(
                    f"{piece.path}: rows {rows.start:,} to {rows.stop:,} of {dataset.name} cannot "
                    f"be read ({error}); copy the file again."
                ) from error
            done += last - first
