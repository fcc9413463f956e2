"""Headers of HDF5 files: what they say of rows, checked before any is read, and of all datasets."""

import glob
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import h5py

from streamkern.errors import DataError
from streamkern.errors.formatting import turned_by
from streamkern.errors.urls import is_url
from streamkern.registry import opener
from streamkern.sources.columns import RECIPE, recipe_class
from streamkern.sources.dataset_checks import (
    Tables,
    datasets_of,
    filters_of,
    is_text,
    item_bytes,
    type_of,
)
from streamkern.sources.hdf5_opening import opened, undamaged
from streamkern.sources.stored_files import StoredFile, version_of

# Of URLs that are paths.
_LOCAL = ("file", "local")


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
    recipe: str = ""  # how a table became these rows, as JSON
    ids: tuple[str, ...] = ()  # datasets of those of the recipe

    @property
    def version(self) -> tuple[int, float | str]:
        return self.file_bytes, self.modified

    @property
    def paths(self) -> list[str]:
        """The file that the rows are read from, unless it is in a store."""
        return self.path.paths if isinstance(self.path, StoredFile) else [self.path]

    @property
    def columns(self) -> str:
        target = "".join(f", {q}" for q in self.target_shape) or ","
        return f"{self.n_features} inputs and targets (n{target})"


def matching(pattern: str, storage_options: Mapping[str, Any] | None = None) -> list[str]:
    """Return the paths that a path, a URL or a glob pattern stands for, sorted."""
    protocol, mark, path = pattern.partition("://")
    if mark and protocol in _LOCAL:
        pattern = path
    elif is_url(pattern):
        return list(opener("://").files_at(pattern, storage_options or {}))
    if not glob.has_magic(pattern) or Path(pattern).exists():
        return [pattern]
    found = sorted(glob.glob(pattern))  # noqa: PTH207  patterns may be absolute
    if not found:
        raise DataError(f"no file matches {pattern}; check the pattern and where you are.")
    return found


def other_files(paths: Sequence[str | os.PathLike[str]]) -> tuple[Any, list[Path]]:
    """Return what opens files that paths, patterns and folders stand for, and these files.

    That is a module of an extension, with `files_of` and `opened`; None where files are HDF5.
    """
    asked = set[Any]()
    for path in [os.fspath(each) for each in paths]:
        is_folder = path.endswith("/") if is_url(path) else Path(path).is_dir()
        named = [f"{path}/."] if is_folder else [path] if is_url(path) else matching(path)
        for module in {*map(opener, named)} - asked:
            if module is not None and (files := module.files_of(paths)):
                return module, files
            asked.add(module)
    return None, []


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
                f"{x} has {n:,} rows but {y} has {target.shape[0]:,}; they must be equally "
                f"long{_turned(path, X, target)}.",
            )
            target_shape = target.shape[1:]
        if weights is not None:
            shape = tables.numbers(weights).shape
            require(
                shape == (n,),
                f"{weights} must hold one weight a row, with shape ({n},), but has {shape}; store "
                f"one number per row of {x}{_turned(path, X, file[weights])}.",
            )
        chunk_bytes = tables.chunk_bytes
        if labels is not None:
            shape = tables.labels(labels).shape
            require(
                len(shape) in (1, 2) and shape[1:] in ((), (1,)),
                f"{labels} must have shape (n,), but has {shape}; store one value "
                f"a row{_turned(path, X, file[labels])}.",
            )
            require(
                shape[0] == n,
                f"there are {n:,} rows but {labels} has {shape[0]:,}; they must be equally long.",
            )
        size, modified = version_of(path)
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
            recipe=(found := _recipe(file, X.shape) if x == "X" else ("", ()))[0],
            ids=found[1],
        )


def _turned(path: str, X: h5py.Dataset, other: h5py.Dataset) -> str:
    """Return what to do where rows seem to lie along the last axis; it holds some in memory."""
    n_rows = max(*X.shape, *other.shape)
    lie = [each for each in (X, other) if each.ndim == 2 and each.shape[1] == n_rows]
    if not lie or any(n_rows not in each.shape for each in (X, other)):
        return ""
    seem = " and ".join(each.name[1:] for each in lie) + " seem" + "s" * (len(lie) == 1)
    turned = turned_by([each.name for each in lie], repr(str(path)))
    return f", and {seem} to be transposed, {turned}"


def _recipe(file: h5py.File, shape: tuple[int, int]) -> tuple[str, tuple[str, ...]]:
    """Return the text of how a table became these inputs, empty where there is none, and ids."""
    if not _holds(file, RECIPE):
        return "", ()
    dataset = file[RECIPE]
    size = dataset.dtype.itemsize
    # Of a virtual dataset, which stores nothing, HDF5 would look for the shape in other files.
    if dataset.id.get_storage_size() < size or dataset.shape or dataset.dtype.kind != "S":
        raise ValueError("a recipe that is no text of fixed length")
    text = bytes(dataset[()]).decode()
    recipe = recipe_class().from_json(text)
    if len(recipe.feature_names) != shape[1]:
        return "", ()
    held = (name for name in recipe.ids if _holds(file, name))
    return text, tuple(n for n in held if getattr(file[n], "shape", None) == shape[:1])


def _holds(file: h5py.File, name: str) -> bool:
    return isinstance(file.get(name, getlink=True), h5py.HardLink)


def _storage(dataset: h5py.Dataset) -> str:
    if not dataset.chunks:
        return "contiguous"
    filters = _filters(dataset) or "uncompressed"
    return f"chunks {'x'.join(map(str, dataset.chunks))}, {filters}"


def _filters(dataset: h5py.Dataset) -> str:
    return " + ".join(label for _, label in filters_of(dataset))


class Contents(NamedTuple):
    name: str
    shape: tuple[int, ...]
    dtype: str
    chunks: tuple[int, ...] | None
    compression: str
    bytes: int
    stored_bytes: int


def describe_file(path: str) -> list[Contents]:
    """Describe the datasets of a file."""
    with opened(path) as file, undamaged(path):
        return sorted(_contents(*found) for found in datasets_of(file))


def _contents(name: str, dataset: h5py.Dataset) -> Contents:
    # Of a virtual one HDF5 would look for the shape in other files, which may be pipes.
    shape = None if dataset.is_virtual else dataset.shape
    return Contents(
        name=name,
        shape=shape or (),
        dtype="text" if is_text(dataset) else type_of(dataset),
        chunks=dataset.chunks,
        compression="virtual" if dataset.is_virtual else _filters(dataset),
        bytes=0 if shape is None else math.prod(shape) * item_bytes(dataset),
        stored_bytes=dataset.id.get_storage_size(),
    )
