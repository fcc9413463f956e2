"""Datasets behind links, and virtual datasets of rows in other files, where these are plain.

HDF5 opens whatever a link or a virtual dataset names, waits for ever where that is a pipe, and
reads zeros where nothing is.  So external links are refused, and virtual datasets must be whole
datasets of files beside them, one below the other.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np

from streamkern.errors import DataError
from streamkern.sources.hdf5_opening import opened
from streamkern.sources.object_stores import StoredFile

# Soft links that lead on to others, of which HDF5 follows as many.
_MOST_LINKS = 16
# Groups within groups that are looked through.
_DEEPEST = 64


def dataset_in(group: h5py.Group, name: str, n_links: int = _MOST_LINKS) -> h5py.Dataset | None:
    """Return the dataset that a name leads to in one file, or None where there is none."""
    here, parts = group, [part for part in name.split("/") if part not in ("", ".")]
    for i, part in enumerate(parts, 1):
        link = here.get(part, getlink=True) if isinstance(here, h5py.Group) else None
        if isinstance(link, h5py.ExternalLink):
            raise DataError(
                f"{name} is a link to {link.path} in {link.filename}, and links to other files are "
                f"not followed; name that file and dataset."
            )
        if isinstance(link, h5py.SoftLink) and n_links:
            rest = "/".join([link.path, *parts[i:]])
            return dataset_in(here.file if rest.startswith("/") else here, rest, n_links - 1)
        if not isinstance(link, h5py.HardLink):
            return None
        here = here[part]
    return here if isinstance(here, h5py.Dataset) else None


def datasets_of(file: h5py.File) -> Iterator[tuple[str, h5py.Dataset]]:
    """Yield the datasets of a file by name, each once, of groups that are not too deep."""
    groups, seen = [("", h5py.h5g.open(file.id, b"/"), 0)], {h5py.h5o.get_info(file.id).addr}
    for place, group, n_deep in groups:
        for name in group:
            if group.links.get_info(name).type != h5py.h5l.TYPE_HARD:
                continue
            item, path = h5py.h5o.open(group, name), f"{place}{os.fsdecode(name)}"
            address = h5py.h5o.get_info(item).addr
            if address in seen:
                continue
            seen.add(address)
            if isinstance(item, h5py.h5d.DatasetID):
                yield path, h5py.Dataset(item)
            elif isinstance(item, h5py.h5g.GroupID) and n_deep < _DEEPEST:
                groups.append((f"{path}/", item, n_deep + 1))


def is_endless(dataset: h5py.Dataset) -> bool:
    """Say whether parts of a virtual dataset grow: HDF5 looks for its shape in other files."""
    with suppress(RuntimeError, ValueError):
        for part in dataset.virtual_sources() if dataset.is_virtual else []:
            part.vspace.get_select_bounds()
        return False
    return True


def parts_of(
    dataset: h5py.Dataset, path: str, name: str, rows: tuple[int, int] | None
) -> Iterator[tuple[str, h5py.Dataset]]:
    """Yield the files and open datasets that are some rows of a plain virtual dataset, or all."""
    odd = DataError(
        f"{name} is a virtual dataset, which must consist of whole datasets of that shape in local "
        f"files, one below the other and without HDF5_VDS_PREFIX; name these files instead."
    )
    parts = [] if isinstance(path, StoredFile) else dataset.virtual_sources()
    is_named = not any("%" in part.file_name + part.dset_name for part in parts)
    if is_endless(dataset) or not is_named or os.environ.get("HDF5_VDS_PREFIX"):
        raise odd
    end, (n_rows, *width) = 0, dataset.shape
    for part in sorted(parts, key=lambda part: part.vspace.get_select_bounds()):
        start, end = end, int(part.vspace.get_select_bounds()[1][0]) + 1
        shape = (end - start, *width)
        if not _is_whole(part.vspace, (start, *[0] * len(width)), shape):
            raise odd
        if rows is not None and (end <= rows[0] or rows[1] <= start):
            continue
        where = str(Path(dataset.file.filename).absolute().parent / part.file_name)
        with opened(where) as file:
            found = dataset_in(file, part.dset_name)
            is_plain = found is not None and not found.is_virtual and found.shape == shape
            if not (is_plain and _is_whole(part.src_space, (0,) * len(shape), shape)):
                raise odd
            yield where, found
    if end < n_rows:
        raise odd


def _is_whole(space: h5py.h5s.SpaceID, first: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Say whether a selection is all of a box of this shape."""
    if space.get_select_type() == h5py.h5s.SEL_ALL:
        return True
    bounds = space.get_select_bounds()
    box = np.array([first, np.add(first, shape) - 1])
    return np.array_equal(bounds, box) and space.get_select_npoints() == np.prod(shape)
