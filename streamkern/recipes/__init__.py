"""How columns of mixed tables become inputs: what a file says of it, and how it is found."""

from streamkern.recipes.discovery import (
    MAX_LEVELS,
    RecipeOptions,
    discover,
    is_frame,
    recipe_of_frame,
)
from streamkern.recipes.names import (
    bad_columns,
    check_same_inputs,
    input_names,
    named_inputs,
    target_names,
)
from streamkern.recipes.recipe import RECIPE, Recipe, recipe_of
from streamkern.recipes.tally import Tally

__all__ = [
    "MAX_LEVELS",
    "RECIPE",
    "Recipe",
    "RecipeOptions",
    "Tally",
    "bad_columns",
    "check_same_inputs",
    "discover",
    "input_names",
    "is_frame",
    "named_inputs",
    "recipe_of",
    "recipe_of_frame",
    "target_names",
]
