"""Products of kernels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from streamkern._typing import Array, Floats
from streamkern.errors import ParameterError
from streamkern.kernels.combined import Reduced, Several, Sum, reduced
from streamkern.kernels.shift_invariant import OPERATIONS, ShiftInvariantKernel

# Frequencies take as many sets of normal numbers; and texts of strangers' files are kernels.
_MOST_FACTORS = 2000


@dataclass(frozen=True, repr=False)
class Product(Several):
    """A product of kernels; made by `*`.

    A draw of frequencies is the sum of draws of its factors.  Factors of different columns share
    the normal numbers of a draw, each taking those of its columns; others have sets of their own.
    """

    factors: tuple[ShiftInvariantKernel, ...]
    held = "factors"

    def _count_draws(self) -> tuple[int, int]:
        if sum(factor.normal_sets for factor in self.factors) > _MOST_FACTORS:
            raise ParameterError(
                f"a product has at most {_MOST_FACTORS:,} kernels, but one has more; take fewer."
            )
        pairs = zip(self._first_sets(), self.factors, strict=True)
        return (
            max(first + factor.normal_sets for first, factor in pairs),
            sum(factor.n_uniforms for factor in self.factors),
        )

    @property
    def name(self) -> str:
        return "*".join(_enclosed(factor, factor.name) for factor in self.factors)

    def __repr__(self) -> str:
        return " * ".join(_enclosed(factor, repr(factor)) for factor in self.factors)

    def __call__(self, X: ArrayLike, Z: ArrayLike) -> Floats:
        values = self.factors[0](X, Z)
        for factor in self.factors[1:]:
            values *= factor(X, Z)
        return values

    def _first_sets(self) -> list[int]:
        """Return for each factor the first of its sets of normal numbers: none is used twice."""
        used: list[frozenset[int] | None] = []
        found = []
        taken: dict[int, int] = {}  # the sets of a column up to its first that is free
        for factor in self.factors:
            columns = None if factor.used_columns is None else frozenset(factor.used_columns)
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
        if self.normal_sets > 1:
            raise ParameterError(
                f"the kernel {self.name} has factors of the same columns, and no density that is "
                f"known; take a map that draws frequencies."
            )
        values = np.ones(len(frequencies))
        missing = set(range(frequencies.shape[1]))
        for factor in self.factors:
            columns = sorted(factor.used_columns or ())
            missing -= set(columns)
            values *= factor.restricted(columns).density(frequencies[:, columns])
        if missing:
            raise ParameterError(
                f"the frequencies of the kernel {self.name} are 0 in column {min(missing)} and "
                f"have no density there; take a map that draws frequencies."
            )
        return values

    def reduced(self, columns: Array | Sequence[int]) -> Reduced:
        """Multiply out: (c + (1 - c) k) m is the sum of m and k m with weights c and 1 - c."""
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
        terms = tuple(Product(some) if len(some) > 1 else some[0] for _, some in products if some)
        if len(terms) > 1:
            return constant, Sum(terms, weights)
        return (constant, terms[0]) if terms else (1.0, None)


def factors_of(kernel: ShiftInvariantKernel) -> tuple[ShiftInvariantKernel, ...]:
    """Return the factors of a product, or any other kernel as the only one."""
    return kernel.factors if isinstance(kernel, Product) else (kernel,)


def _enclosed(factor: ShiftInvariantKernel, text: str) -> str:
    return f"({text})" if isinstance(factor, Sum) else text


def multiplied(*kernels: ShiftInvariantKernel) -> Product | Sum:
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


OPERATIONS["*"] = multiplied
