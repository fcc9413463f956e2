"""Rows in HDF5 files: checked from their headers, cut along storage chunks, read on the worker."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from streamkern.errors import DataError, ParameterError
from streamkern.errors.urls import is_url
from streamkern.sources.base import RowsOfFiles, Segment, Shard, Source, rounding_of
from streamkern.sources.hdf5_opening import CHUNK_CACHE_BYTES
from streamkern.sources.headers import FileRows, describe_rows, matching
from streamkern.sources.label_columns import LabelColumn
from streamkern.sources.shard_reader import Column, HDF5Labels, HDF5Reader, Piece
from streamkern.sources.stored_files import StoredFile, in_threads

_SINGLE_EXACT = {"b1", "f2", "f4", "i1", "u1", "i2", "u2"}


@dataclass(frozen=True, repr=False)
class HDF5Source(RowsOfFiles):
    """Rows in HDF5 files; made by `open_hdf5`."""

    files: tuple[FileRows, ...]
    x: str
    y: str | None
    weighted_by: str | None = None
    is_tolerant: bool = False
    labels: str | None = None

    def __post_init__(self) -> None:
        first, dtypes = self.files[0], [np.dtype(file.dtype) for file in self.files]
        # Blocks are single where that holds every stored value exactly.
        is_single = all(file.dtype in _SINGLE_EXACT for file in self.files)
        largest = max(file.chunk_bytes for file in self.files)
        stored = [f.path.kept_bytes for f in self.files if isinstance(f.path, StoredFile)]
        vars(self).update(  # frozen for all others
            n_samples=sum(file.n_rows for file in self.files),
            n_features=first.n_features,
            n_targets=sum(first.target_shape) if first.target_shape else 1,
            target_ndim=1 + len(first.target_shape),
            dtype=np.dtype(np.float32 if is_single else np.float64),
            rounding=max(map(rounding_of, dtypes)),
            # What is kept of a file in a store counts too, and a chunk on its way from there.
            chunk_bytes=2 * largest + max(stored) if stored else largest,
            paths=[path for file in self.files for path in file.paths],
            ids=first.ids if all(file.ids == first.ids for file in self.files) else (),
        )

    def skip_invalid(self) -> Self:
        return replace(self, is_tolerant=True)

    def labelled(self) -> tuple[Source, LabelColumn]:
        name = self.labels or self.y
        if name is None:
            return super().labelled()
        if self.n_targets > 1:
            raise DataError(
                f"labels must have shape (n,), but {name} has {self.n_targets} columns; store one "
                f"label a row."
            )
        files = tuple(file._replace(target_shape=(0,)) for file in self.files)
        rows = replace(self, files=files, y=None, labels=None)
        return rows, HDF5Labels(rows, name)

    def column(self, name: str) -> HDF5Labels:
        for file in self.files:
            describe_rows(file.path, self.x, None, labels=name)  # which refuses another shape
        return HDF5Labels(self, name)

    def segments(self) -> list[Segment]:
        return [
            Segment(end - file.n_rows, end, file.chunk_rows)
            for file, end in zip(self.files, self._ends, strict=True)
        ]

    def pieces_of(self, shard: Shard) -> tuple[Piece, ...]:
        parts = self.parts_of(shard.start, shard.stop)
        return tuple(Piece(file.path, start, stop) for file, start, stop in parts)

    def reader(self, shard: Shard) -> HDF5Reader:
        columns = (
            Column("X", self.x, (self.n_features,), self.dtype.str),
            *([Column("y", self.y, (self.n_targets,), "f8")] if self.y else []),
            *([Column("weights", self.weighted_by, (), "f8")] if self.weighted_by else []),
        )
        cache_bytes = max(CHUNK_CACHE_BYTES, *(file.chunk_bytes for file in self.files))
        pieces = self.pieces_of(shard)
        return HDF5Reader(pieces, columns, shard.start, cache_bytes, self.is_tolerant)

    def describe(self) -> dict[str, Any]:
        recipe, files = self.files[0].recipe, [file._asdict() for file in self.files]
        for file in files:
            del file["recipe"], file["ids"]  # the same of all
        return {
            "kind": "hdf5",
            "x": self.x,
            "y": self.labels or self.y,
            "weights": self.weighted_by,
            "rows": self.n_samples,
            "files": files,
            **({"recipe": json.loads(recipe)} if recipe else {}),
        }


def open_hdf5(
    paths: str | Path | Sequence[str | Path],
    x: str = "X",
    y: str | None = "y",
    *,
    weights: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    labels: bool = False,
) -> HDF5Source:
    """Describe rows stored in HDF5 files, without reading any.

    Parameters
    ----------
    paths : path, URL, glob pattern, or sequence of these
        Several files are the rows of one data set: in the order given, a pattern sorted by name.
        URLs (s3://, gs://, https:// and others) are those that fsspec knows.
    x, y : str
        Names of the datasets of inputs (n, p) and of targets (n,) or (n, q); `y` None for inputs
        without targets.
    weights : str, optional
        Name of the dataset of sample weights (n,), numbers of at least 0: a row of weight s counts
        as s equal rows, and one of weight 0 as none.
    storage_options : mapping, optional
        Of the file system of fsspec, where there are URLs: credentials, endpoints, and what else it
        does not find by itself.  They go to the workers, and nowhere else.
    labels : bool
        `y` holds labels of classes (n,), for a classifier: text, booleans or whole numbers.

    Returns
    -------
    HDF5Source

    Raises
    ------
    DataError
        If a file is missing or not HDF5, a dataset is absent or has a shape or dtype that is not
        a table of numbers, there are no rows, some of them are not there (were not written, or
        are in other files), or files differ in their columns.
    ParameterError
        If there are storage options, but no URLs.
    """
    given = [paths] if isinstance(paths, (str, Path)) else list(paths)
    if storage_options and not any(is_url(str(path)) for path in given):
        raise ParameterError(
            "storage_options are for URLs, but only paths are given; leave them out."
        )
    named = in_threads(matching, [(str(path), storage_options) for path in given])
    names = [name for some in named for name in some]
    if not names:
        raise DataError("no files are named; give at least one.")
    column, y = (y, None) if labels else (None, y)
    files = [describe_rows(name, x, y, weights, column) for name in names]
    seen: set[object] = set()
    for file in files:
        place = file.path.place if isinstance(file.path, StoredFile) else file.path
        if place in seen:
            raise DataError(f"{file.path} is named twice, but its rows count once; name it once.")
        seen.add(place)
    first = files[0]
    for file in files[1:]:
        if (file.n_features, file.target_shape) != (first.n_features, first.target_shape):
            raise DataError(
                f"files of one data set must have the same columns, but {first.path} has "
                f"{first.columns} and {file.path} has {file.columns}; fit them separately."
            )
        if file.recipe != first.recipe:
            raise DataError(
                f"files of one data set must come from tables by the same recipe, but those of "
                f"{first.path} and {file.path} differ; convert the second again with like (--like) "
                f"{first.path}."
            )
    if not sum(file.n_rows for file in files):
        raise DataError(f"{first.path} has zero rows; at least one is needed.")
    return HDF5Source(tuple(files), x, y, weights, labels=column)


def without_folders(data: dict[str, Any]) -> dict[str, Any]:
    """Return what `describe` says, with names of files in the place of paths."""
    if "files" not in data:
        return data
    files = []
    for file in data["files"]:
        name = file["path"] if is_url(file["path"]) else Path(file["path"]).name
        files.append(file | {"path": name})
    return data | {"files": files}
