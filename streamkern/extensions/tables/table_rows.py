"""Rows of tables, converted to HDF5 for as long as a job reads them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamkern.errors import DataError, OutputError, warn
from streamkern.errors.formatting import listed
from streamkern.errors.urls import is_url
from streamkern.extensions.tables.column_encoders import Tally
from streamkern.extensions.tables.discovery import RecipeOptions, warn_of_left_out
from streamkern.extensions.tables.recipe import reserved
from streamkern.extensions.tables.table_conversion import write_encoded
from streamkern.extensions.tables.table_files import NoRowsError, discover_tables, is_table
from streamkern.sources import open_hdf5
from streamkern.sources.base import Opened
from streamkern.sources.columns import Recipe
from streamkern.sources.headers import matching, size_and_time
from streamkern.storage.outputs import local_path
from streamkern.storage.temporary_paths import temporary_path

# What may be said of tables whose recipe is there already, and of new ones.
_SAID = ("weights", "delimiter", "decimal", "thousands", "ids")


def files_of(paths: Sequence[str | Path]) -> list[Path]:
    """Return the tables that paths, patterns and folders of Parquet stand for; none for HDF5."""
    named = [Path(path) for path in paths if Path(path).is_dir()]
    found = {folder: sorted(map(str, folder.rglob("*.parquet"))) for folder in named}
    for folder, names in found.items():
        parts = {part for name in names for part in Path(name).relative_to(folder).parent.parts}
        if keys := sorted({part.partition("=")[0] for part in parts if "=" in part}):
            warn(
                f"the folders in {folder} are named after {listed(keys)}, which is an input only "
                f"where the files hold it, too."
            )
    tables = []
    for path in map(str, paths):
        tables += found.get(Path(path)) or ([path] if is_url(path) else matching(path))
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


@contextmanager
def opened(
    tables: Sequence[Path],
    recipe: Recipe | None,
    options: Mapping[str, Any],
    folder: Path,
    *,
    targets: Sequence[str] | None = (),
    with_targets: bool = True,
    with_ids: bool = False,
    fold_column: str | None = None,
    told: set[str] | None = None,
    **how: Any,
) -> Iterator[Opened]:
    """Give the rows of tables in HDF5 files, which are in a folder as long as they are needed.

    They are made by a recipe, of whose unexpected cells it warns unless of these is `told`, or by
    one made of the tables; what `options` say of tables comes first.  The column that folds go by
    is a dataset of its name.  Without targets there are no weights either; `how` is `labels` of
    `open_hdf5`.
    """
    given = {name: options[name] for name in _SAID if options.get(name)}
    used: Any = RecipeOptions(**given, drop=options.get("drop", ()))
    if is_known := recipe is not None:
        known: Any = recipe
        used = replace(known.of_targets(targets or ()), **given)
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
        tally, held, more = Tally(), [], dict[str, Any](with_targets=with_targets)
        more |= {"with_ids": with_ids, "fold_column": fold_column}
        if fold_column is not None and reserved([fold_column]):
            raise DataError(
                f"folds cannot go by a column called {fold_column!r}, as datasets of rows and "
                f"predictions are; rename the column."
            )
        try:
            if not is_known:
                labels = (targets or ()) if how.get("labels") else ()
                used = discover_tables(tables, targets, replace(used, categorical=labels))
            for table, path in zip(tables, paths, strict=True):
                try:
                    found = write_encoded(table, path, used, tally, **more)
                    held.append((table, path, found.get("unlabelled_rows", 0)))
                except NoRowsError:
                    if not held and table == tables[-1]:
                        raise
            if is_known:
                tally.warn(set() if told is None else told)
            elif told is None:
                warn_of_left_out(used)
            y = "y" if with_targets and used.targets else None
            weights = "weights" if with_targets and used.weights else None
            how["labels"] = how.get("labels", False) and y is not None
            made = [str(path) for _, path, _ in held]
            rows: Any = open_hdf5(made, "X", y, weights=weights, **how)
            named = tuple(
                file._replace(table=(str(table), *size_and_time(table)), unlabelled=n)
                for file, (table, _, n) in zip(rows.files, held, strict=True)
            )
            yield Opened(replace(rows, files=named), sum(n for *_, n in held), tally.as_dict())
        except DataError as error:  # which is to name tables, not what they became
            said = str(error)
            for path, table in zip(paths, tables, strict=True):
                said = said.replace(str(path), str(table))
            raise type(error)(said) from error
