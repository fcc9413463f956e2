"""Weighted means of kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streamkern.errors import ParameterError
from streamkern.kernels.base import OPERATIONS, ShiftInvariantKernel, value_text
from streamkern.kernels.combined import Reduced, Several, described, reduced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from streamkern._typing import Array, Floats


@dataclass(frozen=True, repr=False)
class Sum(Several):
    """A weighted mean of kernels, so that k(x, x) = 1; made by `+`, which is no sum of values.

    A draw of frequencies is one of a term, which is chosen with the probability of its weight.
    """

    terms: tuple[ShiftInvariantKernel, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not all(0.0 < weight < math.inf for weight in self.weights):
            raise ParameterError(
                f"the weights of a sum of kernels must be positive and finite, not "
                f"{list(self.weights)}; leave out terms that do not count."
            )
        self._set_draws(
            normal_sets=max(term.normal_sets for term in self.terms),
            n_uniforms=max(1, *(term.n_uniforms for term in self.terms)),
        )

    @property
    def name(self) -> str:
        """The terms with their weights, those of 1 left out."""
        return "+".join(
            term.name if weight == 1.0 else f"{value_text(weight)}*{term.name}"
            for term, weight in zip(self.terms, self.weights, strict=True)
        )

    def __repr__(self) -> str:
        """Return the Python expression."""
        texts = []
        for term, weight in zip(self.terms, self.weights, strict=True):
            text = repr(term)
            if weight != 1.0:
                # A weight before a sum in parentheses would be one of its terms.
                text = f"{text} * {weight!r}" if text.startswith("(") else f"{weight!r} * {text}"
            texts.append(text)
        return " + ".join(texts)

    @property
    def parts(self) -> tuple[ShiftInvariantKernel, ...]:
        """The terms."""
        return self.terms

    def of_parts(self, parts: Sequence[ShiftInvariantKernel]) -> Self:
        """Return the same combination of other parts."""
        return replace(self, terms=tuple(parts))

    @property
    def shares(self) -> list[float]:
        """The weights over their sum."""
        total = math.fsum(self.weights)
        return [weight / total for weight in self.weights]

    def parameters(self) -> dict[str, Any]:
        """Return the terms and their weights as plain JSON values."""
        terms = [described(term) for term in self.terms]
        return {"terms": terms, "weights": list(self.weights)}

    def __call__(self, X: ArrayLike, Z: ArrayLike) -> Floats:
        """Evaluate the kernel on every pair of rows; see `Kernel`."""
        pairs = zip(self.terms, self.shares, strict=True)
        return np.add.reduce([share * term(X, Z) for term, share in pairs])  # type: ignore[no-any-return]

    def spectral(self, normal: Floats, uniform: Floats) -> Floats:
        """Return draws of terms; what the first uniform number has left after the choice is used.

        Between the bounds of a term's probability it is uniform, so it goes on as the term's own.
        """
        p = normal.shape[1] // self.normal_sets
        bounds = np.cumsum([0.0, *self.shares])
        chosen = np.searchsorted(bounds[1:-1], uniform[:, 0])
        frequencies = np.empty((len(normal), p))
        for i, (term, share) in enumerate(zip(self.terms, self.shares, strict=True)):
            rows = chosen == i
            rest = uniform[rows, : term.n_uniforms].copy()
            left = (rest[:, 0] - bounds[i]) / share
            rest[:, 0] = np.clip(left, np.finfo(float).epsneg, 1.0)
            frequencies[rows] = term.spectral(normal[rows, : term.normal_sets * p], rest)
        return frequencies

    def density(self, frequencies: Floats) -> Floats:
        """Return the mean of the terms' densities."""
        pairs = zip(self.terms, self.shares, strict=True)
        values = [share * term.density(frequencies) for term, share in pairs]
        return np.add.reduce(values)  # type: ignore[no-any-return]

    def reduced(self, columns: Array | Sequence[int]) -> Reduced:
        """Return the sum of the terms that differ, and the share of what is constant."""
        constant = 0.0
        terms: list[ShiftInvariantKernel] = []
        weights: list[float] = []
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


OPERATIONS |= {"+": added, "weight": weighted}
