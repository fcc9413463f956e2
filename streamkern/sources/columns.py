"""Columns of rows: what inputs and targets are called, and how a table became them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from streamkern.errors import DataError
from streamkern.errors.formatting import listed_apart
from streamkern.registry import extension
from streamkern.sources.base import Source

# Columns that are named in an error.
MOST_NAMED = 5
# The dataset of a file that holds the JSON of its recipe.
RECIPE = "streamkern-recipe"


class Recipe(Protocol):
    """What makes numeric inputs of other rows, as far as models of these know it."""

    columns: Sequence[Any]  # of other rows, each with its `name`, `kind` and `inputs()`
    feature_names: list[str]  # of the inputs
    targets: Sequence[str]
    ids: Sequence[str]  # columns that go with predictions
    left_out: Mapping[str, str]  # columns, and why
    is_plain: bool  # whether all are numbers, and stay as they are
    keeps_numbers: bool  # whether each is one input
    single: bool  # whether inputs are in single precision

    def encoded(self, X: Any, told: set[str] | None) -> Any:
        """Return the inputs that rows become, warning of cells that are not `told` of yet."""

    def encodes_like(self, other: Self) -> bool:
        """Say whether the same cells become the same inputs, but for missing ones."""

    def in_words(self) -> list[tuple[str, str]]:
        """Say of every column what it becomes, as pairs of a name and words."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values, which `recipe_of` reads."""


def recipe_of(data: Mapping[str, Any]) -> Recipe | None:
    """Return the recipe in what a source says of itself, None where the rows had none."""
    values = data.get("recipe")
    return None if values is None else recipe_class().from_dict(values)


def recipe_class() -> Any:
    """Return the class of recipes, which reads those of files."""
    return extension("tables", "recipe").Recipe


@dataclass(frozen=True)
class Columns:
    """The columns of rows: p inputs and q targets."""

    n_features: int
    n_targets: int
    recipe: Recipe | None = None  # how a table became the inputs
    input_names: list[str] | None = None  # (p,)
    target_names: list[str] | None = None  # (q,)
    input_range: list[list[float]] | None = None  # (p, 2), least and largest, of few inputs

    @classmethod
    def of(cls, data: Mapping[str, Any], n_features: int, n_targets: int) -> Self:
        """Return the columns of a source that says `data` of itself."""
        recipe = recipe_of(data)
        names = data.get("feature_names") if recipe is None else recipe.feature_names
        found = data.get("target_names") or (recipe and recipe.targets) or ()
        targets = list(map(str, found)) if found and len(found) == n_targets else None
        return cls(n_features, n_targets, recipe, names and list(names), targets)

    @classmethod
    def restored(cls, card: Mapping[str, Any], n_features: int) -> Self:
        """Return the columns of a file's card, or raise ValueError if p is another number."""
        report = card["report"]
        found = cls.of(report.get("data", {}), n_features, report.get("n_targets", 0))
        recipe = found.recipe
        if recipe is not None and len(recipe.feature_names) != n_features:
            raise ValueError(f"a recipe of {len(recipe.feature_names)} inputs for {n_features}")
        several = found.input_names, report.get("feature_names"), card.get("feature_names")
        known = [list(names) for names in several if names is not None]
        for names in known:
            if len(names) != n_features or not all(isinstance(name, str) for name in names):
                raise ValueError(f"{len(names)} names for {n_features} columns")
        first = known[0] if known else None
        return replace(found, input_names=first, input_range=report.get("input_range"))

    def as_dict(self) -> dict[str, Any]:
        """Return what a report says of inputs that have names, or a range."""
        told = {"feature_names": self.input_names, "input_range": self.input_range}
        return {name: value for name, value in told.items() if value}

    @property
    def table(self) -> list[tuple[str, list[int]]]:
        """The columns of the table, each with the inputs that it became; else the inputs."""
        if self.recipe is None:
            inputs = range(self.n_features)
            return [(name, [j]) for name, j in zip(self.named(inputs), inputs, strict=True)]
        ends = np.cumsum([len(column.inputs()) for column in self.recipe.columns]).tolist()
        spans = zip(self.recipe.columns, [0, *ends], ends, strict=False)
        return [(column.name, list(range(start, stop))) for column, start, stop in spans]

    def named(self, inputs: Sequence[int]) -> list[str]:
        """Return what some inputs are called, `column 5` where they have no names."""
        names = self.input_names
        return [f"column {j}" if names is None else names[j] for j in inputs]

    def merge(self, other: Self) -> Self:
        """Return the columns of rows of both: rows without names are taken for those with some."""
        ranges = self.input_range
        if ranges is not None:
            both = zip(ranges, other.input_range or ranges, strict=True)
            ranges = [[min(a[0], b[0]), max(a[1], b[1])] for a, b in both]
        return replace(
            self,
            recipe=self.recipe or other.recipe,
            input_names=self.input_names or other.input_names,
            target_names=self.target_names or other.target_names,
            input_range=ranges,
        )

    def check_targets(self, names: Sequence[str] | None) -> None:
        """Raise DataError if targets with names are others than these, or in other order.

        A model of one target may be given it by any name.
        """
        then = self.target_names
        if names and then and len(then) > 1 and [*names] != then:
            first, second = listed_apart(then, [*names], MOST_NAMED)
            raise DataError(
                f"the targets must be those of the model, in that order, but the two are {first} "
                f"and {second}; give them as the model has them."
            )

    def check_inputs(self, source: Source) -> None:
        """Raise DataError if a source names other inputs than these."""
        other = columns_of(source)
        then, now, mine, theirs = self.input_names, other.input_names, self.recipe, other.recipe
        alike = mine is None or theirs is None or mine.encodes_like(theirs)
        if then is None or now is None or (then == now and alike):
            return
        first, second = listed_apart(then, now, MOST_NAMED)
        found = f"are {first} and {second}" if then != now else "have other categories"
        raise DataError(
            f"the inputs of the rows must be those of the model, in that order, but the two "
            f"{found}; convert the table again with like (--like) and the model, or predict the "
            f"table itself."
        )


def columns_of(source: Source) -> Columns:
    return Columns.of(source.describe(), source.n_features, source.n_targets)
