"""What a fit takes on a cluster, part by part, before anything is read.

The formulas are derived in `docs/explanation/scale.md`, where the constants are measured.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

from streamkern.parameters.cost_estimate import solve_flops

if TYPE_CHECKING:
    from streamkern.parameters.job_plan import Plan

# Bytes a second between two machines, and of sums that one core adds to others.
LINK, ADDING = 1.25e9, 1.0e9
# Seconds of the scheduler a task.
A_TASK = 2e-3


class ClusterTime(NamedTuple):
    """Seconds of the main pass and the solution; of the first four the longest is waited for."""

    products: float
    reading: float
    merging: float  # beside the products, on the same cores
    scheduling: float  # one process has it all
    ending: float  # merges after the last shard
    solving: float

    @property
    def total(self) -> float:
        working = max(self.products + self.merging, self.reading, self.scheduling)
        return working + self.ending + self.solving


def cluster_time(plan: "Plan", flops_per_second: float) -> ClusterTime:
    """Return what a fit takes on all workers, of cores of so many multiply-adds a second."""
    n_workers, n_slots, n_shards = max(plan.n_workers, 1), plan.n_slots, plan.n_shards
    speed = flops_per_second * plan.blas_threads
    solving = solve_flops(plan.n_components, plan.n_folds)
    a_merge = plan.sum_bytes / LINK + plan.sum_bytes / ADDING
    a_group = math.isqrt(max(n_shards - 1, 0)) + 1
    # Of the groups that are under way each is a tree, and they go to the whole one by one.
    depth = math.log2(a_group) + min(n_slots, n_shards) / a_group
    return ClusterTime(
        products=(plan.flops - solving) / (n_slots * speed),
        reading=plan.n_rows * plan.row_bytes / (n_workers * LINK),
        merging=n_shards / n_workers * a_merge,
        scheduling=2 * n_shards * A_TASK,
        ending=depth * a_merge,
        solving=solving / speed,
    )
