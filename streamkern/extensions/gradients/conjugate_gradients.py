"""Conjugate gradients, where the D x D system has no room or takes longer: it is never held."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from streamkern.extensions.gradients.feature_stores import FeatureStores
from streamkern.extensions.gradients.gram_passes import GramPasses, GramTransforms
from streamkern.extensions.gradients.subspace_fit import SubspaceSearch
from streamkern.extensions.gradients.subspace_passes import SubspacePasses
from streamkern.features import FeatureMap, Standardized, unwhitened
from streamkern.passes.fit_context import FitContext
from streamkern.runtime.memory import usable_cores
from streamkern.runtime.threads import blas_threads
from streamkern.solvers.base import FoldSums, Solver
from streamkern.solvers.direct import Direct
from streamkern.statistics import FeatureSums, FoldStatistics

if TYPE_CHECKING:
    from streamkern.parameters.fit_report import FitReport


class ConjugateGradients(Solver):
    """Sums of the combinations of features that the penalty's choice and the solution need."""

    @classmethod
    def takes(cls, context: FitContext, feature_map: Standardized) -> bool:  # noqa: ARG003
        return context.plan.solves_by_passes

    def empty(self, feature_map: FeatureMap) -> FeatureSums:
        # Sums without products of features.
        empty = Direct(self.context, self.summary).empty(feature_map)
        return replace(empty, first_row=feature_map.n_components)

    def sums(self, drawn: Standardized) -> FoldSums:
        """Read the rows for sums without products of features, and as often as a solution takes."""
        context = self.context
        own = context.options.own_solver
        first = self if own is None else own(context, self.summary)
        with blas_threads(1):  # the shift of features is part of the result
            feature_map = unwhitened(drawn)
            empty = first.empty(feature_map)
        found = first.read(empty, feature_map, keep=False)
        sums, intercept = found.folds, context.options.fit_intercept
        penalty: Any = context.penalty
        read = partial(context.read, group=context.merge_group_of)
        with _products(context, read, sums) as products:
            growing = SubspacePasses(products, sums, drawn, intercept=intercept)
            search = SubspaceSearch(growing, penalty)
            folds, completion = search.run()
        facts: FitReport = {"iterations": search.n_iterations, "gradients": search.facts()}
        passes = [*found.passes, *products.passes]
        return FoldSums(folds, folds.empty.feature_map, found.weights, passes, facts, completion)


@contextmanager
def _products(
    rows: FitContext, read: Any, sums: FoldStatistics
) -> Iterator[GramPasses | GramTransforms]:
    """Hold what multiplies vectors with the Gram matrices of folds."""
    if rows.options.own_solver is not None:
        yield GramTransforms(sums, usable_cores(), intercept=rows.options.fit_intercept)
        return
    with FeatureStores(rows.plan.stored_bytes) as stores:
        yield GramPasses(read, sums, stores)
