"""Files that are not here, as HDF5 reads them: `registry.py` says what opens a URL."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from io import RawIOBase
from pathlib import Path
from typing import Any, TypeVar

# Requests under way at a time.
_AT_ONCE = 16

T = TypeVar("T")


class StoreError(OSError):
    """A store failed; the text is the rest of a sentence that begins with the file's name."""


class StoredFile(str, ABC):
    """The URL of a file in a store as it may be shown, with what it takes to read the file."""

    size: int
    version: str  # what a store says of its content
    kept_bytes: int  # of a file that is read
    place: tuple[str, str]  # the same of one file by other URLs
    paths: list[str]  # of the file, where it is here after all

    @abstractmethod
    def is_unchanged(self) -> bool:
        """Say whether size and version are what they were."""

    @abstractmethod
    def raw(self) -> RawIOBase:
        """Open the file as bytes, of which `load(starts, stops)` reads several parts at once."""

    @abstractmethod
    def opened(self, cache_bytes: int) -> AbstractContextManager[Any]:
        """Open the file with h5py, or raise DataError saying why it cannot be."""

    @abstractmethod
    def in_use(self) -> AbstractContextManager[None]:
        """Say that rows of the open file are in use, while HDF5 reads none of it."""


def version_of(path: str) -> tuple[int, float | str]:
    """Return the size, and the time or tag of the last change, of a store when it was listed."""
    if isinstance(path, StoredFile):
        return path.size, path.version
    status = Path(path).stat()
    return status.st_size, status.st_mtime


def is_unchanged(path: str, version: tuple[int, float | str]) -> bool:
    """Say whether a file is of the version that it was."""
    if isinstance(path, StoredFile):
        return path.is_unchanged()
    try:
        return version_of(path) == version
    except OSError:
        return False


def in_threads(function: Callable[..., T], arguments: Iterable[tuple[Any, ...]]) -> list[T]:
    """Return the values of a function that waits for answers, in order."""
    with ThreadPoolExecutor(_AT_ONCE, "ask") as pool:
        return list(pool.map(lambda each: function(*each), arguments))
