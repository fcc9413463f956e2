"""Paths that estimators are given as rows, of HDF5 or of tables."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from streamkern.errors import DataError, ParameterError
from streamkern.parameters.fit_options import GROUPS, TIMES, fold_column
from streamkern.parameters.parameters import AUTO, Parameters
from streamkern.registry import extension
from streamkern.sources import Source, open_hdf5
from streamkern.sources.columns import Recipe, columns_of
from streamkern.sources.containers import column_names, unwrapped
from streamkern.sources.headers import other_files


def with_fold_column(
    parameters: Parameters, X: Any, groups: Any, times: Any
) -> tuple[Parameters, dict[str, Any]]:
    """Return parameters whose folds go by groups or times, if they are given, and these by name.

    Of a data frame they may go by one of its columns, which stays an input.
    """
    given = {"groups": groups, "times": times}
    beside = {name: values for name, values in given.items() if values is not None}
    if not beside:
        name = fold_column(parameters.fold_by)
        return parameters, {name: X[name]} if name and name in column_names(X) else {}
    if len(beside) > 1 or parameters.fold_by != AUTO:
        raise ParameterError(
            f"folds go by one of groups, times and fold_by, but {' and '.join(beside)} came with "
            f"fold_by {parameters.fold_by!r}; give one, and leave fold_by 'auto'."
        )
    if are_paths(X) or isinstance(X, Source):
        raise ParameterError(
            "groups and times are values beside rows in memory, but these rows are in files; name "
            "their dataset, as fold_by 'column:NAME' or 'time:NAME'."
        )
    (name,) = beside
    return replace(parameters, fold_by=(TIMES if times is not None else GROUPS) + name), beside


def are_paths(X: Any) -> bool:
    """Say whether X is a path, a pattern or a URL, or a list of these."""
    each = X if isinstance(X, (list, tuple)) and len(X) else [X]
    return all(isinstance(path, (str, os.PathLike)) for path in each)


def files_or_rows(X: Any, *beside: Any) -> Any:
    """Return the files of a dataset of Arrow if what is `beside` is in them, or else its rows."""
    if type(X).__name__ == "FileSystemDataset":
        return extension("tables", "table_rows").files_behind(X, beside) or unwrapped("X", X)
    return X


def opened_paths(
    X: Any,
    y: Any,
    weights: Any,
    recipe: Recipe | None,
    *,
    targets: bool,
    labels: bool,
    as_they_are: bool = False,
    told: set[str] | None = None,
    drop: Sequence[str] = (),
) -> Source:
    """Open files of rows, whose targets and weights go by names; tables by a recipe, or a new one.

    DataError is raised if rows are to be inputs `as_they_are`, but not all cells are numbers.
    `told` is as of a `Tally`; columns of tables to `drop` are no inputs.
    """
    paths = list(X) if isinstance(X, (list, tuple)) else [X]
    tables, files = other_files(paths)
    named = () if y is None else (y,) if isinstance(y, str) else tuple(y)
    are_names = all(isinstance(name, str) for name in named) and isinstance(weights, str | None)
    if not are_names or (len(named) > 1 and not files):
        raise DataError(
            f"the rows are in {paths[0]}, so y and sample_weight are names of what it holds, of "
            f"HDF5 one dataset each, not values; give such names."
        )
    if not files:
        y = (named or ("y",))[0] if targets else None
        return open_hdf5([*map(os.fspath, paths)], y=y, weights=weights, labels=labels and targets)
    how: Any = {"with_ids": not targets, "with_targets": targets or weights is not None}
    how |= {"targets": named if targets else None, "labels": labels, "told": told}
    source: Source = tables.opened(files, recipe, {"weights": weights, "drop": drop}, **how).source
    made = columns_of(source).recipe
    if as_they_are and made is not None and not made.keeps_numbers:
        raise DataError(
            f"{files[0]} has other cells than numbers, but the model was not fitted to a table, "
            f"which would say what becomes of them; give numbers, or fit it to a table."
        )
    return source
