"""The plan of a job that conjugate gradients solve, without a D x D system."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from streamkern.extensions.gradients.preconditioner import largest_sketch, sketch_at_once
from streamkern.parameters.cost_estimate import AT_LANDMARKS, rough_flops_per_second
from streamkern.parameters.plan import Plan
from streamkern.statistics import dtype_of_features

# Passes of conjugate gradients, vectors that they multiply in all besides those of the sketch, of
# one target and of one more, and penalties whose systems they do at a time; and the operations of a
# feature in those of a product.
_PASSES, _VECTORS, _PENALTIES, _FEATURE = 30, (600, 100), 3, 16
# As measured: how many times as long products with few vectors take, which are as fast as memory,
# and the squares of all vectors that are multiplied between the passes.
_NARROW, _BETWEEN = 5, 20


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
        return likely_vectors(self.n_components, self.n_rows, self.n_targets)

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
        flops = float(self.n_components) * (
            _BETWEEN * self._vectors**2 + self.own_solver.a_product * self._vectors
        )
        return self.seconds + flops / rough_flops_per_second("double")


def vectors_at_once(n_systems: int, n_targets: int) -> int:
    """Return the most vectors that conjugate gradients multiply in one pass."""
    return _PENALTIES * n_systems * n_targets


def most_vectors(n_components: int, n_targets: int) -> int:
    """Return the most vectors that conjugate gradients may add to their subspace."""
    first, more = _VECTORS
    return min(first + more * (n_targets - 1), n_components)


def likely_vectors(n_components: int, n_rows: int, n_targets: int) -> int:
    """Return the vectors to count on: of a sketch by two passes at the most, and of iterations."""
    a_pass, most = sketch_at_once(n_components, n_rows), largest_sketch(n_components, n_rows)
    return min(2 * a_pass, most) + most_vectors(n_components, n_targets)


def gradient_flops(n_rows: int, n_features: int, n_components: int, n_targets: int) -> float:
    """Return the multiply-adds of conjugate gradients, a guess before their number is known."""
    D, vectors = n_components, likely_vectors(n_components, n_rows, n_targets)
    return float(n_rows) * D * (_PASSES * (n_features + _FEATURE) + 2.0 * vectors)
