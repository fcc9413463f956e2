"""Choosing what the data can choose, from statistics alone."""

from streamkern.selection.penalty import PenaltyCurve, checked_grid, checked_penalty, default_grid
from streamkern.selection.progressive import progressive_error
from streamkern.selection.sparsity import SparsityCurve, sparse_errors, sparse_sizes
from streamkern.selection.validation import HeldOut, held_out_errors, squared_errors

__all__ = [
    "HeldOut",
    "PenaltyCurve",
    "SparsityCurve",
    "checked_grid",
    "checked_penalty",
    "default_grid",
    "held_out_errors",
    "progressive_error",
    "sparse_errors",
    "sparse_sizes",
    "squared_errors",
]
