"""Products of kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streamkern.errors import ParameterError
from streamkern.kernels.combined.base import Combined, Reduced, described, reduced
from streamkern.kernels.combined.input_subset import columns_of
from streamkern.kernels.combined.weighted_mean import Sum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from streamkern._typing import Array, Floats
    from streamkern.kernels.base import ShiftInvariantKernel


# Frequencies take as many sets of normal numbers; and texts of strangers' files are kernels.
_MOST_FACTORS = 2000


@dataclass(frozen=True, repr=False)
class Product(Combined):
    """A product of kernels; made by `*`.

    A draw of frequencies is the sum of draws of its factors.  Factors of different columns share
    the normal numbers of a draw, each taking those of its columns; others have sets of their own.

    Parameters
    ----------
    factors : tuple of ShiftInvariantKernel
    """

    factors: tuple[ShiftInvariantKernel, ...]

    def __post_init__(self) -> None:
        if sum(factor.normal_sets for factor in self.factors) > _MOST_FACTORS:
            raise ParameterError(
                f"a product has at most {_MOST_FACTORS:,} kernels, but one has more; take fewer."
            )
        last = max(
            first + factor.normal_sets
            for first, factor in zip(self._first_sets(), self.factors, strict=True)
        )
        self._note(normal_sets=last, n_uniforms=sum(factor.n_uniforms for factor in self.factors))

    @property
    def name(self) -> str:
        """The factors, sums in parentheses."""
        names = (
            f"({factor.name})" if isinstance(factor, Sum) else factor.name
            for factor in self.factors
        )
        return "*".join(names)

    def __repr__(self) -> str:
        """Return the Python expression."""
        texts = (
            f"({factor!r})" if isinstance(factor, Sum) else repr(factor) for factor in self.factors
        )
        return " * ".join(texts)

    @property
    def parts(self) -> tuple[ShiftInvariantKernel, ...]:
        """The factors."""
        return self.factors

    def of_parts(self, parts: Sequence[ShiftInvariantKernel]) -> Self:
        """Return the same combination of other parts."""
        return replace(self, factors=tuple(parts))

    def parameters(self) -> dict[str, Any]:
        """Return the factors as plain JSON values."""
        return {"factors": [described(factor) for factor in self.factors]}

    def __call__(self, X: ArrayLike, Z: ArrayLike) -> Floats:
        """Evaluate the kernel on every pair of rows; see `Kernel`."""
        values = self.factors[0](X, Z)
        for factor in self.factors[1:]:
            values *= factor(X, Z)
        return values

    def check_inputs(self, n_features: int) -> None:
        """Raise ParameterError if a factor is one of other inputs."""
        for factor in self.factors:
            factor.check_inputs(n_features)

    def _first_sets(self) -> list[int]:
        """Return for each factor the first of its sets of normal numbers: none is used twice."""
        used: list[frozenset[int] | None] = []
        found = []
        taken: dict[int, int] = {}  # the sets of a column up to its first that is free
        for factor in self.factors:
            columns = columns_of(factor)
            first = max((taken.get(j, 0) for j in columns or ()), default=len(used))
            while any(
                columns is None or some is None or columns & some
                for some in used[first : first + factor.normal_sets]
            ):
                first += 1
            for i in range(first, first + factor.normal_sets):
                if i == len(used):
                    used.append(frozenset())
                some = used[i]
                used[i] = None if columns is None or some is None else some | columns
            ends = first + factor.normal_sets
            taken |= {j: ends for j in columns or () if taken.get(j, 0) == first}
            found.append(first)
        return found

    def spectral(self, normal: Floats, uniform: Floats) -> Floats:
        """Return the sums of the factors' draws."""
        p = normal.shape[1] // self.normal_sets
        frequencies = np.zeros((len(normal), p))
        column = 0
        for first, factor in zip(self._first_sets(), self.factors, strict=True):
            frequencies += factor.spectral(
                normal[:, first * p : (first + factor.normal_sets) * p],
                uniform[:, column : column + factor.n_uniforms],
            )
            column += factor.n_uniforms
        return frequencies

    def density(self, frequencies: Floats) -> Floats:
        """Return the product of the factors' densities, if each has columns of its own."""
        if self.normal_sets > 1:
            raise ParameterError(
                f"the kernel {self.name} has factors of the same columns, and no density that is "
                f"known; take a map that draws frequencies."
            )
        values = np.ones(len(frequencies))
        missing = set(range(frequencies.shape[1]))
        for factor in self.factors:
            columns = sorted(columns_of(factor) or ())
            missing -= set(columns)
            values *= factor.restricted(columns).density(frequencies[:, columns])
        if missing:
            raise ParameterError(
                f"the frequencies of the kernel {self.name} are 0 in column {min(missing)} and "
                f"have no density there; take a map that draws frequencies."
            )
        return values

    def resolved(
        self, rows: Floats, columns: Array | None = None, weights: Floats | None = None
    ) -> Self:
        """Return this kernel with a length scale for every factor; see `ShiftInvariantKernel`."""
        return self.of_parts([factor.resolved(rows, columns, weights) for factor in self.factors])

    def reduced(self, columns: Array | Sequence[int]) -> Reduced:
        """Return the product of the factors that differ, multiplied out where a part is constant.

        (c + (1 - c) k) m is the sum of m and k m with weights c and 1 - c.
        """
        products: list[tuple[float, tuple[ShiftInvariantKernel, ...]]] = [(1.0, ())]
        for factor in self.factors:
            c, kernel = reduced(factor, columns)
            with_it = [
                (weight * (1.0 - c), (*some, *factors_of(kernel)))
                for weight, some in products
                if kernel is not None
            ]
            products = with_it + [(weight * c, some) for weight, some in products if c > 0.0]
        constant = sum(weight for weight, some in products if not some)
        weights = tuple(weight for weight, some in products if some)
        terms = tuple(product_of(some) for _, some in products if some)
        if len(terms) > 1:
            return constant, Sum(terms, weights)
        return (constant, terms[0]) if terms else (1.0, None)


def factors_of(kernel: ShiftInvariantKernel) -> tuple[ShiftInvariantKernel, ...]:
    """Return the factors of a product, or any other kernel as the only one."""
    return kernel.factors if isinstance(kernel, Product) else (kernel,)


def product_of(factors: tuple[ShiftInvariantKernel, ...]) -> ShiftInvariantKernel:
    """Return the product of some factors, or the only one."""
    return Product(factors) if len(factors) > 1 else factors[0]
