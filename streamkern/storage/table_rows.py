"""Rows of tables, converted to HDF5 for as long as a job reads them."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from streamkern.errors import DataError, OutputError
from streamkern.errors.urls import is_url
from streamkern.sources import open_hdf5
from streamkern.sources.headers import matching
from streamkern.sources.numpy_tables import NotNumbersError
from streamkern.sources.preprocessing import Recipe, RecipeOptions
from streamkern.sources.preprocessing.column_encoders import Tally
from streamkern.sources.tables import discover_tables, is_table
from streamkern.storage.codec import read_recipe
from streamkern.storage.outputs import local_path
from streamkern.storage.table_conversion import write_plain
from streamkern.storage.table_encoding import write_encoded
from streamkern.storage.temporary_paths import temporary_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streamkern.sources.hdf5 import HDF5Source


class TableRows(NamedTuple):
    """What is wanted of tables, and what their rows become."""

    recipe: Recipe | RecipeOptions  # or options by which one is made of the tables
    targets: Sequence[str] | None = ()  # of a recipe that is made
    with_targets: bool = True  # and weights
    with_ids: bool = False
    labels: bool = False  # whether targets are classes
    folders: bool = False

    def opened(self, paths: list[str], tables: Sequence[Path], recipe: Recipe) -> HDF5Source:
        """Open converted rows, which go by the names of their tables."""
        y = "y" if self.with_targets and recipe.targets else None
        weights = "weights" if self.with_targets and recipe.weights else None
        how: Any = {"labels": self.labels and y is not None, "folders": self.folders}
        source = open_hdf5(paths, "X", y, weights=weights, **how)
        files = []
        for file, table in zip(source.files, tables, strict=True):
            status = table.stat()
            name = str(table.resolve() if self.folders else table)
            origin = name, status.st_size, status.st_mtime
            files.append(file._replace(table=origin))
        return replace(source, files=tuple(files))


class Opened(NamedTuple):
    """Rows of tables, how many others have no label, and counts of cells not expected there."""

    source: HDF5Source
    unlabelled: int = 0
    unexpected: dict[str, int] = {}  # noqa: RUF012  nobody changes it


def table_files(paths: Sequence[str | Path]) -> list[Path]:
    """Return the tables that paths, patterns and folders of Parquet stand for; none for HDF5."""
    named = [Path(path) for path in paths if Path(path).is_dir()]
    found = {folder: sorted(map(str, folder.rglob("*.parquet"))) for folder in named}
    tables = [name for path in paths for name in found.get(Path(path)) or _files_at(str(path))]
    kinds = {is_table(name): name for name in reversed(tables)}
    if len(kinds) > 1:
        raise DataError(
            f"{kinds[False]} is no CSV or Parquet, but {kinds[True]} is; name one kind."
        )
    if True not in kinds:
        return []
    local = list(map(local_path, tables))
    if twice := [path for i, path in enumerate(local) if path in local[:i]]:
        raise DataError(f"{twice[0]} is named twice, but its rows count once; name it once.")
    return local


def _files_at(path: str) -> list[str]:
    return [path] if is_url(path) and not path.startswith("file:") else matching(path)


@contextmanager
def opened_tables(tables: Sequence[Path], wanted: TableRows, folder: Path) -> Iterator[Opened]:
    """Give the rows of tables in HDF5 files, which are in a folder as long as they are needed.

    Cells that the recipe of a model did not expect are warned of.
    """
    with ExitStack() as kept:
        try:
            where = kept.enter_context(temporary_path(folder))
            where.mkdir(mode=0o700)
        except OSError as error:
            raise OutputError(
                f"{folder} cannot be written to ({error.strerror}), where the rows of tables are "
                f"kept for as long as the job takes; name another folder as TMPDIR."
            ) from error
        paths = [where / str(number) / f"{table.name}.h5" for number, table in enumerate(tables)]
        for path in paths:
            path.parent.mkdir()
        tally = Tally()
        with _naming(paths, tables):
            recipe, unlabelled = _convert(tables, paths, wanted, tally)
            source = wanted.opened(list(map(str, paths)), tables, recipe)
            if isinstance(wanted.recipe, Recipe):
                tally.warn()
            yield Opened(source, unlabelled, tally.as_dict())


def _convert(
    tables: Sequence[Path], paths: Sequence[Path], wanted: TableRows, tally: Tally
) -> tuple[Recipe, int]:
    """Write the rows of tables, and return their recipe and how many rows have no label."""
    recipe: Any = wanted.recipe
    if isinstance(recipe, RecipeOptions):
        if not recipe.is_given:
            try:
                return _written_plain(tables, paths, wanted.targets), 0
            except NotNumbersError:
                pass
        recipe = discover_tables(tables, wanted.targets, recipe)
    how = {"with_targets": wanted.with_targets, "with_ids": wanted.with_ids}
    unlabelled = 0
    for table, path in zip(tables, paths, strict=True):
        found = write_encoded(table, path, recipe, tally, force=True, **how)
        unlabelled += found.get("unlabelled_rows", 0)
    return recipe, unlabelled


def _written_plain(
    tables: Sequence[Path], paths: Sequence[Path], targets: Sequence[str] | None
) -> Recipe:
    """Write tables of numbers alone, or raise NotNumbersError if they are not of one recipe."""
    for table, path in zip(tables, paths, strict=True):
        write_plain(table, path, targets, force=True)
    try:
        first, *others = map(read_recipe, paths)
    except DataError as error:  # names that are there twice
        raise NotNumbersError from error
    if any(recipe != first for recipe in others):
        raise NotNumbersError
    return first


@contextmanager
def _naming(paths: Sequence[Path], tables: Sequence[Path]) -> Iterator[None]:
    """Have errors name tables, not what they became."""
    try:
        yield
    except DataError as error:
        said = str(error)
        for path, table in zip(paths, tables, strict=True):
            said = said.replace(str(path), str(table))
        if said == str(error):
            raise
        raise type(error)(said) from error
