"""The Gram matrices of folds as what multiplies vectors with them: by passes, or by transforms.

    f_i = phi(x_i) / scale - shift,   G_k v = sum of s_i f_i (f_i^T v) over the rows of fold k

Sums of features and targets, which are there, take these products about the means.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.engine.reduction import PassResult
from streamkern.extensions.gradients.feature_stores import FeatureStores
from streamkern.extensions.gradients.gram_products import GramProducts
from streamkern.extensions.gradients.preconditioner import LEADING, BlockPreconditioner
from streamkern.extensions.gradients.remainder import LeadingPart
from streamkern.features import FeatureMap, apply_r
from streamkern.runtime.memory import usable_cores
from streamkern.runtime.threads import blas_threads
from streamkern.solve.solution import LeadingEquations
from streamkern.statistics import FeatureSums, FoldStatistics, RangeFolds


@dataclass
class ByPasses:
    """Products by passes over the rows, which make their features again or keep them."""

    read: Callable[..., PassResult[Any]]
    sums: FoldStatistics
    stores: FeatureStores
    passes: list[PassResult[Any]] = field(default_factory=list)

    # The sketch grows while its least eigenvalue is so many times the penalty; a bound must fall by
    # half in so many iterations.
    far, patience, leading = 1.0, 8, None

    def products(self, vectors: Array, label: str, *, by_fold: bool) -> dict[int, Floats]:
        """Return the products (D, k) with vectors of the rows of every fold, or of all (0)."""
        rule, empty = self.sums.rule, self.sums.empty
        asked: Any = GramProducts(empty.feature_map, vectors, empty.feature_shift, empty.precision)
        asked = FoldStatistics(rule, asked) if by_fold else asked
        # Blocks of rows that are dealt one by one are others by fold.
        stores = self.stores if by_fold or isinstance(rule, RangeFolds) else None
        found = self.read(asked, label, stores=stores)
        self.passes.append(replace(found, statistic=None))  # the products are kept elsewhere
        parts = found.statistic.parts if by_fold else {0: found.statistic}
        return {fold: part.products for fold, part in parts.items()}


class ByTransforms:
    """Products by sums that tell them, as of waves on a lattice: no row is read again."""

    far, patience, passes = np.inf, 40, ()  # a block preconditions, and products cost less

    def __init__(self, sums: FoldStatistics, *, intercept: bool) -> None:
        every: Any = sums.total()
        block, others = every.leading_part(LEADING)
        moments = block.centred(intercept=intercept)
        beyond = float(others.sum()), every.weight * float(others.max(initial=0.0))
        equations = LeadingEquations(moments.gram, moments.feature_mean, *beyond)
        beside = every.weight * others
        block_inverse = BlockPreconditioner(moments.gram, beside)
        self.leading = LeadingPart(equations, beside, every.n_rows, block_inverse)
        parts: Any = sorted(sums.parts.items())
        self.of_all = every.gram_operator(usable_cores())
        self.of_folds = {fold: part.gram_operator(usable_cores()) for fold, part in parts}

    def products(self, vectors: Array, label: str, *, by_fold: bool) -> dict[int, Floats]:  # noqa: ARG002  as by passes
        operators = self.of_folds if by_fold else {0: self.of_all}
        return {fold: operator.times(vectors) for fold, operator in operators.items()}


class Gram:
    """The Gram matrices of folds, in the features that are solved for, with the sums beside them.

    At landmarks these are phi = R^T psi of the features psi that rows are summed of.
    """

    def __init__(
        self,
        way: ByPasses | ByTransforms,
        sums: FoldStatistics,
        feature_map: FeatureMap,
        *,
        intercept: bool,
    ) -> None:
        self.way, self.rule, self.intercept = way, sums.rule, intercept
        self.feature_map, self.seconds, self.sums = feature_map, list[float](), dict[int, Any]()
        for fold, part in sorted(sums.parts.items()):
            turned = [apply_r(feature_map, v, back=True) for v in (part.feature_shift, part.cross)]
            self.sums[fold] = part.without_gram(feature_map, *turned)
        self.one: FeatureSums = next(iter(self.sums.values()))
        self.n_rows = sum(part.n_rows for part in self.sums.values())
        # What systems are without: nothing (None), and each fold where there are several.
        self.left_out = [None, *self.sums] if len(self.sums) > 1 else [None]

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of features and of rows."""
        return self.feature_map.n_components, self.n_rows

    def products(self, vectors: Array, label: str, *, by_fold: bool = True) -> dict[int, Floats]:
        """Return G_k V of vectors (D, b) and every fold, or of all rows (0)."""
        with blas_threads(1):
            turned = apply_r(self.feature_map, vectors.astype(np.float64))
        begun = perf_counter()
        parts = self.way.products(turned, label, by_fold=by_fold)
        self.seconds.append(perf_counter() - begun)
        with blas_threads(1):
            every = apply_r(self.feature_map, np.column_stack(list(parts.values())), back=True)
        return dict(zip(parts, np.split(every, len(parts), axis=1), strict=True))

    def about_means(self, products: Floats, vectors: Floats, left_out: int | None = None) -> Floats:
        """Return G V about the means, of all rows or without a fold, from the sums' products."""
        for factor, mean, _ in self._means(left_out):
            products = products + factor * np.outer(mean, mean @ vectors)
        return products * self.feature_map.scale**2

    def cross(self, left_out: int | None) -> Floats:
        """Return C of all rows or without a fold, (D, q), about the means and in units of y."""
        found: Floats = sum(s.cross[:, :-1] for k, s in self.sums.items() if k != left_out)
        for factor, mean, target in self._means(left_out):
            found = found + factor * np.outer(mean, target)
        return found * (self.feature_map.scale * self.one.target_unit)

    @property
    def feature_mean(self) -> Floats:
        """The mean of phi / scale over all rows, (D,)."""
        return self.one.feature_shift + self._means(None)[0][1]

    def variation(self, left_out: int | None) -> Floats:
        """Return the sums of squares of targets about their means, (q,), intercept or not."""
        left = [sums for fold, sums in self.sums.items() if fold != left_out]
        squares: Floats = sum(sums.target for sums in left)
        N, _, mean = self._means(left_out)[0]
        return (squares + N * mean**2) * self.one.target_unit**2

    def _means(self, left_out: int | None) -> list[tuple[float, Floats, Floats]]:
        """Return the outer products, as factors and means, that sums about means differ by."""
        left = [sums for fold, sums in self.sums.items() if fold != left_out]
        N = sum(sums.weight for sums in left)
        features: Floats = sum(sums.cross[:, -1] for sums in left) / N
        targets: Floats = sum(sums.target_sum for sums in left) / N
        means = [(-N, features, targets)]
        if not self.intercept:
            shift = self.one.target_shift / self.one.target_unit
            means.append((N, self.one.feature_shift + features, shift + targets))
        return means
