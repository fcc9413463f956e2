"""Sums and products of shift-invariant kernels, and kernels of some of the inputs.

They are kept in one form: sums of products of kernels on columns, with sums in parentheses as
factors.  Every one of them has k(x, x) = 1, since weights count by their share of the sum.
"""

from streamkern.kernels.combined.base import Combined, simple_kernels
from streamkern.kernels.combined.columns import OnColumns
from streamkern.kernels.combined.factors import Product
from streamkern.kernels.combined.making import added, multiplied, on_columns, weighted
from streamkern.kernels.combined.sums import Sum

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
