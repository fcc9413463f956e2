"""Names of inputs and targets, from a report or a source."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamkern.errors import DataError
from streamkern.errors.formatting import listed_apart
from streamkern.sources.base import Source
from streamkern.sources.preprocessing.recipe import recipe_of

# Columns that are named in an error.
MOST_NAMED = 5


def input_names(report: Mapping[str, Any]) -> list[str] | None:
    """Return the names of the inputs (p,) in a report of a fit, None where they have none."""
    recipe = recipe_of(report)
    if recipe is not None:
        return recipe.feature_names
    names = report.get("feature_names") or report.get("data", {}).get("feature_names")
    return None if names is None else list(names)


def names_of_source(source: Source) -> list[str] | None:
    return input_names({"data": source.describe()})


def named_inputs(report: Mapping[str, Any], columns: Sequence[int]) -> list[str]:
    """Return what some inputs are called, `column 5` where they have no names."""
    names = input_names(report)
    return [f"column {j}" if names is None else names[j] for j in columns]


def table_columns(report: Mapping[str, Any]) -> list[tuple[str, list[int]]]:
    """Return the columns of the table, each with the inputs that it became; else the inputs."""
    recipe = recipe_of(report)
    if recipe is None:
        inputs = range(report["n_features"])
        return [(name, [j]) for name, j in zip(named_inputs(report, inputs), inputs, strict=True)]
    ends = np.cumsum([len(column.inputs()) for column in recipe.columns]).tolist()
    spans = zip(recipe.columns, [0, *ends], ends, strict=False)
    return [(column.name, list(range(start, stop))) for column, start, stop in spans]


def target_names(report: Mapping[str, Any]) -> list[str] | None:
    """Return the names of the targets (q,) in a report of a fit, None where they have none."""
    recipe = recipe_of(report)
    names = report.get("data", {}).get("target_names") or (() if recipe is None else recipe.targets)
    return list(map(str, names)) if names and len(names) == report["n_targets"] else None


def check_same_targets(report: Mapping[str, Any], names: Sequence[str] | None) -> None:
    """Raise DataError if targets with names are others than those of a report, or in other order.

    A model of one target may be given it by any name.
    """
    then = target_names(report)
    if names and then and len(then) > 1 and [*names] != then:
        first, second = listed_apart(then, [*names], MOST_NAMED)
        raise DataError(
            f"the targets must be those of the model, in that order, but the two are {first} and "
            f"{second}; give them as the model has them."
        )


def check_same_inputs(report: Mapping[str, Any], data: dict[str, Any]) -> None:
    """Raise DataError if a source's `data` names other inputs than the report of a model."""
    mine, recipe = recipe_of(report), recipe_of({"data": data})
    then = input_names(report) if mine is None else mine.feature_names
    now = input_names({"data": data}) if recipe is None else recipe.feature_names
    alike = mine is None or recipe is None or mine.encodes_like(recipe)
    if then is None or now is None or (then == now and alike):
        return
    first, second = listed_apart(then, now, MOST_NAMED)
    found = f"are {first} and {second}" if then != now else "have other categories"
    raise DataError(
        f"the inputs of the rows must be those of the model, in that order, but the two {found}; "
        f"convert the table again with like (--like) and the model, or predict the table itself."
    )
