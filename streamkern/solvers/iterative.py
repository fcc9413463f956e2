"""Conjugate gradients, where the D x D system has no room or takes longer: it is never held."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from streamkern.engine.feature_stores import FeatureStores
from streamkern.engine.reduction import PassResult
from streamkern.engine.scheduler import scatter
from streamkern.features import FeatureMap, Standardized, gram_map, unwhitened
from streamkern.parameters.penalty_options import PenaltyOptions
from streamkern.passes.fit_context import FitContext
from streamkern.runtime.memory import usable_cores
from streamkern.runtime.threads import blas_threads
from streamkern.solvers.base import FoldSums, Solver
from streamkern.solvers.direct import Direct
from streamkern.solvers.fold_solution import nested_sizes
from streamkern.solvers.gram_passes import GramPasses, GramTransforms
from streamkern.solvers.penalty_search import Size, solve_sizes
from streamkern.solvers.subspace_fit import SubspaceSearch
from streamkern.solvers.subspace_passes import SubspacePasses
from streamkern.solvers.toeplitz import Toeplitz
from streamkern.statistics import FeatureSums, FoldStatistics, ToeplitzMoments

if TYPE_CHECKING:
    from streamkern.parameters.fit_report import FitReport

# Leading features whose moments take about one iteration's pass, and their share of all.
_MOST_LEADING, _PART = 2048, 4


class ConjugateGradients(Solver):
    """Sums of the combinations of features that the penalty's choice and the solution need."""

    @classmethod
    def takes(cls, context: FitContext, feature_map: Standardized) -> bool:  # noqa: ARG003
        return context.plan.solves_by_passes

    def empty(self, feature_map: FeatureMap) -> FeatureSums:
        if self.context.options.sums_waves:
            return self._of_waves.empty(feature_map)
        # Sums without products of features.
        empty = Direct(self.context, self.summary).empty(feature_map)
        return replace(empty, first_row=feature_map.n_components)

    @property
    def _of_waves(self) -> Toeplitz:
        return Toeplitz(self.context, self.summary)

    def sums(self, drawn: Standardized) -> FoldSums:
        """Read the rows for sums without products of features, and as often as a solution takes."""
        context = self.context
        first = self._of_waves if context.options.sums_waves else self
        with blas_threads(1):  # the shift of features is part of the result
            feature_map = unwhitened(drawn)
            empty = self.empty(feature_map)
        found = first.read(empty, feature_map, keep=False)
        sums, intercept = found.folds, context.options.fit_intercept
        penalty: Any = context.penalty
        passes, read = list[PassResult[Any]](), partial(context.read, group=context.merge_group_of)

        def of_leading(leading: FeatureMap) -> Any:
            empty = Direct(context, self.summary).empty(leading)
            passes.append(read(FoldStatistics(context.fold_rule, empty), "leading", keep=False))
            return passes[-1].statistic

        fewer = _fewer_features(sums, drawn, penalty, of_leading, intercept=intercept)
        with _products(context, read, sums) as products:
            growing = SubspacePasses(products, sums, drawn, intercept=intercept)
            search = SubspaceSearch(growing, penalty)
            folds, choice = search.run()
        gradients = search.facts()
        facts: FitReport = {"iterations": search.n_iterations, "gradients": gradients}
        return FoldSums(
            folds,
            folds.empty.feature_map,
            found.weights,
            [*found.passes, *passes, *products.passes],
            facts,
            replace(choice, fewer=fewer, note=gradients["note"]),
        )


def _fewer_features(
    sums: FoldStatistics,
    feature_map: FeatureMap,
    penalty: PenaltyOptions,
    read: Callable[[FeatureMap], FoldStatistics],
    *,
    intercept: bool,
) -> tuple[Size, ...]:
    """Return what leading features of a map come to, each number with a penalty of its own.

    They have the folds of the fit.  Sums of waves tell their moments, of other maps `read` returns
    those of the most.  Without folds, or smaller maps in the map, there are none.
    """
    D = feature_map.n_components
    most = min(D // _PART, _MOST_LEADING)
    sizes = [size for size in nested_sizes(D, feature_map.nesting) if size <= most]
    if not (sizes and penalty.needs_folds):
        return ()
    if isinstance(sums.empty, ToeplitzMoments):
        found = {fold: part.leading(sizes[-1]) for fold, part in sums.parts.items()}
    else:
        parts = read(gram_map(feature_map.first(sizes[-1]))).parts
        with blas_threads(1):
            found = {fold: part.solvable() for fold, part in parts.items()}
    tried = solve_sizes(
        scatter(FoldStatistics.of(sums.rule, found)), penalty, intercept=intercept, sizes=sizes
    )
    return tuple(replace(size, total=None, basis=None) for size in tried)


@contextmanager
def _products(
    rows: FitContext, read: Any, sums: FoldStatistics
) -> Iterator[GramPasses | GramTransforms]:
    """Hold what multiplies vectors with the Gram matrices of folds."""
    if isinstance(sums.empty, ToeplitzMoments):
        yield GramTransforms(sums, usable_cores(), intercept=rows.options.fit_intercept)
        return
    with FeatureStores(rows.plan.stored_bytes) as stores:
        yield GramPasses(read, sums, stores)
