"""What a fit takes on a cluster, part by part, before anything is read.

The formulas are derived in `docs/explanation/scale.md`, where the constants are measured.
"""

import math
from typing import NamedTuple

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


def cluster_time(  # noqa: PLR0917  amounts, and then speeds
    flops: float,
    solve_flops: float,
    read_bytes: float,
    sum_bytes: float,
    n_shards: int,
    n_workers: int,
    n_slots: int,
    flops_per_second: float,
) -> ClusterTime:
    """Return the seconds of a fit on workers with links, and slots of such multiply-adds a second.

    Sums of a shard are `sum_bytes`; `read_bytes` are those of all rows.
    """
    a_merge = sum_bytes / LINK + sum_bytes / ADDING
    a_group = math.isqrt(max(n_shards - 1, 0)) + 1
    # Of the groups that are under way each is a tree, and they go to the whole one by one.
    depth = math.log2(a_group) + min(n_slots, n_shards) / a_group
    return ClusterTime(
        products=flops / (n_slots * flops_per_second),
        reading=read_bytes / (n_workers * LINK),
        merging=n_shards / n_workers * a_merge,
        scheduling=2 * n_shards * A_TASK,
        ending=depth * a_merge,
        solving=solve_flops / flops_per_second,
    )
