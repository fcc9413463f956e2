"""Choosing kernel, map and length scale on a sample, within a budget; error against cost."""

from streamkern.tuning.budget import Budget
from streamkern.tuning.candidates import AUTO, kernels_to_try, maps_to_try, pairs_to_try
from streamkern.tuning.halving import Search, budgeted_rows, search, search_rows
from streamkern.tuning.trials import ISOTROPIC, Attempt

__all__ = [
    "AUTO",
    "ISOTROPIC",
    "Attempt",
    "Budget",
    "Search",
    "budgeted_rows",
    "kernels_to_try",
    "maps_to_try",
    "pairs_to_try",
    "search",
    "search_rows",
]
