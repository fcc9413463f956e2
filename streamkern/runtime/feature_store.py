"""Features that are kept in a file, for passes over the same rows that need them again."""

import os
import tempfile
import threading
from collections.abc import Hashable, Iterator
from contextlib import suppress
from typing import Any
from weakref import WeakValueDictionary, finalize

from streamkern._typing import Array
from streamkern.runtime.memory import available_bytes
from streamkern.runtime.resources import current_worker
from streamkern.runtime.timing import timed

# How names of stores begin.
STORE = "features-"
# The stores of this process, as long as somebody holds them.
_stores: "WeakValueDictionary[str, FeatureStore]" = WeakValueDictionary()
_lock = threading.Lock()


class FeatureStore:
    """Features of blocks of rows, as they were made, up to so many bytes in a process.

    The file has no name, so that it goes with the object or the process, however that ends.  What
    is not in it is made, so that results do not depend on it.  A copy is the store of the process
    that it is sent to.
    """

    def __init__(self, name: str, most_bytes: int) -> None:
        self.name, self.most_bytes, self.process = name, most_bytes, os.getpid()
        self._lock = threading.Lock()
        self._file: Any = None
        self._taken = 0
        self._blocks: dict[Hashable, tuple[int, list[slice]]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return store_here, (self.name, self.most_bytes)

    def evaluated(self, block: Hashable, out: Array, made: Iterator[slice]) -> Iterator[slice]:
        """Yield the slices that `made` writes to `out`, read from the file if it has the block."""
        done = 0
        if block in self._blocks:
            place, slices = self._blocks[block]
            for rows in slices:
                if not self._read(out[rows], place):
                    break
                done, place = rows.stop, place + out[rows].nbytes
                yield rows
            else:
                return
        begun, slices = self._taken_for(out.nbytes), []
        following = begun
        for rows in made:
            slices.append(rows)
            if following is not None:
                following = self._written(out[rows], following)
            if rows.start >= done:
                yield rows
        if begun is not None and following is not None:
            self._blocks[block] = begun, slices

    def _taken_for(self, n_bytes: int) -> int | None:
        """Return where in the file so many bytes go, None where they have no room."""
        with self._lock, suppress(OSError):
            if self._taken + n_bytes > self.most_bytes:
                return None
            if self._file is None:
                folder = getattr(current_worker(), "local_directory", None)
                self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  it lives as this
                finalize(self, self._file.close).atexit = False
            disk = os.fstatvfs(self._file.fileno())
            # As much is left to others, on the disk and, where files are there, in memory.
            free = min(disk.f_bavail * disk.f_frsize, available_bytes())
            if self._taken + n_bytes <= free:
                self._taken += n_bytes
                return self._taken - n_bytes
        return None

    def _written(self, features: Any, place: int) -> int | None:
        """Write features to a place; return the next, or None if the disk has no room."""
        with timed("features"), suppress(OSError):
            n_bytes: int = features.nbytes
            if os.pwrite(self._file.fileno(), features, place) == n_bytes:
                return place + n_bytes
        self.most_bytes = 0
        return None

    def _read(self, features: Any, place: int) -> bool:
        with timed("features"), suppress(OSError):
            n_bytes: int = features.nbytes
            return os.preadv(self._file.fileno(), [features], place) == n_bytes
        return False


def store_here(name: str, most_bytes: int) -> FeatureStore:
    """Return the store of a name in this process, a new one if there is none."""
    with _lock:
        return _stores.setdefault(name, FeatureStore(name, most_bytes))


def found_store(name: str | None) -> FeatureStore | None:
    """Return the store of a name in this process, None where nobody holds one."""
    store = _stores.get(name or "")
    # Of a process that was forked, the file is its parent's.
    return store if store is not None and store.process == os.getpid() else None
