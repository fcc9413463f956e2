"""Combined kernels: what is made of others, and weighted means.

They are kept in one form: sums of products of kernels on columns, with sums in parentheses as
factors.  Every one of them has k(x, x) = 1, since weights count by their share of the sum.
"""

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from streamkern._typing import Array, Floats
from streamkern.errors import ParameterError
from streamkern.kernels.base import value_text
from streamkern.kernels.shift_invariant import OPERATIONS, LengthScale, ShiftInvariantKernel

Reduced = tuple[float, ShiftInvariantKernel | None]


class Combined(ShiftInvariantKernel):
    @property
    def parts(self) -> list[Any]:
        """The kernels that it is made of, in order."""
        return list(self._named_parts().values())

    def _hold(self, used_columns: Iterable[int] | None, normal_sets: int, n_uniforms: int) -> None:
        """Hold what follows from the arguments."""
        used = None if used_columns is None else tuple(sorted(used_columns))
        vars(self).update(used_columns=used, normal_sets=normal_sets, n_uniforms=n_uniforms)

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
        return self.of_parts([part.stretched(factor) for part in self.parts])

    @abstractmethod
    def reduced(self, columns: Array | Sequence[int]) -> Reduced:
        """Return c and k of the kernel c + (1 - c) k of rows that are alike in all other columns.

        The columns of k are counted among those that are kept; it is None if c is 1.
        """

    def restricted(self, columns: Array | Sequence[int]) -> ShiftInvariantKernel:
        """Leave out terms that are constant on such rows, too: the intercept stands for them."""
        _, kernel = self.reduced(columns)
        if kernel is None:
            raise ParameterError(
                f"all columns that the kernel {self.name} is one of are constant, so rows do not "
                f"differ for it; put it on others."
            )
        return kernel


class Several(Combined):
    held: ClassVar[str]  # the name of its argument

    def __post_init__(self) -> None:
        used = [part.used_columns for part in self.parts]
        known = [columns for columns in used if columns is not None]
        every = set().union(*known) if len(known) == len(used) else None
        self._hold(every, *self._count_draws())

    @abstractmethod
    def _count_draws(self) -> tuple[int, int]:
        """Return `normal_sets` and `n_uniforms`, or refuse what is no kernel."""

    def of_parts(self, parts: Sequence[ShiftInvariantKernel]) -> Self:
        return replace(self, **{self.held: tuple(parts)})

    def check_inputs(self, n_features: int) -> None:
        for part in self.parts:
            part.check_inputs(n_features)

    def resolved(
        self, rows: Floats, columns: Array | None = None, weights: Floats | None = None
    ) -> Self:
        return self.of_parts([part.resolved(rows, columns, weights) for part in self.parts])


@dataclass(frozen=True, repr=False)
class Sum(Several):
    """A weighted mean of kernels, so that k(x, x) = 1; made by `+`, which is no sum of values.

    A draw of frequencies is one of a term, which is chosen with the probability of its weight.
    """

    terms: tuple[ShiftInvariantKernel, ...]
    weights: tuple[float, ...]
    held = "terms"

    def _count_draws(self) -> tuple[int, int]:
        if not all(0.0 < weight < math.inf for weight in self.weights):
            raise ParameterError(
                f"the weights of a sum of kernels must be positive and finite, not "
                f"{list(self.weights)}; leave out terms that do not count."
            )
        normal_sets = max(term.normal_sets for term in self.terms)
        return normal_sets, max(1, *(term.n_uniforms for term in self.terms))

    @property
    def name(self) -> str:
        return "+".join(
            term.name if weight == 1.0 else f"{value_text(weight)}*{term.name}"
            for term, weight in zip(self.terms, self.weights, strict=True)
        )

    def __repr__(self) -> str:
        texts = []
        for term, weight in zip(self.terms, self.weights, strict=True):
            text = repr(term)
            if weight != 1.0:
                # A weight before a sum in parentheses would be one of its terms.
                text = f"{text} * {weight!r}" if text.startswith("(") else f"{weight!r} * {text}"
            texts.append(text)
        return " + ".join(texts)

    @property
    def shares(self) -> list[float]:
        total = math.fsum(self.weights)
        return [weight / total for weight in self.weights]

    def __call__(self, X: ArrayLike, Z: ArrayLike) -> Floats:
        pairs = zip(self.terms, self.shares, strict=True)
        return np.add.reduce([share * term(X, Z) for term, share in pairs])

    def spectral(self, normal: Floats, uniform: Floats) -> Floats:
        """Choose a term by the first uniform number, whose place within it is uniform again."""
        p = normal.shape[1] // self.normal_sets
        bounds = np.cumsum([0.0, *self.shares])
        chosen = np.searchsorted(bounds[1:-1], uniform[:, 0])
        frequencies = np.empty((len(normal), p))
        for i, (term, share) in enumerate(zip(self.terms, self.shares, strict=True)):
            rows = np.flatnonzero(chosen == i)
            if not len(rows):  # of a term that hardly counts
                continue
            rest = uniform[rows, : term.n_uniforms].copy()
            rest[:, 0] = np.clip((rest[:, 0] - bounds[i]) / share, np.finfo(float).epsneg, 1.0)
            frequencies[rows] = term.spectral(normal[rows, : term.normal_sets * p], rest)
        return frequencies

    def density(self, frequencies: Floats) -> Floats:
        pairs = zip(self.terms, self.shares, strict=True)
        return np.add.reduce([share * term.density(frequencies) for term, share in pairs])

    def reduced(self, columns: Array | Sequence[int]) -> Reduced:
        constant = 0.0
        terms, weights = list[ShiftInvariantKernel](), list[float]()
        for term, weight, share in zip(self.terms, self.weights, self.shares, strict=True):
            c, kernel = reduced(term, columns)
            constant += share * c
            if isinstance(kernel, Sum):
                terms += kernel.terms
                weights += [weight * (1.0 - c) * part for part in kernel.shares]
            elif kernel is not None:
                terms.append(kernel)
                weights.append(weight * (1.0 - c))
        if not terms:
            return 1.0, None
        if len(terms) == 1 < len(self.terms):
            return constant, terms[0]
        return constant, Sum(tuple(terms), tuple(weights))


def added(*kernels: ShiftInvariantKernel) -> Sum:
    """Return the weighted mean of all terms of kernels."""
    sums = [_as_sum(kernel) for kernel in kernels]
    terms = chain.from_iterable(each.terms for each in sums)
    return Sum(tuple(terms), tuple(chain.from_iterable(each.weights for each in sums)))


def weighted(kernel: ShiftInvariantKernel, weight: float) -> Sum:
    """Return a kernel as a sum, all weights times a number."""
    each = _as_sum(kernel)
    return Sum(each.terms, tuple(weight * own for own in each.weights))


def _as_sum(kernel: ShiftInvariantKernel) -> Sum:
    return kernel if isinstance(kernel, Sum) else Sum((kernel,), (1.0,))


def reduced(kernel: ShiftInvariantKernel, columns: Array | Sequence[int]) -> Reduced:
    """Return what any kernel is of rows that are alike in all other columns."""
    if isinstance(kernel, Combined):
        return kernel.reduced(columns)
    used = kernel.used_columns
    remains = len(columns) > 0 if used is None else not set(used).isdisjoint(columns)
    return (0.0, kernel.restricted(columns)) if remains else (1.0, None)


def simple_kernels(kernel: object) -> Iterator[object]:
    """Yield the kernels that a kernel is made of, or itself."""
    if isinstance(kernel, Combined):
        for part in kernel.parts:
            yield from simple_kernels(part)
    else:
        yield kernel


OPERATIONS |= {"+": added, "weight": weighted}
