"""From the moments of folds to a solution, as tasks where the moments are."""

from streamkern.solving.folds import (
    PenaltyOptions,
    Size,
    Solved,
    folds_with_rows,
    nested_sizes,
    part_of,
    solve_folds,
    solve_sizes,
    total_of,
)
from streamkern.solving.left_out import LeftOut, solve_without
from streamkern.solving.sparse import SparseOptions, solve_sparse

__all__ = [
    "LeftOut",
    "PenaltyOptions",
    "Size",
    "Solved",
    "SparseOptions",
    "folds_with_rows",
    "nested_sizes",
    "part_of",
    "solve_folds",
    "solve_sizes",
    "solve_sparse",
    "solve_without",
    "total_of",
]
