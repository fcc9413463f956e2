"""The memory of a fit by conjugate gradients, which hold no D x D system."""

from functools import partial
from typing import Any, ClassVar

from streamkern._typing import Source
from streamkern.extensions.gradients.iterative_plan import (
    IterativePlan,
    SumsPlan,
    gradient_flops,
    most_vectors,
    vectors_at_once,
)
from streamkern.extensions.gradients.preconditioner import (
    N_PROBES,
    block_bytes,
    largest_sketch,
    most_leading,
    sketch_at_once,
    sketch_size,
)
from streamkern.parameters.chunking import NARROW_BYTES, Chunks, chunk_sizes
from streamkern.parameters.footprint import PROCESS_BYTES, WAITING, Footprint
from streamkern.runtime.memory import thread_bytes


class IterativeFootprint(Footprint):
    """The bytes of products of vectors, by passes over the rows."""

    squares_of_map = 0
    plan_class = IterativePlan

    @classmethod
    def n_dealt(cls, chunks: Chunks, source: Source, feature_bytes: int) -> int:  # noqa: ARG003
        """Return the number of shards that fewer features would have, which are larger."""
        return len(source.shards(*chunk_sizes(source, min(feature_bytes, NARROW_BYTES))))

    @property
    def flops(self) -> float:
        """The multiply-adds of all passes, a guess."""
        source = self.source
        return gradient_flops(source.n_samples, self.width, self.n_components, source.n_targets)

    def sums(self, n_strips: int = 1) -> int:  # noqa: ARG002  there is no triangle
        """Return the sums of one fold: products with the vectors of the folds and the whole."""
        n_systems = self.n_folds + 1 if self.n_folds > 1 else 1
        n_vectors = vectors_at_once(n_systems, self.source.n_targets)
        return 8 * self.n_components * max(n_vectors, 2 * (self.source.n_targets + 1))

    def process(self, threads: int, n_strips: int, n_workers: int) -> int:  # noqa: ARG002  likewise
        """Return the most that a process holds at a time, with the stacks of its threads."""
        return self.multiplying(threads) + (threads + 1) * thread_bytes()

    def multiplying(self, threads: int) -> int:
        """Return what a process holds that multiplies vectors, of folds or of a sketch."""
        D, n = self.n_components, self.source.n_samples
        sketch = 8 * D * sketch_at_once(D, n)
        task = max(self.folds_at_once * self.sums(), sketch) + 2 * sketch + self.itemsize * D
        held = threads * (task + self.blocks) + max(self.waiting, WAITING * sketch) + self.sample
        return PROCESS_BYTES + self.map + held

    @property
    def waiting(self) -> int:
        """Sums of folds, and of shards that wait to be merged into them."""
        return (self.n_folds + (WAITING - 1) * self.folds_at_once) * self.sums()

    def saving(self, n_groups: int, n_strips: int) -> int:
        """Return what a checkpoint takes on the disk, with the products of all passes."""
        return super().saving(n_groups, n_strips) + self.products_saved

    @property
    def products_saved(self) -> int:
        D, n = self.n_components, self.source.n_samples
        by_fold = most_vectors(D, self.source.n_targets) + most_leading(D) + N_PROBES
        return 8 * D * (largest_sketch(D, n) + self.n_folds * by_fold)

    @property
    def sketch(self) -> int:
        """The columns of the largest sketch."""
        return largest_sketch(self.n_components, self.source.n_samples)

    def receiving(self, beside: int = 0) -> int:
        """Return what the process holds that planned.

        That is the sketch as it was and is, with copies; what is iterated by fold; and squares of a
        fold and without it, with what decomposes them.
        """
        D, sketch = self.n_components, self.sketch
        vectors = most_vectors(D, self.source.n_targets)
        beside += (24 + 4 * self.itemsize) * D * sketch
        beside += (8 + self.itemsize * (self.n_folds + 1)) * D * vectors
        beside += 8 * (3 * self.n_folds + 3) * (min(sketch, most_leading(D)) + vectors) ** 2
        beside += 64 * sketch**2  # what decomposes the sketch
        if self.from_rows:  # which have the factor here alone
            beside += 8 * D**2
        return super().receiving(beside)


class SumsFootprint(IterativeFootprint):
    """The bytes of sums that tell the products of any vectors, as of waves on a lattice."""

    features = 0
    products_saved = 0
    own_solver: ClassVar[Any]  # which knows what they take

    @classmethod
    def n_dealt(cls, chunks: Chunks, source: Source, feature_bytes: int) -> int:  # noqa: ARG003
        """Return the number of shards, which are large whatever the features."""
        return len(chunks.shards)

    @classmethod
    def chunks(cls, source: Source, n_components: int, itemsize: int, n_folds: int) -> Chunks:  # noqa: ARG003
        """Return how rows are cut up."""
        found: Chunks = cls.own_solver.chunks(source, n_components, n_folds)
        return found

    def pass_flops(self, n_shards: int) -> float:
        """Return the multiply-adds that take as long as the sums."""
        n, q = self.source.n_samples, self.source.n_targets
        return float(self.own_solver.flops(n, self.n_components, q, n_shards))

    def sums(self, n_strips: int = 1) -> int:  # noqa: ARG002  there is no triangle
        """Return the sums of one fold."""
        return int(self.own_solver.sum_bytes(self.n_components, self._factors))

    @property
    def _factors(self) -> int:
        return self.source.n_targets + 1 + self.n_terms

    def multiplying(self, threads: int) -> int:
        """Return what a process holds that sums."""
        sizes = self.n_components, self._factors, self.block_rows, self.shard_rows
        task = (
            self.folds_at_once * self.sums() + self.own_solver.transform_bytes(*sizes) + self.blocks
        )
        return PROCESS_BYTES + self.map + threads * task + self.waiting + self.sample

    @property
    def sketch(self) -> int:
        return sketch_size(self.n_components, self.source.n_samples, 0)

    def receiving(self, beside: int = 0) -> int:
        """Return what the process holds that planned, with products of all folds."""
        D = self.n_components
        beside += (2 * self.n_folds + 4) * self.sums() + block_bytes(D)
        return super().receiving(beside)


def of(own_solver: Any) -> type[Footprint]:
    """Return what gradients need, of a map that has a solver of its own if so."""
    if own_solver is None:
        return IterativeFootprint
    plan_class = staticmethod(partial(SumsPlan, own_solver=own_solver))
    more = {"own_solver": own_solver, "plan_class": plan_class}
    return type("OwnSumsFootprint", (SumsFootprint,), more)
