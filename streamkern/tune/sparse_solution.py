"""From the solution on all features to one on few: chosen where the moments are, fold by fold.

    folds --+-- total without fold k --> supports --> errors on fold k --.
            +-- ...                                                     --+--> curve --> K
            +-- total --> support --> solution

What is chosen for a fold has not seen the fold, so that the error left out counts what choosing
costs, too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.engine.scheduler import is_task, kept, run, run_all, shared, task
from streamkern.solve.cross_validation import HeldOut
from streamkern.solve.sparse_selection import Sparsifier, checked_size
from streamkern.solve.sparsity_curve import SparsityCurve, sparse_errors, sparse_sizes
from streamkern.tune.fold_solution import folds_with_rows, part_of, total_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern._typing import Array
    from streamkern.parameters.choices import SparseOptions
    from streamkern.solve import NormalEquations, RidgeSolution
    from streamkern.statistics import Moments
    from streamkern.tune.fold_solution import Size, Solved


def solve_sparse(folds: Any, solved: Solved, options: SparseOptions, *, intercept: bool) -> Solved:
    """Keep the best features of a solution, and solve again on them, at its penalty.

    Where there are folds, the error left out is found for K features; or for 1, 2, 3, 4, 6, 8, 11
    and so on, of which the fewest are taken that are within one standard error of the best.  If
    none are, the solution stays as it is.
    """
    D = len(solved.solution.coef)
    sizes = sparse_sizes(D) if options.is_chosen else [checked_size(options.n_components, D)]
    sparsifier = Sparsifier(options.method, solved.solution.alpha, solved.solution.floor)
    folds = folds if is_task(folds) else shared(folds)
    total = kept(task(total_of, folds, D, name="total"))
    curve = None
    if solved.size is not None and solved.size.curve.fold_scores is not None:
        numbers: list[int] = run(task(folds_with_rows, folds, name="folds"))
        parts = [task(part_of, folds, k, D, name=f"part-{k}") for k in numbers]
        arguments = [size for size in sizes if size < D], sparsifier, intercept
        held_out = [
            task(sparse_errors, total, part, *arguments, name=f"sparse-{k}")
            for k, part in zip(numbers, parts, strict=True)
        ]
        curve = _curve(sizes, run_all(held_out), solved.size)
    K = sizes[0] if curve is None else sizes[curve.choose()]
    if K < D:
        chosen = task(_solved_on, total, K, sparsifier, intercept, name="solve-sparse")
        support, solution, equations = run(chosen)
        solved = replace(solved, solution=solution, equations=equations, support=support)
    return replace(solved, sparsity=curve)


def _curve(sizes: Sequence[int], held_out: Sequence[HeldOut], full: Size) -> SparsityCurve:
    """Return the curve, with the errors that all features make, where they are among the sizes."""
    scores, q = full.curve.fold_scores, full.curve.scores.shape[1]
    if scores is not None and full.n_components in sizes:
        whole = scores[:, full.chosen, np.arange(q)]
        held_out = [
            HeldOut(fold.weight, np.vstack([fold.sse, fold.weight * errors]), fold.n_rows)
            for fold, errors in zip(held_out, whole, strict=True)
        ]
    return SparsityCurve.of_folds(sizes, held_out, full.curve.scale)


def _solved_on(
    total: Moments, K: int, sparsifier: Sparsifier, intercept: bool
) -> tuple[Array, RidgeSolution, NormalEquations]:
    moments = total.centred(intercept=intercept)
    (support,) = sparsifier.supports(moments, [K])
    return support, *sparsifier.solve(moments, support)
