"""The D x D system of waves on a lattice, whose products follow from few sums of waves."""

from streamkern.features import LEVELS, FeatureMap, Standardized
from streamkern.passes.fit_context import FitContext
from streamkern.solvers.base import Solver
from streamkern.statistics import FeatureSums, ToeplitzMoments, is_summed_by_waves


class Toeplitz(Solver):
    """Sums of waves, of which products of features are made when they are asked for."""

    makes_features = False

    @classmethod
    def takes(cls, context: FitContext, feature_map: Standardized) -> bool:
        like = context.like
        if like is not None and like.empty is not None:
            return isinstance(like.empty, ToeplitzMoments)
        is_whole = context.plan.n_strips == 1 and context.options.precision not in LEVELS
        return is_whole and is_summed_by_waves(feature_map, context.source.n_targets)

    def empty(self, feature_map: FeatureMap) -> FeatureSums:
        n_targets, precision = self.context.source.n_targets, self.context.options.precision
        scale = self.summary.target_scale
        return ToeplitzMoments(feature_map, n_targets, precision=precision, **scale)  # type: ignore[arg-type]
