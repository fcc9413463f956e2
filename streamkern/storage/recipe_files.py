"""Recipes of mixed tables in files: of rows, of models and of moments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkern.errors import DataError, ModelFileError, first_line
from streamkern.sources.preprocessing import RECIPE, Recipe, recipe_of
from streamkern.storage.codec import KINDS, opened_card
from streamkern.storage.outputs import local_path
from streamkern.storage.untrusted import DAMAGE, mark, opened, text

if TYPE_CHECKING:
    from pathlib import Path


def read_recipe(path: str | Path) -> Recipe:
    """Read how a table became inputs, from a file of rows, of a model of any kind or of moments."""
    path = local_path(path)
    try:
        with opened(path) as file:
            kind = KINDS.get(str(mark(file, "format")))
            if kind is None and file.get(RECIPE, getlink=True) is not None:
                return Recipe.from_json(text(file, RECIPE))
    except DAMAGE as error:
        raise DataError(
            f"{path} has no recipe that can be read ({first_line(error)}); give a file that "
            f"`streamkern convert` wrote from a table."
        ) from error
    if kind is None:
        raise DataError(
            f"{path} has no recipe of a table; give a file that `streamkern convert` wrote from "
            f"CSV or Parquet."
        )
    with opened_card(path, kind) as (_, card):
        recipe = recipe_of(card.get("report", {}))
    if recipe is None:
        raise ModelFileError(
            f"{path} was not fitted to a table that `streamkern convert` read, and has no recipe; "
            f"give rows in HDF5."
        )
    return recipe
