"""Models without a fold, solved for where the moments are.

Features of a sparse model are chosen for a fold without it, so the held-out error counts what
choosing costs, too.
"""

from typing import Any, NamedTuple

from streamkern._typing import Array, Floats
from streamkern.engine.scheduler import compute, delayed, persist
from streamkern.solve import NormalEquations, RidgeSolution, solve_each
from streamkern.solve.cross_validation import squared_errors
from streamkern.solvers.penalty_search import splits
from streamkern.statistics import FeatureSums, FoldStatistics, Split


class LeftOut(NamedTuple):
    """A model without a fold, on the features that were chosen without it, if it is sparse."""

    solution: RidgeSolution
    equations: NormalEquations
    support: Array | None
    errors: Floats  # the sums of squared errors on the fold, (q,)


def solve_without(
    folds: Any,
    alpha: float | Floats,
    *,
    n_components: int,
    intercept: bool,
    few: tuple[int, Any] | None,
) -> dict[int, Any]:
    """Leave out every fold in turn, and solve for what is left of the moments."""
    total, without = total_and_splits(folds, n_components)
    return {
        k: persist(delayed(_left_out, total, split, alpha, intercept, few, name=f"without-{k}"))
        for k, split in without.items()
    }


def total_and_splits(folds: Any, n_components: int) -> tuple[Any, dict[int, Any]]:
    """Return tasks of the sums over all rows, and of each fold with what predicts it."""
    numbers: list[int] = compute(delayed(FoldStatistics.tests, folds, name="folds"))
    total = persist(delayed(FoldStatistics.total, folds, n_components, name="total"))
    return total, splits(folds, numbers, n_components)


def _left_out(
    total: FeatureSums,
    split: Split,
    alpha: float | Floats,
    intercept: bool,
    few: tuple[int, Any] | None,
) -> LeftOut:
    rest, held, support = split.training(total), split.held_out.centred(), None
    if few is None:
        training = rest.centred(intercept=intercept)
        solution = solve_each(training, alpha)
        equations = NormalEquations.of(training, solution)
    else:
        K, selection = few
        support, solution, equations = selection.chosen(rest.centred(intercept=intercept), K)
        held = held.subset(support)
    return LeftOut(solution, equations, support, squared_errors(held, solution))
