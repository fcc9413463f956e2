"""Opening HDF5 files, with retries, or saying why one cannot be opened."""

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import h5py

from streamkern.errors import DataError
from streamkern.sources.stored_files import StoredFile, StoreError

# HDF5's own default; a chunk cache is raised above it where a row of chunks is larger.
CHUNK_CACHE_BYTES = 8 << 20
# Errors that networks and their file systems recover from, and seconds to give them for it.
OUTAGES = {errno.EAGAIN, errno.EINTR, errno.ESTALE, errno.ETIMEDOUT}
_PASSING = {errno.EIO, *OUTAGES}
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
_WAITS = (0.05, 0.2, 0.8)
# What HDF5 says, and what that means.
_KNOWN_REASONS = {
    "is not a plain file": "is a pipe, a device or a socket; copy what it holds into a file first.",
    "is a folder": "is a folder, not an HDF5 file; name the files in it.",
    "truncated": "is a truncated HDF5 file: it is shorter than its header says; copy it again.",
    "already open for": "is open in a program that writes to it (SWMR), or was when that died; let "
    "it end, or run `h5clear -s` on the file.",
}
# What to do with files of other kinds, by their endings.
_OTHERS = {
    ".npz": "make HDF5 of it with `streamkern convert`.",
    ".npy": "fit to numpy.load(path, mmap_mode='r') in Python, or write it to HDF5 with h5py.",
    **dict.fromkeys((".xls", ".xlsx", ".ods"), "export it as CSV."),
    **dict.fromkeys((".feather", ".arrow", ".orc", ".json", ".jsonl"), "write it as Parquet."),
    **dict.fromkeys(
        (".libsvm", ".svm", ".svmlight"), "load it with scikit-learn, and fit in Python."
    ),
    **dict.fromkeys((".zip", ".bz2", ".xz", ".zst", ".7z", ".tar"), "unpack it first."),
}

T = TypeVar("T")


@contextmanager
def opened(
    where: str, cache_bytes: int = CHUNK_CACHE_BYTES, *, name: str | None = None
) -> Iterator[h5py.File]:
    """Open a file for reading, or raise DataError saying why it cannot be, by its name if given."""
    if isinstance(where, StoredFile):
        with where.opened(cache_bytes) as file:
            yield file
        return
    try:
        file = open_local(where, cache_bytes)
    except OSError as error:
        why = why_not_opened(error, where, lambda: h5py.is_hdf5(where))
        raise DataError(f"{name or where} {why}") from error
    with file:
        yield file


def open_local(path: str | Path, cache_bytes: int = CHUNK_CACHE_BYTES) -> h5py.File:
    """Open a plain file for reading, without a lock where the file system has none.

    Opening a pipe would be waiting for who writes to it.
    """

    def attempt(locking: str | bool = "best-effort") -> h5py.File:
        mode = Path(path).stat().st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "is a folder")
        if not stat.S_ISREG(mode):
            raise OSError("is not a plain file")
        try:
            return h5py.File(path, "r", locking=locking, rdcc_nbytes=cache_bytes)
        except OSError as error:
            if not locking or error.errno not in _NO_LOCKS:
                raise
        return attempt(locking=False)

    return with_retries(attempt, lambda error: error.errno in _PASSING)


def with_retries(read: Callable[[], T], passes: Callable[[OSError], bool]) -> T:
    for seconds in _WAITS:
        try:
            return read()
        except OSError as error:
            if not passes(error):
                raise
        time.sleep(seconds)
    return read()


def known_reason(error: Exception) -> str:
    """Say why a file cannot be opened, and what to do, where an error says that."""
    said = str(error)
    if isinstance(error, FileNotFoundError):
        return "does not exist; check the path."
    if isinstance(error, PermissionError) or "Permission denied" in said:
        return "cannot be read: permission denied; ask its owner."
    if "unable to lock file" in said:
        code = getattr(error, "errno", None) or errno.EAGAIN
        return (
            f"cannot be locked ({os.strerror(code)}); let the program that writes to it end, or "
            f"set HDF5_USE_FILE_LOCKING=FALSE where there is none."
        )
    return next((why for words, why in _KNOWN_REASONS.items() if words in said), "")


def why_not_opened(error: OSError, name: str, is_hdf5: Callable[[], bool]) -> str:
    if known := known_reason(error):
        return known
    if not is_hdf5():
        usual = "`streamkern convert` makes one from CSV, Parquet or NumPy."
        return f"is not an HDF5 file; {_OTHERS.get(Path(name).suffix.lower(), usual)}"
    return f"cannot be opened as HDF5 ({error}); copy it again."


@contextmanager
def undamaged(path: str) -> Iterator[None]:
    try:
        yield
    except DataError:
        raise
    except StoreError as error:
        raise DataError(f"{path} {error}") from error
    except (ArithmeticError, KeyError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise DataError(f"{path} has damaged headers ({error}); copy it again.") from error
