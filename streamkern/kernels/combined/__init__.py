"""Sums and products of shift-invariant kernels, and kernels of some of the inputs.

They are kept in one form: sums of products of kernels on columns, with sums in parentheses as
factors.  Every one of them has k(x, x) = 1, since weights count by their share of the sum.
"""

from streamkern.kernels.combined.base import Combined, simple_kernels
from streamkern.kernels.combined.construction import added, multiplied, on_columns, weighted
from streamkern.kernels.combined.input_subset import OnColumns
from streamkern.kernels.combined.product import Product
from streamkern.kernels.combined.weighted_mean import Sum

__all__ = [
    "Combined",
    "OnColumns",
    "Product",
    "Sum",
    "added",
    "multiplied",
    "on_columns",
    "simple_kernels",
    "weighted",
]
