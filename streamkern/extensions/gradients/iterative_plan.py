"""The memory and the time of a fit by conjugate gradients, which hold no D x D system."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from streamkern._typing import Source
from streamkern.extensions.gradients.preconditioner import (
    N_PROBES,
    block_bytes,
    largest_sketch,
    most_leading,
    sketch_at_once,
    sketch_size,
)
from streamkern.parameters.chunking import NARROW_BYTES, Chunks, chunk_sizes
from streamkern.parameters.cost_estimate import AT_LANDMARKS, rough_flops_per_second
from streamkern.parameters.footprint import PROCESS_BYTES, WAITING, Footprint
from streamkern.parameters.plan import Plan
from streamkern.runtime.memory import thread_bytes
from streamkern.statistics import dtype_of_features

# Vectors of the subspace at the most, of one target and of one more, and penalties whose systems
# are solved at a time.
_VECTORS, _PENALTIES = (600, 100), 3
# Passes to count on, and the operations of a feature in those of a product.
_PASSES, _FEATURE = 30, 16
# As measured: how many times as long products with few vectors take, which are as fast as memory,
# and the squares of all vectors that are multiplied between the passes.
_NARROW, _BETWEEN = 5, 20


def vectors_at_once(n_systems: int, n_targets: int) -> int:
    """Return the most vectors that one pass multiplies for the subspace."""
    return _PENALTIES * n_systems * n_targets


def most_vectors(n_components: int, n_targets: int) -> int:
    """Return the most vectors that the subspace may have."""
    first, more = _VECTORS
    return min(first + more * (n_targets - 1), n_components)


def _likely_vectors(n_components: int, n_rows: int, n_targets: int) -> int:
    """Return the vectors to count on: of a sketch by two passes at the most, and the subspace."""
    a_pass, most = sketch_at_once(n_components, n_rows), largest_sketch(n_components, n_rows)
    return min(2 * a_pass, most) + most_vectors(n_components, n_targets)


@dataclass(frozen=True)
class IterativePlan(Plan):
    """A job whose system conjugate gradients solve, by passes over the rows."""

    solves_by_passes: bool = True

    @property
    def stored_bytes(self) -> int:  # type: ignore[override]
        """Features that a process may keep in a file, for passes that need them again.

        No more than a quarter of the memory beside the rest, so that the file stays there: what is
        written to the disk meanwhile takes longer than it saves.
        """
        n_bytes = self.n_rows * self.n_components * dtype_of_features(self.precision).itemsize
        return min(n_bytes, max(self.allowed_bytes - self.worker_bytes, 0) // 4)

    def is_faster(self, direct: Plan, *, from_rows: bool) -> bool:
        """Say whether it takes less time than a D x D system, at landmarks or not.

        That is on one core, so that the answer does not depend on their number.
        """
        alone = replace(self, n_workers=0, n_threads=1, blas_threads=1)
        times = AT_LANDMARKS if from_rows else 1.0
        seconds = times * direct.flops / rough_flops_per_second(direct.precision)
        return alone.total_seconds(from_rows=from_rows) < seconds

    def total_seconds(self, *, from_rows: bool) -> float:
        """Return a careful guess of what the passes take with what lies between them."""
        D, vectors = float(self.n_components), self._vectors
        flops = _BETWEEN * D * vectors**2
        if from_rows:
            flops += D**3 / 3 + D**2 * vectors
        passes = _NARROW * self.flops / rough_flops_per_second(self.precision) / self.n_slots
        return passes + flops / rough_flops_per_second("double")

    @property
    def _vectors(self) -> int:
        return _likely_vectors(self.n_components, self.n_rows, self.n_targets)

    def solving_flops(self, n_cubes: int) -> float:  # noqa: ARG002
        """Return 0: nobody knows how many passes follow."""
        return 0.0


@dataclass(frozen=True)
class SumsPlan(IterativePlan):
    """A job by sums that tell the products of any vectors, in the place of passes."""

    sums_waves: bool = True
    own_solver: Any = None  # which knows what the sums take

    stored_bytes: ClassVar[int] = 0

    def as_dict(self) -> dict[str, Any]:
        return {name: each for name, each in super().as_dict().items() if name != "own_solver"}

    @property
    def fewest_rows(self) -> int:
        """Rows of the last shards, which are as large as others."""
        return self.shard_rows

    @property
    def _pass_flops(self) -> float:
        sizes = self.n_rows, self.n_components, self.n_targets, self.n_shards
        return float(self.own_solver.flops(*sizes))

    def total_seconds(self, *, from_rows: bool) -> float:  # noqa: ARG002
        """Return a careful guess of what the sums take, and products by them."""
        flops = _BETWEEN * self._vectors**2 + self.own_solver.a_product * self._vectors
        return self.seconds + self.n_components * float(flops) / rough_flops_per_second("double")


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
        """The multiply-adds of all passes, a guess before their number is known."""
        vectors = _likely_vectors(*self._shape, self.source.n_targets)
        operations = _PASSES * (self.width + _FEATURE) + 2.0 * vectors
        return float(self.source.n_samples) * self.n_components * operations

    @property
    def _shape(self) -> tuple[int, int]:
        return self.n_components, self.source.n_samples

    def sums(self, n_strips: int = 1) -> int:  # noqa: ARG002  there is no triangle
        """Return the sums of one fold: products with the vectors of the folds and the whole."""
        n_systems = self.n_folds + 1 if self.n_folds > 1 else 1
        n_vectors = vectors_at_once(n_systems, self.source.n_targets)
        return 8 * self.n_components * max(n_vectors, 2 * (self.source.n_targets + 1))

    def process(self, threads: int, n_strips: int, n_workers: int) -> int:  # noqa: ARG002  likewise
        """Return the most that a process holds at a time, with the stacks of its threads."""
        return self.libraries + self.multiplying(threads) + (threads + 1) * thread_bytes()

    def multiplying(self, threads: int) -> int:
        """Return what a process holds that multiplies vectors, of folds or of a sketch."""
        sketch = 8 * self.n_components * sketch_at_once(*self._shape)
        task = max(self.folds_at_once * self.sums(), sketch) + 2 * sketch
        task += self.itemsize * self.n_components + self.blocks
        held = threads * task + max(self.waiting(), WAITING * sketch) + self.sample
        return PROCESS_BYTES + self.map + held

    def saving(self, n_groups: int, n_strips: int) -> int:
        """Return what a checkpoint takes on the disk, with the products of all passes."""
        return super().saving(n_groups, n_strips) + self.products_saved

    @property
    def products_saved(self) -> int:
        D = self.n_components
        by_fold = most_vectors(D, self.source.n_targets) + most_leading(D) + N_PROBES
        return 8 * D * (largest_sketch(*self._shape) + self.n_folds * by_fold)

    @property
    def sketch(self) -> int:
        """The columns of the largest sketch."""
        return largest_sketch(*self._shape)

    def receiving(self, beside: int = 0) -> int:
        """Return what the process holds that planned.

        That is the sketch as it was and is, with copies; what is iterated by fold; and squares of a
        fold and without it, with what decomposes them.
        """
        D, sketch = self.n_components, self.sketch
        vectors = most_vectors(D, self.source.n_targets)
        beside += 56 * D * sketch
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
        task = self.folds_at_once * self.sums() + self.own_solver.transform_bytes(*sizes)
        held = threads * (task + self.blocks) + self.waiting() + self.sample
        return PROCESS_BYTES + self.map + held

    @property
    def sketch(self) -> int:
        return sketch_size(*self._shape)

    def receiving(self, beside: int = 0) -> int:
        """Return what the process holds that planned, with products of all folds."""
        beside += (2 * self.n_folds + 4) * self.sums() + block_bytes(self.n_components)
        return super().receiving(beside)


def footprint_of(own_solver: Any) -> type[Footprint]:
    """Return what gradients need, of a map that has a solver of its own if so."""
    if own_solver is None:
        return IterativeFootprint
    plan_class = staticmethod(partial(SumsPlan, own_solver=own_solver))
    more = {"own_solver": own_solver, "plan_class": plan_class}
    return type("OwnSumsFootprint", (SumsFootprint,), more)
