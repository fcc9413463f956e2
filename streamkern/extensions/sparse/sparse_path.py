"""A sparse model of a fit: how many features are kept, and which, by the sums of folds.

folds --+-- total without fold k --> supports --> solution, errors on fold k --.
+-- ...                                                              --+--> curve --> K
+-- total --> support --> solution
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from streamkern._typing import Array
from streamkern.engine.scheduler import compute, compute_all, delayed
from streamkern.extensions.sparse.selection import (
    Sparsifier,
    SparsityCurve,
    checked_size,
    sparse_errors,
    sparse_sizes,
)
from streamkern.parameters.parameters import AUTO, Parameters
from streamkern.solve import NormalEquations, RidgeSolution
from streamkern.solve.cross_validation import HeldOut
from streamkern.solvers.fold_solution import Solved
from streamkern.solvers.held_out_models import total_and_splits
from streamkern.solvers.penalty_search import Size
from streamkern.statistics import FeatureSums


def solve_sparse(folds: Any, solved: Solved, parameters: Parameters) -> Solved:
    """Keep the best features of a solution, and solve again on them, at its penalty.

    Where there are folds, the cross-validated error is found for K features; or for 1, 2, 3, 4, 6,
    8, 11 and so on, of which the fewest within one standard error of the best are taken.  If
    none are, the solution stays as it is.
    """
    D, K, intercept = len(solved.solution.coef), parameters.sparse, parameters.fit_intercept
    sizes = sparse_sizes(D) if K == AUTO else [checked_size(K, D)]
    sparsifier = Sparsifier(parameters.sparse_method, solved.solution.alpha, solved.solution.floor)
    total, without = total_and_splits(folds, D)
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
        chosen = delayed(_chosen, total, K, sparsifier, intercept, name="solve-sparse")
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


def _chosen(
    total: FeatureSums, K: int, sparsifier: Sparsifier, intercept: bool
) -> tuple[Array, RidgeSolution, NormalEquations]:
    return sparsifier.chosen(total.centred(intercept=intercept), K)
