"""The memory of a fit that holds the D x D system, before anything is read."""

from dataclasses import dataclass
from typing import Any, ClassVar

from streamkern._typing import Source
from streamkern.features.nystroem import drawing_bytes
from streamkern.parameters.chunking import Chunks, chunk_sizes
from streamkern.parameters.cost_estimate import fit_flops
from streamkern.parameters.fit_options import SAMPLE_ROWS
from streamkern.runtime.memory import thread_bytes
from streamkern.solve import decomposition_bytes, inverting_bytes
from streamkern.solve.penalty_errors import PenaltyErrors
from streamkern.statistics import Triangle

# What waits in a process to be merged, at most: partials of finished shards, totals of all rows so
# far, one made of the other, and of so many shards totals of groups, which are of a fold or two.
_PARTIALS, _TOTALS, _GROUPS, _MANY_SHARDS = 6, 2, 3, 15
WAITING = _PARTIALS + _TOTALS + _GROUPS
# Square matrices that are held while a fold is scored.
_SQUARES_A_FOLD = 6
# Matrices of D x q then, and while the whole is solved; and those of a model with its predictor.
_CROSSES_A_FOLD, _CROSSES, _MODEL_COPIES = 7, 5, 3
# Rows that intervals are from at the most, and copies of their targets and what is made of these.
_INTERVAL_ROWS, _INTERVAL_COPIES = 4096, 12
# Squares of D that a map of landmarks holds, and what turns the sums of a fold.
_SQUARES_OF_LANDMARKS, _SQUARES_TURNING = 3, 4
# Interpreter, libraries and Dask's own needs in one process, as measured with some room.
PROCESS_BYTES = 256 << 20
# scikit-learn, which k-means for landmarks loads, and what that loads, as measured.
_KMEANS_BYTES = 160 << 20
# A hash and a place of every row, where rows are to be known again.
_INDEX_BYTES = 16
# Copies of the index: in a process that merges it, and where it is put in order.
_INDEX_MERGED, _INDEX_ORDERED = 3, 5
# The values of a column by row, where folds follow from it: numbers of values, merged.
_LISTING_BYTES = 16
# Rows that features are made for at a time where they are many, with some room.
_SLICE = 80
# Strips are spread over workers as evenly as whole strips go, and shards by who is free.
_UNEVEN = 1.25


@dataclass(frozen=True)
class Footprint:
    """The bytes of a fit, by who holds them and when."""

    source: Source
    n_components: int
    itemsize: int  # of features and products
    n_shards: int
    shard_rows: int
    block_rows: int
    n_folds: int  # 1 for no cross-validation
    folds_at_once: int  # that the rows of one shard can be in
    width: int  # numbers of a row as they are projected: p, or fewer of sparse rows
    n_loo_penalties: int = 0  # that the leave-one-out pass tries; 0 if there is no such pass
    fixed_alpha: bool = False  # no penalty to choose
    n_sample: int = SAMPLE_ROWS
    from_rows: bool = False  # a map of the sample: it holds squares of D, and turns the sums
    indexed: bool = False  # rows are to be known again
    precision: str = "single"
    n_maps: int = 1  # more where others weigh the rows
    n_terms: int = 0  # of a trend beside waves
    is_listed: bool = False  # which fold every row is in, a byte each

    cross_bytes: ClassVar[int] = 16  # of a feature and a target
    library_bytes: ClassVar[int] = 0  # of a library that such sums load alone
    plan_class: ClassVar[Any] = None  # where that is one of its own

    @classmethod
    def chunks(cls, source: Source, n_components: int, itemsize: int, n_folds: int) -> Chunks:  # noqa: ARG003
        """Return how rows are cut up."""
        return Chunks.of(source, *chunk_sizes(source, itemsize * n_components))

    @classmethod
    def n_dealt(cls, chunks: Chunks, source: Source, feature_bytes: int) -> int:  # noqa: ARG003
        """Return the number of shards to count on where these may be dealt to folds whole."""
        return len(chunks.shards)

    @property
    def flops(self) -> float:
        """The multiply-adds of the main pass and the solution."""
        # One more target costs as much as one more input; in the leave-one-out pass it costs that
        # once for each penalty.
        n, q, D = self.source.n_samples, self.source.n_targets, self.n_components
        flops = fit_flops(n, self.width + q - 1, D, self.n_folds)
        if self.n_loo_penalties:
            flops += fit_flops(n, self.width + self.n_loo_penalties * q, D, 1)
        return flops

    def pass_flops(self, n_shards: int) -> float:  # noqa: ARG002  but of own sums
        """Return the multiply-adds that take as long as the main pass."""
        return self.flops

    @property
    def left_out_rows(self) -> int:
        """The rows of a block in a pass that leaves out every row in turn."""
        return chunk_sizes(self.source, 2 * self.itemsize * self.n_components)[1]

    @property
    def index(self) -> int:
        """The hashes and places of the rows."""
        return _INDEX_BYTES * self.source.n_samples if self.indexed else 0

    @property
    def reading(self) -> int:
        """What reading a shard holds besides its blocks."""
        source = self.source
        return self._whole(self.shard_rows) if source.loads_whole_shards else source.chunk_bytes

    def _whole(self, n_rows: int) -> int:
        """Return what so many rows take, with their targets and weights."""
        source = self.source
        beside = source.n_targets + (source.weighted_by is not None)
        return n_rows * (source.row_bytes + 8 * beside)

    @property
    def kmeans(self) -> int:
        """What k-means for landmarks loads."""
        return _KMEANS_BYTES if self.from_rows else 0

    @property
    def libraries(self) -> int:
        """What libraries take, in a process that accumulates, that other fits do without."""
        # k-means runs where the model is received; workers run it in small trials alone, but any
        # worker may keep what one has loaded.
        return self.library_bytes + self.kmeans

    def carried(self, n_workers: int) -> int:
        """Return the rows that come to each of so many workers with tasks, none of files.

        Dask keeps what came with a task until those are done that need its result, and merges of
        shards need each other to the end of the pass.
        """
        source, rows = self.source, self.source.n_samples
        if not (n_workers and source.comes_with_tasks):
            return 0
        if n_workers > 1:
            rows = min(rows, int(_UNEVEN * rows / n_workers) + 2 * self.shard_rows)
        return self._whole(rows)

    @property
    def sample(self) -> int:
        """The spread sample, with what merging it takes."""
        source, rows = self.source, min(self.n_sample, self.source.n_samples)
        return 4 * rows * (8 * source.n_features + 8 * source.n_targets + 24)

    @property
    def intervals(self) -> int:
        """Rows of the sample as they are, predicted and left out, for every target."""
        rows = min(self.n_sample, self.source.n_samples, _INTERVAL_ROWS)
        return _INTERVAL_COPIES * 8 * rows * self.source.n_targets

    @property
    def map(self) -> int:
        """The frequencies or landmarks, as drawn and in the precision of the features."""
        D, p = self.n_components, self.source.n_features
        return self.n_maps * (16 * D * p + 8 * self.squares_of_map * D**2)

    @property
    def squares_of_map(self) -> int:
        """The squares of D that the map holds."""
        return _SQUARES_OF_LANDMARKS if self.from_rows else 0

    def sums(self, n_strips: int = 1) -> int:
        """Return the sums of one fold, of the largest strip of the triangle."""
        D, q = self.n_components, self.source.n_targets
        largest = max(Triangle.size(stop, first) for first, stop in Triangle.strips(D, n_strips))
        return 8 * largest + self.cross_bytes * D * (q + 1)

    @property
    def features(self) -> int:
        """The features of a block."""
        return self.block_rows * self.itemsize * self.n_components

    @property
    def blocks(self) -> int:
        """What a task holds of the rows that it works on."""
        source, D = self.source, self.n_components
        q, row_bytes = source.n_targets, source.row_bytes
        weighted = source.weighted_by is not None
        return (
            # Two blocks of rows, one in use and one being read, and the features of one.
            self.features
            + self.block_rows * (8 * self.width + 24 * (q + 1))
            # The next shard is begun before this one is done.
            + 2 * (self.block_rows * 2 * (row_bytes + 8 * (q + weighted)) + self.reading)
            # Roots of the weights, and a block without the rows that do not count.
            + (self.block_rows * (row_bytes + 8 * (q + 2)) if weighted else 0)
            # Rows in cache, and chunks in the reader; of so many features too few rows to fit.
            + max(16 << 20, _SLICE * self.itemsize * D)
        )

    def accumulating(self, threads: int, n_strips: int, n_workers: int) -> int:
        """Return what a process holds that accumulates so many shards at a time."""
        D, p, sums = self.n_components, self.source.n_features, self.sums(n_strips)
        task = (
            self.folds_at_once * sums
            + self.itemsize * D * p  # the frequencies
            + self.itemsize * (Triangle.product_size(D) + 2 * D * (self.source.n_targets + 1))
            + self.blocks
        )
        done = 0
        if n_strips > 1:
            share = _UNEVEN / n_workers if n_workers > 1 else 1.0
            done = int(share * self.sums()) + sums
        held = (
            threads * task
            + self.waiting(n_strips)
            + done
            + self.sample
            + _INDEX_MERGED * self.index
        )
        return PROCESS_BYTES + self.map + held

    def waiting(self, n_strips: int = 1) -> int:
        """Return the sums that wait to be merged: fewer of few shards."""
        parts, K = self.n_shards * n_strips, self.n_folds
        n_sums = min(_PARTIALS, parts) * self.folds_at_once + min(_TOTALS, parts - 1) * K
        if parts >= _MANY_SHARDS:
            n_sums += _GROUPS * min(2 * self.folds_at_once, K)
        return n_sums * self.sums(n_strips)

    def saving(self, n_groups: int, n_strips: int) -> int:
        """Return what a checkpoint takes on the disk: a total, the next, and groups before it."""
        groups = (2 * self.n_folds + n_groups * self.folds_at_once) * self.sums(n_strips)
        groups += (self.n_maps - 1) * self.n_folds * self.sums(n_strips)  # of all rounds
        return groups + (n_strips - 1) * self.sums(n_strips) + 3 * (self.sample // 4 + self.index)

    def solving(self, threads: int) -> int:
        """Return what a process holds that solves, and scores so many folds at a time."""
        D = self.n_components
        held = (self.n_folds + 1) * self.sums()
        held += solve_bytes(D, self.source.n_targets, self.n_folds, threads)
        if self.fixed_alpha:
            # The sums, a factor, its diagonal blocks and parts of its inverse, and the model's G.
            held = 2 * self.sums() + inverting_bytes(D) + self.itemsize * Triangle.size(D)
        if self.from_rows:  # sums as they were and turned, and what turns them
            held += self.n_folds * self.sums() + 8 * _SQUARES_TURNING * D**2 * threads
        return PROCESS_BYTES + self.map + held + (16 << 20)

    def leaving_out(self, threads: int) -> int:
        """Return what a process holds that leaves out every row in turn, 0 without such a pass."""
        D, q, A = self.n_components, self.source.n_targets, self.n_loo_penalties
        if not A:
            return 0
        # The moments, their eigenbasis, and that as the models have it.
        held = 2 * self.sums() + 8 * D * (D + q) + self.itemsize * D * (D + A + q)
        task = (
            self.left_out_rows * (2 * self.itemsize * D + 24 * A + 24 * q)
            + 2 * (self.left_out_rows * 2 * (self.source.row_bytes + 8 * q) + self.reading)
            + PenaltyErrors.working_bytes(D, self.itemsize)
            + (16 << 20)
        )
        return PROCESS_BYTES + self.map + held + threads * task + 8 * (WAITING + threads) * A * q

    def process(self, threads: int, n_strips: int, n_workers: int) -> int:
        """Return the most that a process holds at a time, with the stacks of its threads."""
        held = self.libraries + max(
            self.accumulating(threads, n_strips, n_workers),
            self.solving(threads),
            self.leaving_out(threads),
        )
        if not n_workers:
            held = max(held, self.library_bytes + self.receiving())
        return held + (threads + 1) * thread_bytes() + self.is_listed * self.source.n_samples

    def receiving(self, beside: int = 0) -> int:
        """Return what the process holds that planned, with the model or the moments.

        `beside` these is what a solver holds there.
        """
        D, n_sums = self.n_components, self.n_folds + 1 if self.indexed else 1
        held = beside + n_sums * self.sums() + self.sample + _INDEX_ORDERED * self.index
        held += _LISTING_BYTES * self.is_listed * self.source.n_samples
        model = _MODEL_COPIES * 8 * D * self.source.n_targets + self.intervals
        drawing = drawing_bytes(D) if self.from_rows else 0
        return PROCESS_BYTES + self.kmeans + self.map + max(held + model, drawing + self.sample)


def solve_bytes(n_components: int, n_targets: int, n_folds: int, n_threads: int) -> int:
    """Return what solving takes in a process that holds the moments already."""
    D, columns = n_components, 8 * n_components * n_targets
    # A fold: its own matrix, the one without it, and a decomposition of that.
    a_fold = 8 * Triangle.size(D) + 8 * _SQUARES_A_FOLD * D**2 + _CROSSES_A_FOLD * columns
    held = decomposition_bytes(D) + _CROSSES * columns
    return held + (min(n_folds, n_threads) * a_fold if n_folds > 1 else 0)
