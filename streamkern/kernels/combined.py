"""Combined kernels: what sums, products and kernels of some of the inputs have in common.

They are kept in one form: sums of products of kernels on columns, with sums in parentheses as
factors.  Every one of them has k(x, x) = 1, since weights count by their share of the sum.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streamkern.errors import ParameterError
from streamkern.kernels.base import LengthScale, ShiftInvariantKernel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streamkern._typing import Array, Floats


Reduced = tuple[float, ShiftInvariantKernel | None]


class Combined(ShiftInvariantKernel):
    """A kernel that is made of others."""

    @property
    @abstractmethod
    def parts(self) -> tuple[ShiftInvariantKernel, ...]:
        """The kernels that it is made of."""

    @abstractmethod
    def of_parts(self, parts: Sequence[ShiftInvariantKernel]) -> Self:
        """Return the same combination of other parts."""

    @property
    def length_scale(self) -> LengthScale:
        """The length scales of all parts, in order, or 'median' where there is one to resolve."""
        scales: list[float] = []
        for part in self.parts:
            if isinstance(part.length_scale, str):
                return part.length_scale
            scales += np.atleast_1d(part.length_scale).tolist()
        return tuple(scales)

    def stretched(self, factor: float) -> Self:
        """Return this kernel with the length scales of all parts times a factor."""
        return self.of_parts([part.stretched(factor) for part in self.parts])

    @abstractmethod
    def reduced(self, columns: Array | Sequence[int]) -> Reduced:
        """Return c and k of the kernel c + (1 - c) k of rows that are alike in all other columns.

        The columns of k are counted among those that are kept; it is None if c is 1.
        """

    def restricted(self, columns: Array | Sequence[int]) -> ShiftInvariantKernel:
        """Return this kernel for rows of which only some columns are kept, in their order.

        Terms that are constant on such rows are left out: the intercept stands for them.
        """
        _, kernel = self.reduced(columns)
        if kernel is None:
            raise ParameterError(
                f"all columns that the kernel {self.name} is one of are constant, so rows do not "
                f"differ for it; put it on others."
            )
        return kernel

    def remains(self, columns: Array | Sequence[int]) -> bool:
        """Say whether any part is one of any of these columns."""
        return any(part.remains(columns) for part in self.parts)

    def _set_draws(self, *, normal_sets: int, n_uniforms: int) -> None:
        object.__setattr__(self, "normal_sets", normal_sets)
        object.__setattr__(self, "n_uniforms", n_uniforms)
        stretches = all(part.stretches_frequencies for part in self.parts)
        object.__setattr__(self, "stretches_frequencies", stretches)


class Several(Combined):
    """A combination of kernels of all inputs."""

    def check_inputs(self, n_features: int) -> None:
        """Raise ParameterError if a part is one of other inputs."""
        for part in self.parts:
            part.check_inputs(n_features)

    def resolved(
        self, rows: Floats, columns: Array | None = None, weights: Floats | None = None
    ) -> Self:
        """Return this kernel with a length scale for every part; see `ShiftInvariantKernel`."""
        return self.of_parts([part.resolved(rows, columns, weights) for part in self.parts])


def simple_kernels(kernel: object) -> Iterator[object]:
    """Yield the kernels that a kernel is made of, or itself."""
    if isinstance(kernel, Combined):
        for part in kernel.parts:
            yield from simple_kernels(part)
    else:
        yield kernel


def described(kernel: ShiftInvariantKernel) -> dict[str, Any]:
    """Return the name and the parameters of a kernel as plain JSON values."""
    return {"name": kernel.name, "parameters": kernel.parameters()}


def reduced(kernel: ShiftInvariantKernel, columns: Array | Sequence[int]) -> Reduced:
    """Return what any kernel is of rows that are alike in all other columns."""
    if isinstance(kernel, Combined):
        return kernel.reduced(columns)
    return (0.0, kernel.restricted(columns)) if kernel.remains(columns) else (1.0, None)
