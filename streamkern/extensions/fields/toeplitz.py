"""The D x D system of waves on a lattice, whose products follow from few sums of waves."""

from typing import ClassVar

from streamkern._typing import Source
from streamkern.extensions.fields.toeplitz_moments import (
    MOST_TARGETS,
    ToeplitzMoments,
    is_summed_by_waves,
)
from streamkern.extensions.fields.wave_costs import WaveCosts
from streamkern.extensions.fields.wave_costs import chunk_sizes as wave_chunk_sizes
from streamkern.features import LEVELS, FeatureMap, Standardized
from streamkern.parameters.chunking import Chunks, chunk_sizes
from streamkern.parameters.footprint import Footprint
from streamkern.passes.fit_context import FitContext
from streamkern.solvers.base import Solver
from streamkern.statistics import FeatureSums


class ToeplitzFootprint(Footprint):
    """The bytes of a D x D system of waves on a lattice, few of whose sums are read."""

    @classmethod
    def chunks(cls, source: Source, n_components: int, itemsize: int, n_folds: int) -> Chunks:
        """Return how rows are cut up: shards are large, since each transforms the lattice."""
        most_rows = chunk_sizes(source, itemsize * n_components)[1]
        sizes = wave_chunk_sizes(source, n_components, n_folds, most_rows)
        return Chunks.of(source, *sizes)


class Toeplitz(Solver):
    """Sums of waves, of which products of features are made when they are asked for."""

    makes_features = False
    costs: ClassVar = WaveCosts  # without a D x D system

    @classmethod
    def takes(cls, context: FitContext, feature_map: Standardized) -> bool:
        like = context.like
        if like is not None and like.empty is not None:
            return isinstance(like.empty, ToeplitzMoments)
        is_whole = context.plan.n_strips == 1 and context.options.precision not in LEVELS
        return is_whole and is_summed_by_waves(feature_map, context.source.n_targets)

    @classmethod
    def footprint(cls, n_targets: int) -> type[Footprint]:
        """Return what the D x D system takes, of few targets or of many."""
        return ToeplitzFootprint if n_targets < MOST_TARGETS else Footprint

    def empty(self, feature_map: FeatureMap) -> FeatureSums:
        n_targets, precision = self.context.source.n_targets, self.context.options.precision
        scale = self.summary.target_scale
        return ToeplitzMoments(feature_map, n_targets, precision=precision, **scale)  # type: ignore[arg-type]
