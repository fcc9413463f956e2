"""Moments of folds, where they are: which there are, one of them, and their total."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

from streamkern.engine.scheduler import task
from streamkern.statistics import ByFold, FeatureSums


def folds_with_rows(folds: ByFold) -> list[int]:
    return sorted(folds.parts)


def total_of(folds: ByFold, n_components: int | None) -> FeatureSums:
    """Return the moments of all folds together, of all or of the leading features."""
    parts = (part_of(folds, k, n_components) for k in folds_with_rows(folds))
    return reduce(FeatureSums.merge, parts)


def part_of(folds: ByFold, fold: int, n_components: int | None) -> FeatureSums:
    moments = folds.parts[fold]
    return moments if n_components is None else moments.leading(n_components)


def fold_parts(folds: Any, numbers: Sequence[int], n_components: int | None) -> dict[int, Any]:
    return {k: task(part_of, folds, k, n_components, name=f"part-{k}") for k in numbers}
