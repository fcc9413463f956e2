"""External links: other files that rows are read from, found before HDF5 looks for them.

HDF5 opens whatever a link or a virtual dataset names, and waits for ever where that is a pipe.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import h5py

from streamkern.errors import DataError, first_line
from streamkern.sources.object_stores import StoredFile

if TYPE_CHECKING:
    from collections.abc import Iterator

# Links that lead on to others, of which HDF5 follows as many.
_MOST_LINKS = 16


def check_plain_file(path: str | Path, name: str | None = None) -> None:
    """Raise DataError if there is a pipe, a device or a socket, which nobody may ever answer."""
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return  # who opens it says why that fails
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise DataError(
            f"{name or path} is a pipe, a device or a socket; copy what it holds into a file first."
        )


class LinkedFiles:
    """Opens the other files that datasets of one file are in, and remembers them."""

    def __init__(self, path: str) -> None:
        self.files: set[str] = set()
        self._is_stored = isinstance(path, StoredFile)

    def dataset(self, file: h5py.File, name: str) -> h5py.Dataset | None:
        """Return a dataset that groups and links lead to, or None where there is none."""
        return file[name] if self._leads_to_one(file, name, _MOST_LINKS) else None

    def _leads_to_one(self, group: h5py.Group, name: str, n_links: int) -> bool:
        here, parts = group, [part for part in name.split("/") if part not in ("", ".")]
        for i, part in enumerate(parts, 1):
            link = here.get(part, getlink=True) if isinstance(here, h5py.Group) else None
            if link is None or not n_links:
                return False
            if isinstance(link, h5py.HardLink):
                here = here[part]
                continue
            rest = "/".join([link.path, *parts[i:]])
            if isinstance(link, h5py.SoftLink):
                start = here.file if rest.startswith("/") else here
                return self._leads_to_one(start, rest, n_links - 1)
            with self.opened(link.filename, here.file, "HDF5_EXT_PREFIX") as file:
                return self._leads_to_one(file, rest, n_links - 1)
        return isinstance(here, h5py.Dataset)

    @contextmanager
    def opened(self, name: str, named_in: h5py.File, variable: str) -> Iterator[h5py.File]:
        """Open the file that HDF5 would open for a name."""
        if self._is_stored:
            raise DataError(
                "it is made of other files, which HDF5 finds in folders only; name these files "
                "themselves, or copy all of them here."
            )
        if name == ".":
            yield named_in
            return
        where = _found(name, Path(named_in.filename).absolute().parent, variable)
        if where is None:
            raise DataError(f"{name} does not exist; put it back.")
        check_plain_file(where)
        try:
            file = h5py.File(where, "r", locking="best-effort")
        except OSError as error:
            raise DataError(
                f"{where} cannot be opened as HDF5 ({first_line(error)}); copy it again."
            ) from error
        self.files.add(str(where))
        with file:
            yield file


def _found(name: str, folder: Path, variable: str) -> Path | None:
    """Return where HDF5 finds a file first.

    It would look in the working folder last, which is another one for every worker.
    """
    prefixes = os.environ.get(variable, "").replace("${ORIGIN}", str(folder)).split(":")
    given, folders = Path(name), [*map(Path, filter(None, prefixes)), folder]
    places = [each / (given.name if given.is_absolute() else given) for each in folders]
    if given.is_absolute():
        places.insert(0, given)
    return next((place for place in places if os.path.exists(place)), None)  # noqa: PTH110
