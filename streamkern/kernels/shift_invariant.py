"""Shift-invariant kernels: functions of x - x', with k(x, x) = 1."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.kernels.base import Kernel

if TYPE_CHECKING:
    from streamkern.kernels.combined import Combined

LengthScale = float | tuple[float, ...] | str

# What `+`, `*`, a weight and columns make; filled where combined kernels are, which are kernels.
OPERATIONS: dict[str, Callable[..., Combined]] = {}


class ShiftInvariantKernel(Kernel):
    """A kernel of the differences x - x', with k(x, x) = 1.

    Such kernels are added, multiplied and put on some of the inputs: `Gaussian(2.0).on([0, 1]) *
    Periodic(period=7).on([2]) + 0.5 * Matern(nu=2)`.  Weights of a sum are divided by their sum,
    so that k(x, x) = 1 again.
    """

    # Normal numbers an input, and uniform numbers, that a draw of frequencies takes.
    normal_sets: int = 1
    n_uniforms: int = 1
    # That it is a kernel of, None for all.
    used_columns: tuple[int, ...] | None = None
    # Operators of NumPy's scalars leave the product to the kernel.
    __array_ufunc__: ClassVar[None] = None

    @property
    @abstractmethod
    def length_scale(self) -> LengthScale:
        """The length scale, in units of the (standardised) inputs, or those of the parts."""

    @abstractmethod
    def spectral(self, normal: Floats, uniform: Floats) -> Floats:
        """Return draws (L, p) of the spectral distribution, in units of 1 / length_scale.

        They are made of rows whose marginal distribution is standard normal, (L, normal_sets p),
        and of numbers in (0, 1] that are independent of those, (L, n_uniforms).
        """

    @abstractmethod
    def density(self, frequencies: Floats) -> Floats:
        """Return the spectral density (L,) at frequencies (L, p), or refuse where there is none.

        It is infinite at 0 for kernels that fall off slowly.
        """

    @abstractmethod
    def check_inputs(self, n_features: int) -> None:
        """Raise ParameterError unless the kernel is one of rows of that many inputs."""

    @abstractmethod
    def resolved(
        self, rows: Floats, columns: Array | None = None, weights: Floats | None = None
    ) -> Self:
        """Return this kernel with a number for every length scale 'median', that of some rows.

        Rows are standardised, spread over the data, and of those inputs of the kernel that are
        named by `columns`; each counts as often as its weight says.
        """

    @abstractmethod
    def stretched(self, factor: float) -> Self:
        """Return this kernel with all length scales, which are numbers, times a factor."""

    @abstractmethod
    def restricted(self, columns: Array | Sequence[int]) -> ShiftInvariantKernel:
        """Return this kernel for rows of which only some columns are kept, in their order.

        Rows do not differ in the others, which are constant; a kernel of these alone is refused.
        """

    def on(self, columns: Sequence[int]) -> Combined:
        """Return this kernel of some columns of the rows, counted from 0."""
        return OPERATIONS["columns"](self, columns)

    def __add__(self, other: object) -> Combined:
        """Return the mean of two kernels, or of the terms of two sums, by their weights."""
        if not isinstance(other, ShiftInvariantKernel):
            return NotImplemented
        return OPERATIONS["+"](self, other)

    def __mul__(self, other: object) -> Combined:
        """Return the product with a kernel, or with a number, which is a weight in a sum."""
        if isinstance(other, ShiftInvariantKernel):
            return OPERATIONS["*"](self, other)
        if isinstance(other, (int, float, np.integer, np.floating)):
            return OPERATIONS["weight"](self, float(other))
        return NotImplemented

    __rmul__ = __mul__


def length_scale_of(kernel: Kernel) -> Any:
    scale = kernel.length_scale if isinstance(kernel, ShiftInvariantKernel) else None
    return list(scale) if isinstance(scale, tuple) else scale
