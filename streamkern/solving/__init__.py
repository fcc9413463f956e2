"""From the moments of folds to a solution, as tasks where the moments are."""

from streamkern.solving.folds import PenaltyOptions, Size, Solved, nested_sizes, solve_folds
from streamkern.solving.sparse import SparseOptions, solve_sparse

__all__ = [
    "PenaltyOptions",
    "Size",
    "Solved",
    "SparseOptions",
    "nested_sizes",
    "solve_folds",
    "solve_sparse",
]
