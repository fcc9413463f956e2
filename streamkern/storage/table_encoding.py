"""Tables of mixed columns, written to HDF5 as the inputs that a recipe makes of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.errors import DataError
from streamkern.errors.formatting import listed, unknown
from streamkern.sources.preprocessing import RECIPE, Recipe
from streamkern.sources.tables import open_batches
from streamkern.storage.hdf5_files import RowWriter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from streamkern._typing import Array, Floats
    from streamkern.sources.preprocessing.column_encoders import Tally

    # X, y, weights and ids of some rows.
    Rows = tuple[Array, Array | None, Floats | None, dict[str, Array]]

# Of the inputs that are made at once.
_PIECE_BYTES = 16 << 20


def write_encoded(
    source: Path,
    dst: str | Path,
    recipe: Recipe,
    tally: Tally,
    *,
    with_targets: bool,
    with_ids: bool,
    force: bool = False,
) -> dict[str, Any]:
    """Write what a recipe makes of a table to an HDF5 file; results are those of `convert`."""
    batches = open_batches(source, header=recipe.header, delimiter=recipe.delimiter)
    needed = [column.name for column in recipe.columns]
    if with_targets:
        needed += [*recipe.targets, *filter(None, [recipe.weights])]
    present = batches.schema.names
    if absent := [name for name in needed if name not in present]:
        remedy = "; `predict` and `convert --no-target` take inputs alone" * (
            absent[0] in recipe.targets
        )
        if absent[0] == recipe.weights:
            remedy = "; a column of ones weighs all rows the same"
        raise DataError(
            f"{source} has no column {unknown(absent[0], present)}, which the recipe needs; its "
            f"columns are {listed(present)}{remedy}."
        )
    if with_ids:
        needed += [name for name in recipe.ids if name in present]
    unlabelled = 0
    step = max(_PIECE_BYTES // (recipe.dtype.itemsize * len(recipe.feature_names)), 1)

    def pieces() -> Iterator[Rows]:
        nonlocal unlabelled
        n_rows = 0
        for batch in batches.read(list(dict.fromkeys(needed))):
            for start in range(0, batch.num_rows, step):
                part = batch.slice(start, step)
                try:
                    X = recipe.transform(part, tally)
                    y = recipe.read_targets(part) if with_targets else None
                    weights = recipe.read_weights(part) if with_targets else None
                    ids = recipe.read_ids(part) if with_ids else {}
                except DataError as error:
                    raise DataError(f"{source}: {error}") from error
                n_rows += len(X)
                if y is not None and y.dtype.kind == "S":
                    kept = y != b""
                    unlabelled += int((~kept).sum())
                    X, y = X[kept], y[kept]
                    weights = None if weights is None else weights[kept]
                    ids = {name: values[kept] for name, values in ids.items()}
                yield X, y, weights, ids
        if unlabelled and unlabelled == n_rows:
            raise DataError(
                f"none of the {n_rows:,} rows of {source} has a label in {recipe.targets[0]!r}; "
                f"fill that column."
            )

    names = recipe.feature_names, recipe.targets if with_targets else ()
    result = write_rows(source, dst, pieces(), *names, recipe=recipe, force=force)
    if recipe.is_plain:
        return result
    return {**result, "columns": dict(recipe.in_words()), "unlabelled_rows": unlabelled}


def write_rows(
    source: Path,
    dst: str | Path,
    pieces: Iterator[Rows],
    features: Sequence[str],
    targets: Sequence[str],
    *,
    recipe: Recipe | None,
    force: bool,
) -> dict[str, Any]:
    """Write rows, where they come from, what their columns are called and how they became rows."""
    rows = missing = n_targets = 0
    with RowWriter.create(dst, force=force) as writer:
        for X, y, weights, ids in pieces:
            if not len(X):  # the first rows decide the size of chunks
                continue
            writer.append("X", X)
            incomplete = np.isnan(X).any(axis=1)
            if y is not None:
                writer.append("y", y)
                n_targets = sum(y.shape[1:]) or 1
                if y.dtype.kind == "f":
                    incomplete |= np.isnan(y).reshape(len(y), -1).any(axis=1)
            if weights is not None:
                writer.append("weights", weights)
            for name, values in ids.items():
                writer.append(name, values)
            rows += len(X)
            missing += int(incomplete.sum())
        if not rows:
            raise DataError(f"{source} has no rows; at least one is needed.")
        writer.note("source", source.name)
        for name, columns in (("feature_names", features), ("target_names", targets)):
            if columns:
                writer.note(name, json.dumps(list(columns)))
        written = writer.file["X"]
        if recipe is not None:
            single = bool(written.dtype == np.float32)
            writer.store(RECIPE, replace(recipe, single=single).to_json())
        counts = {"rows": rows, "n_features": written.shape[1], "n_targets": n_targets}
    return counts | {"missing_rows": missing, "output": str(dst)}
