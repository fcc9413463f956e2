"""Products of the Gram matrices of folds with vectors: by passes over the rows, or without rows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.engine.reduction import PassResult
from streamkern.extensions.gradients.feature_stores import FeatureStores
from streamkern.extensions.gradients.gram_products import GramProducts
from streamkern.extensions.gradients.preconditioner import LEADING
from streamkern.extensions.gradients.remainder import LeadingPart
from streamkern.solve.solution import LeadingEquations
from streamkern.statistics import FoldStatistics, RangeFolds


class GramPasses:
    """Products by passes over the rows, which make their features again or keep them.

    Attributes
    ----------
    block : BlockPreconditioner or None
        What preconditions in the place of the sketch.
    far : float
        The sketch is made larger while its least eigenvalue is so many times the penalty.
    patience : int
        Iterations over which a bound must fall by half.
    """

    far, patience, block = 1.0, 8, None

    def __init__(
        self,
        read: Callable[..., PassResult[Any]],
        sums: FoldStatistics,
        stores: FeatureStores | None,
    ) -> None:
        self.read, self.rule, self.stores, self.empty = read, sums.rule, stores, sums.empty
        self.passes: list[PassResult[Any]] = []

    def of_folds(self, vectors: Array, label: str) -> dict[int, Floats]:
        """Return the products (D, k) with vectors (D, k) of every fold's rows."""
        parts = self._read(
            FoldStatistics(self.rule, self._empty(vectors)), label, self.stores
        ).parts
        return {fold: part.products for fold, part in parts.items()}

    def of_all(self, vectors: Array, label: str) -> Floats:
        """Return the products (D, k) with vectors (D, k) of all rows."""
        # Blocks of rows that are dealt one by one are others by fold.
        stores = self.stores if isinstance(self.rule, RangeFolds) else None
        return self._read(self._empty(vectors), label, stores).products

    def _empty(self, vectors: Array) -> GramProducts:
        empty = self.empty
        return GramProducts(empty.feature_map, vectors, empty.feature_shift, empty.precision)

    def _read(self, asked: Any, label: str, stores: FeatureStores | None) -> Any:
        found = self.read(asked, label, stores=stores)
        self.passes.append(replace(found, statistic=None))  # the products are kept elsewhere
        return found.statistic


class GramTransforms:
    """Products by sums that tell them, as of waves on a lattice: no row is read again."""

    far, patience = np.inf, 40  # a block preconditions, and products cost less
    passes = ()

    def __init__(self, sums: FoldStatistics, n_threads: int, *, intercept: bool) -> None:
        parts = dict(sorted(sums.parts.items()))
        every: Any = sums.total()
        self.leading = leading_part(every, intercept=intercept)
        self.block = self.leading.preconditioner
        self.operators = {fold: part.gram_operator(n_threads) for fold, part in parts.items()}
        self.whole = every.gram_operator(n_threads)

    def of_folds(self, vectors: Array, label: str) -> dict[int, Floats]:  # noqa: ARG002  as of passes
        return {fold: operator.times(vectors) for fold, operator in self.operators.items()}

    def of_all(self, vectors: Array, label: str) -> Floats:  # noqa: ARG002  as of passes
        return self.whole.times(vectors)


def leading_part(sums: Any, *, intercept: bool) -> LeadingPart:
    """Return what sums tell of the leading features, about their means if so."""
    leading, others = sums.leading_part(LEADING)
    moments = leading.centred(intercept=intercept)
    beyond = float(others.sum()), sums.weight * float(others.max(initial=0.0))
    equations = LeadingEquations(moments.gram, moments.feature_mean, *beyond)
    return LeadingPart(equations, sums.weight * others, sums.n_rows)
