"""Choosing kernel, map and length scale on a sample, within a budget; error against cost."""

from streamkern.tuning.budget import Budget, Spent
from streamkern.tuning.candidates import (
    AUTO,
    Contender,
    kernels_to_try,
    maps_to_try,
    pairs_to_try,
)
from streamkern.tuning.frontier import map_in_words
from streamkern.tuning.halving import Search, budgeted_rows, search
from streamkern.tuning.trials import ISOTROPIC, LEARNT, Attempt

__all__ = [
    "AUTO",
    "ISOTROPIC",
    "LEARNT",
    "Attempt",
    "Budget",
    "Contender",
    "Search",
    "Spent",
    "budgeted_rows",
    "kernels_to_try",
    "map_in_words",
    "maps_to_try",
    "pairs_to_try",
    "search",
]
