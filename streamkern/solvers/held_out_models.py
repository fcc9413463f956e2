"""Models without a fold, and sparse ones, solved for where the moments are.

    folds --+-- total without fold k --> supports --> solution, errors on fold k --.
            +-- ...                                                              --+--> curve --> K
            +-- total --> support --> solution

Features for a fold are chosen without it, so the held-out error counts what choosing costs, too.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.engine.scheduler import compute, compute_all, delayed, persist
from streamkern.parameters.penalty_options import SparseOptions
from streamkern.solve import NormalEquations, RidgeSolution, solve_each
from streamkern.solve.cross_validation import HeldOut, squared_errors
from streamkern.solve.sparse_selection import (
    Sparsifier,
    SparsityCurve,
    checked_size,
    sparse_errors,
    sparse_sizes,
)
from streamkern.solvers.fold_solution import Solved
from streamkern.solvers.penalty_search import Size, splits
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
    few: tuple[int, Sparsifier] | None = None,
) -> dict[int, Any]:
    """Leave out every fold in turn, and solve for what is left of the moments."""
    total, without = _total_and_splits(folds, n_components)
    return {
        k: persist(delayed(_left_out, total, split, alpha, intercept, few, name=f"without-{k}"))
        for k, split in without.items()
    }


def _total_and_splits(folds: Any, n_components: int) -> tuple[Any, dict[int, Any]]:
    numbers: list[int] = compute(delayed(FoldStatistics.tests, folds, name="folds"))
    total = persist(delayed(FoldStatistics.total, folds, n_components, name="total"))
    return total, splits(folds, numbers, n_components)


def _left_out(
    total: FeatureSums,
    split: Split,
    alpha: float | Floats,
    intercept: bool,
    few: tuple[int, Sparsifier] | None,
) -> LeftOut:
    rest, held, support = split.training(total), split.held_out.centred(), None
    if few is None:
        training = rest.centred(intercept=intercept)
        solution = solve_each(training, alpha)
        equations = NormalEquations.of(training, solution)
    else:
        support, solution, equations = _solved_on(rest, *few, intercept)
        held = held.subset(support)
    return LeftOut(solution, equations, support, squared_errors(held, solution))


def _solved_on(
    total: FeatureSums, K: int, sparsifier: Sparsifier, intercept: bool
) -> tuple[Array, RidgeSolution, NormalEquations]:
    moments = total.centred(intercept=intercept)
    (support,) = sparsifier.supports(moments, [K])
    return support, *sparsifier.solve(moments, support)


def solve_sparse(folds: Any, solved: Solved, options: SparseOptions, *, intercept: bool) -> Solved:
    """Keep the best features of a solution, and solve again on them, at its penalty.

    Where there are folds, the cross-validated error is found for K features; or for 1, 2, 3, 4, 6,
    8, 11 and so on, of which the fewest within one standard error of the best are taken.  If
    none are, the solution stays as it is.
    """
    D = len(solved.solution.coef)
    sizes = sparse_sizes(D) if options.is_chosen else [checked_size(options.n_components, D)]
    sparsifier = Sparsifier(options.method, solved.solution.alpha, solved.solution.floor)
    total, without = _total_and_splits(folds, D)
    curve = None
    if solved.size is not None and solved.size.curve.fold_scores is not None:
        arguments = [size for size in sizes if size < D], sparsifier, intercept
        held_out = [
            delayed(sparse_errors, total, split, *arguments, name=f"sparse-{k}")
            for k, split in without.items()
        ]
        curve = _curve(sizes, compute_all(held_out), solved.size)
    K = sizes[0] if curve is None else sizes[curve.choose()]
    if K < D:
        chosen = delayed(_solved_on, total, K, sparsifier, intercept, name="solve-sparse")
        support, solution, equations = compute(chosen)
        solved = replace(solved, solution=solution, equations=equations, support=support)
    return replace(solved, sparsity=curve)


def _curve(sizes: Sequence[int], held_out: Sequence[HeldOut], full: Size) -> SparsityCurve:
    """Return the curve, with the errors that all features make, where they are among the sizes."""
    scores, q = full.curve.fold_scores, full.curve.scores.shape[1]
    if scores is not None and full.n_components in sizes:
        held_out = [
            HeldOut(fold.weight, np.vstack([fold.sse, fold.weight * errors]))
            for fold, errors in zip(held_out, scores[:, full.chosen, np.arange(q)], strict=True)
        ]
    return SparsityCurve.of_folds(sizes, held_out, full.curve.scale)
