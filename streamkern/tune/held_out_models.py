"""Models that have not seen a fold, solved for from the moments of the others.

    folds --+-- total --+-- without fold 0 --> solution, normal equations
            +-- ...     +-- ...

They predict the rows of their fold as new rows would be predicted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from streamkern.engine.scheduler import kept, run, task
from streamkern.solve import NormalEquations, RidgeSolution, solve_each
from streamkern.solve.cross_validation import squared_errors
from streamkern.tune.fold_solution import folds_with_rows, part_of, total_of

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats
    from streamkern.solve.sparse_selection import Sparsifier
    from streamkern.statistics import Moments


class LeftOut(NamedTuple):
    """A model without a fold.

    Parameters
    ----------
    solution : RidgeSolution
    equations : NormalEquations
    support : ndarray of shape (K,), int, optional
        The features that a sparse model is on, chosen without the fold.
    errors : ndarray of shape (q,)
        The sum of squared errors on the fold, as its moments tell it.
    """

    solution: RidgeSolution
    equations: NormalEquations
    support: Array | None
    errors: Floats


def solve_without(
    folds: Any,
    alpha: float | Floats,
    *,
    n_components: int,
    intercept: bool,
    few: tuple[int, Sparsifier] | None = None,
) -> dict[int, Any]:
    """Leave out every fold in turn, and solve for what is left of the moments."""
    numbers: list[int] = run(task(folds_with_rows, folds, name="folds"))
    total = kept(task(total_of, folds, n_components, name="total"))
    parts = {k: task(part_of, folds, k, n_components, name=f"part-{k}") for k in numbers}
    return {
        k: kept(task(_left_out, total, part, alpha, intercept, few, name=f"without-{k}"))
        for k, part in parts.items()
    }


def _left_out(
    total: Moments,
    part: Moments,
    alpha: float | Floats,
    intercept: bool,
    few: tuple[int, Sparsifier] | None,
) -> LeftOut:
    training, held, support = total.without(part).centred(intercept=intercept), part.centred(), None
    if few is None:
        solution = solve_each(training, alpha)
        equations = NormalEquations.of(training, solution)
    else:
        n_kept, sparsifier = few
        (support,) = sparsifier.supports(training, [n_kept])
        solution, equations = sparsifier.solve(training, support)
        held = held.subset(support)
    return LeftOut(solution, equations, support, squared_errors(held, solution))
