"""What kernels that are made of others have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streamkern.errors import ParameterError
from streamkern.kernels.base import LengthScale, ShiftInvariantKernel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streamkern._typing import Array


class Combined(ShiftInvariantKernel):
    """A kernel that is made of others.

    Attributes
    ----------
    parts : tuple of ShiftInvariantKernel
    """

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

    def remains(self, columns: Array | Sequence[int]) -> bool:
        """Say whether any part is one of any of these columns."""
        return any(part.remains(columns) for part in self.parts)

    def _note(self, *, normal_sets: int, n_uniforms: int) -> None:
        object.__setattr__(self, "normal_sets", normal_sets)
        object.__setattr__(self, "n_uniforms", n_uniforms)
        stretches = all(part.stretches_frequencies for part in self.parts)
        object.__setattr__(self, "stretches_frequencies", stretches)


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


def without_inputs(kernel: Combined) -> ParameterError:
    """Return the error of a kernel in whose columns rows do not differ."""
    return ParameterError(
        f"all columns that the kernel {kernel.name} is one of are constant, so rows do not differ "
        f"for it; put it on others."
    )
