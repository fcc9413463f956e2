"""External links and virtual datasets: other files that rows are in, and which parts of them.

HDF5 opens whatever a link or a virtual dataset names, and waits for ever where that is a pipe.
"""

import math
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np

from streamkern._typing import Array
from streamkern.errors import DataError, first_line
from streamkern.sources.object_stores import StoredFile

# Links that lead on to others, of which HDF5 follows as many.
_MOST_LINKS = 16
_UNLIMITED = h5py.h5s.UNLIMITED
# Pieces that a virtual dataset may be put together of, and cells of a grid of them.
_MOST_PIECES, _CELLS = 1_000_000, 10
_TOO_MANY = f"is put together of more than {_MOST_PIECES:,} pieces; store its rows in one dataset."


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
    """Return where HDF5 finds a file, but for the working folder: every worker has its own."""
    prefixes = os.environ.get(variable, "").replace("${ORIGIN}", str(folder)).split(":")
    given, folders = Path(name), [*map(Path, filter(None, prefixes)), folder]
    places = [each / (given.name if given.is_absolute() else given) for each in folders]
    if given.is_absolute():
        places.insert(0, given)
    return next((place for place in places if os.path.exists(place)), None)  # noqa: PTH110


def is_unlimited(space: h5py.h5s.SpaceID) -> bool:
    return space.get_select_type() == h5py.h5s.SEL_HYPERSLABS and bool(
        space.is_regular_hyperslab() and _UNLIMITED in sum(space.get_regular_hyperslab()[2:], ())
    )


def boxes(space: h5py.h5s.SpaceID, shape: tuple[int, ...]) -> Array:
    if space.get_select_type() == h5py.h5s.SEL_ALL:
        return np.array([[(0,) * len(shape), shape]])
    if is_unlimited(space):
        space = _bounded(space, shape)
    if space.get_select_hyper_nblocks() > _MOST_PIECES:
        raise DataError(_TOO_MANY)
    found = np.asarray(space.get_select_hyper_blocklist(), dtype=np.int64)
    found[:, 1] += 1
    return np.minimum(found, shape)


def _bounded(space: h5py.h5s.SpaceID, shape: tuple[int, ...]) -> h5py.h5s.SpaceID:
    """Return a selection up to the end of a dataset of this shape, or a little further."""
    start, stride, count, block = space.get_regular_hyperslab()
    room = np.maximum(np.subtract(shape, start, dtype=np.int64), 0)
    count = np.where(np.equal(count, _UNLIMITED), -(-room // stride), count).tolist()
    block = np.where(np.equal(block, _UNLIMITED), room, block).tolist()
    ended = h5py.h5s.create_simple(shape)
    ended.select_hyperslab(start, tuple(count), stride, tuple(block))
    return ended


def volume(found: Array) -> int:
    """Return how many values there are in boxes that do not overlap."""
    return sum(math.prod(each) for each in (found[:, 1] - found[:, 0]).clip(0).tolist())


def first_gap(shape: tuple[int, ...], pieces: Sequence[Array]) -> str:
    """Return which rows, or columns of them, are in no piece, in words that are empty if none."""
    every = np.unique(np.concatenate([np.zeros((0, 2, len(shape)), int), *pieces]), axis=0)
    edges = [np.unique([0, n, *every[:, :, j].ravel()]) for j, n in enumerate(shape)]
    cells = [len(each) - 1 for each in edges]
    if max(len(every), math.prod(cells) // _CELLS) > _MOST_PIECES:
        raise DataError(_TOO_MANY)
    is_there = np.zeros(cells, dtype=bool)
    for box in every:
        ends = (np.searchsorted(each, box[:, j]) for j, each in enumerate(edges))
        is_there[tuple(slice(*end) for end in ends)] = True
    if is_there.all():
        return ""
    cell = np.unravel_index(np.argmin(is_there), is_there.shape)
    (first, last), *wide = [each[i : i + 2].tolist() for i, each in zip(cell, edges, strict=True)]
    columns = f", columns {wide[0][0]:,} to {wide[0][1]:,}," if wide and cells[1] > 1 else ""
    return f"rows {first:,} to {last:,}{columns}"


def rows_of(space: h5py.h5s.SpaceID) -> str:
    if space.get_select_type() == h5py.h5s.SEL_ALL:
        return "all rows"
    if is_unlimited(space):
        return f"rows from {space.get_regular_hyperslab()[0][0]:,}"
    first, last = space.get_select_bounds()
    return f"rows {first[0]:,} to {last[0] + 1:,}"
