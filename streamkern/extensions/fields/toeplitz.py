"""The D x D system of waves on a lattice, whose products follow from few sums of waves.

Here is what these take, in time and memory, and how rows are cut up for them.
"""

from streamkern._typing import Source
from streamkern.extensions.fields.toeplitz_moments import (
    MOST_ROWS,
    MOST_TARGETS,
    ToeplitzMoments,
    is_summed_by_waves,
    rows_at_once,
)
from streamkern.features import LEVELS, FeatureMap, Standardized
from streamkern.parameters import chunking
from streamkern.parameters.footprint import Footprint
from streamkern.passes.fit_context import FitContext
from streamkern.solvers.base import Solver
from streamkern.statistics import FeatureSums

# Multiply-adds that take as long as a row's sums of waves, for every factor, and as a transform of
# the lattice or products of a vector by fold, for every feature.
_OF_A_ROW, _OF_A_TRANSFORM = 3000, 40_000
# Few shards and large blocks of waves, since each transforms the whole lattice.  Without folds they
# are as many as take no longer for that than for their rows, but some for the cores.
_SHARDS, _BLOCK_ROWS = (2, 16), 1 << 19
# Sums of waves for every feature, which fill a ball in up to three inputs, and how many times as
# many numbers transforms of rows hold; what a row takes in one, and each of its factors.
_WAVES, _FINER, _TRANSFORMED, _FACTOR = 16, 8, 128, 48


def chunk_sizes(source: Source, n_components: int, n_folds: int, most_rows: int) -> tuple[int, int]:
    """Return the rows of a shard and of a block, of so many at the most."""
    (fewest, most), (few, many) = chunking.SHARD_ROWS, _SHARDS
    # Rows whose sums take as long as a transform of the lattice, or fewer.
    enough = min(_OF_A_TRANSFORM * n_components // _OF_A_ROW, MOST_ROWS)
    n_shards = max(many, chunking.SHARDS_A_FOLD * n_folds)
    if n_folds == 1:
        n_shards = min(max(source.n_samples // enough, few), many)
    shard_rows = min(max(-(-source.n_samples // n_shards), fewest), max(most, enough))
    row_bytes = chunking.TARGET_BYTES * source.n_targets + source.row_bytes
    block_rows = min(chunking.BLOCK_BYTES // row_bytes, most_rows, shard_rows)
    if source.loads_whole_shards:
        shard_rows = min(shard_rows, max(chunking.BLOCK_BYTES // row_bytes, 1))
        block_rows = min(block_rows, shard_rows)
    return -(-shard_rows // block_rows) * block_rows, block_rows


class ToeplitzFootprint(Footprint):
    """The bytes of a D x D system of waves on a lattice, few of whose sums are read."""

    @classmethod
    def chunks(
        cls, source: Source, n_components: int, itemsize: int, n_folds: int
    ) -> chunking.Chunks:
        """Return how rows are cut up: shards are large, since each transforms the lattice."""
        if source.n_targets >= MOST_TARGETS:
            return super().chunks(source, n_components, itemsize, n_folds)
        most_rows = chunking.chunk_sizes(source, itemsize * n_components)[1]
        sizes = chunk_sizes(source, n_components, n_folds, most_rows)
        return chunking.Chunks.of(source, *sizes)


class Toeplitz(Solver):
    """Sums of waves, of which products of features are made when they are asked for."""

    makes_features = False
    footprint = ToeplitzFootprint

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

    # Multiply-adds of a product with a vector, for every feature.
    a_product = _OF_A_TRANSFORM

    @staticmethod
    def chunks(source: Source, n_components: int, n_folds: int) -> chunking.Chunks:
        """Return how rows are cut up: the last shards are not smaller, whose lattice is not."""
        sizes = chunk_sizes(source, n_components, n_folds, _BLOCK_ROWS)
        return chunking.Chunks.of(source, *sizes, even=True)

    @staticmethod
    def flops(n_rows: int, n_components: int, n_targets: int, n_shards: int) -> float:
        """Return multiply-adds that take as long as sums of waves, by shards."""
        n_transforms = 1 + (n_targets + 2) // 2  # two factors of rows in one
        of_rows, of_lattices = _OF_A_ROW * n_rows, _OF_A_TRANSFORM * n_components * n_shards
        return float(n_transforms) * (of_rows + of_lattices)

    @staticmethod
    def sum_bytes(n_components: int, n_factors: int) -> int:
        """Return the bytes of the sums of one fold."""
        return 8 * n_components * (2 * _WAVES + n_factors)

    @staticmethod
    def transform_bytes(n_components: int, n_factors: int, block_rows: int, shard_rows: int) -> int:
        """Return the bytes of transforms of the rows of a shard, which come in blocks."""
        lattice = 16 * _FINER * _WAVES * n_components + _FACTOR * n_components * n_factors
        rows = min(rows_at_once(2 * _WAVES * n_components, n_factors) + block_rows, shard_rows)
        return lattice + rows * (_TRANSFORMED + _FACTOR * n_factors)
