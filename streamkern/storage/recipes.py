"""Recipes of mixed tables in files: of rows, of models and of moments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h5py

from streamkern.errors import DataError, ModelFileError, first_line
from streamkern.recipes import RECIPE, Recipe
from streamkern.storage.cards import MODEL, MOMENTS, opened_card
from streamkern.storage.untrusted import DAMAGE, mark, text

if TYPE_CHECKING:
    from pathlib import Path


def read_recipe(path: str | Path) -> Recipe:
    """Read how a table became inputs, from a file of rows, of a model or of moments.

    Parameters
    ----------
    path : path
        What `streamkern.convert` wrote, or what was fitted to it.

    Returns
    -------
    Recipe

    Raises
    ------
    DataError
        If the file is not there, has no recipe, or a damaged one.
    ModelFileError
        If it is a model or moments without one, or damaged.
    """
    try:
        with h5py.File(path, "r", locking="best-effort") as file:
            kind = {card.format: card for card in (MODEL, MOMENTS)}.get(str(mark(file, "format")))
            if kind is None and RECIPE in file:
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


def recipe_of(report: dict[str, Any]) -> Recipe | None:
    """Return the recipe in a report of a fit, None where the rows had none.

    Raises
    ------
    ValueError
        If it is damaged.
    """
    values = report.get("data", {}).get("recipe")
    return None if values is None else Recipe.from_dict(values)
