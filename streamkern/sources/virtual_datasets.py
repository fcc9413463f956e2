"""Virtual datasets: which part is made of which part of another dataset."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import h5py
import numpy as np

from streamkern.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern._typing import Array

_UNLIMITED = h5py.h5s.UNLIMITED
# Pieces that a virtual dataset may be put together of, and cells of a grid of them.
_MOST_PIECES, _CELLS = 1_000_000, 10


def is_unlimited(space: h5py.h5s.SpaceID) -> bool:
    """Say whether a selection grows with its dataset."""
    return space.get_select_type() == h5py.h5s.SEL_HYPERSLABS and bool(
        space.is_regular_hyperslab() and _UNLIMITED in sum(space.get_regular_hyperslab()[2:], ())
    )


def boxes(space: h5py.h5s.SpaceID, shape: tuple[int, ...]) -> Array:
    """Return what a selection takes of a dataset."""
    if space.get_select_type() == h5py.h5s.SEL_ALL:
        return np.array([[(0,) * len(shape), shape]])
    if is_unlimited(space):
        space = _bounded(space, shape)
    if space.get_select_hyper_nblocks() > _MOST_PIECES:
        raise DataError(_too_many())
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
        raise DataError(_too_many())
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
    """Return which rows a selection takes, in words."""
    if space.get_select_type() == h5py.h5s.SEL_ALL:
        return "all rows"
    if is_unlimited(space):
        return f"rows from {space.get_regular_hyperslab()[0][0]:,}"
    first, last = space.get_select_bounds()
    return f"rows {first[0]:,} to {last[0] + 1:,}"


def _too_many() -> str:
    return f"is put together of more than {_MOST_PIECES:,} pieces; store its rows in one dataset."
