"""How kernels are combined, always to the same form for the same text."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from streamkern.errors import ParameterError
from streamkern.kernels.combined.base import Combined
from streamkern.kernels.combined.input_subset import OnColumns, checked_columns
from streamkern.kernels.combined.product import Product, factors_of
from streamkern.kernels.combined.weighted_mean import Sum
from streamkern.kernels.scaled import ScaledKernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern.kernels.base import ShiftInvariantKernel


def on_columns(kernel: ShiftInvariantKernel, columns: Sequence[int]) -> Combined:
    """Return a kernel of some columns of the rows."""
    if isinstance(kernel, OnColumns):
        chosen = checked_columns(columns)
        kernel.check_inputs(len(chosen))
        return OnColumns(kernel.kernel, tuple(chosen[column] for column in kernel.columns))
    if isinstance(kernel, Combined):
        return kernel.of_parts([part.on(columns) for part in kernel.parts])
    if not isinstance(kernel, ScaledKernel):
        raise ParameterError(
            f"only kernels of a length scale are put on columns, not {kernel!r}; take one."
        )
    return OnColumns(kernel, tuple(columns))


def added(*kernels: ShiftInvariantKernel) -> Sum:
    """Return the weighted mean of all terms of kernels."""
    sums = [_as_sum(kernel) for kernel in kernels]
    terms = chain.from_iterable(each.terms for each in sums)
    return Sum(tuple(terms), tuple(chain.from_iterable(each.weights for each in sums)))


def weighted(kernel: ShiftInvariantKernel, weight: float) -> Sum:
    """Return a kernel as a sum, all weights times a number."""
    each = _as_sum(kernel)
    return Sum(each.terms, tuple(weight * own for own in each.weights))


def multiplied(*kernels: ShiftInvariantKernel) -> Combined:
    """Return the product of kernels; a weight of one term is then that of the product."""
    weight = 1.0
    factors: list[ShiftInvariantKernel] = []
    for kernel in kernels:
        if isinstance(kernel, Sum) and len(kernel.terms) == 1:
            weight *= kernel.weights[0]
            factors += factors_of(kernel.terms[0])
        else:
            factors += factors_of(kernel)
    product = Product(tuple(factors))
    return product if weight == 1.0 else Sum((product,), (weight,))


def _as_sum(kernel: ShiftInvariantKernel) -> Sum:
    return kernel if isinstance(kernel, Sum) else Sum((kernel,), (1.0,))
