"""How columns of mixed tables become inputs: what a file says of it, and how it is found."""

from streamkern.sources.preprocessing.discovery import RecipeOptions, discover
from streamkern.sources.preprocessing.recipe import RECIPE, Recipe, recipe_of

__all__ = ["RECIPE", "Recipe", "RecipeOptions", "discover", "recipe_of"]
