"""The work of a fit, in multiply-adds and seconds, before anything is read.

What it takes on a cluster, part by part, is derived in `docs/explanation/scale.md`, where the
constants are measured.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

# What a D x D system at landmarks takes of any by the formula, since its sums are turned.
AT_LANDMARKS = 1.8
# A careful guess of one core's speed, for choosing only.
_FLOPS_PER_SECOND = {"single": 60e9, "double": 30e9, "int8": 60e9, "int16": 30e9}


def rough_flops_per_second(precision: str) -> float:
    """Return a careful guess of the multiply-adds that one core does."""
    return _FLOPS_PER_SECOND[precision]


def fit_flops(n_rows: int, n_features: int, n_components: int, n_folds: int) -> float:
    """Return the multiply-adds of products, and of solving K folds (1 for none) of many rows."""
    return _product_flops(n_rows, n_features, n_components) + solve_flops(n_components, n_folds)


def fit_seconds(  # noqa: PLR0917  sizes and then how
    n_rows: int, n_features: int, n_components: int, n_folds: int, precision: str, n_slots: int
) -> float:
    """Return a careful guess of what a fit takes on so many slots, of which one solves."""
    products = _product_flops(n_rows, n_features, n_components)
    solving = solve_flops(n_components, n_folds)
    if n_folds > 1:  # few rows have few directions, which are found first
        D, n = float(n_components), float(n_rows)
        solving = min(solving, (1 + n_folds) * (3.0 * D**2 * n + 5.0 * n**3))
    return (products / n_slots + solving) / rough_flops_per_second(precision)


def _product_flops(n_rows: int, n_features: int, n_components: int) -> float:
    return float(n_rows) * n_components * (n_features + n_components)


def solve_flops(n_components: int, n_folds: int) -> float:
    """Return the multiply-adds of one factorisation, or of K folds and the whole decomposed."""
    cube = float(n_components) ** 3
    return cube / 3 if n_folds == 1 else (1 + n_folds) * 5.0 * cube


if TYPE_CHECKING:
    from streamkern.parameters.plan import Plan

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
