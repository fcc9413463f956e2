"""The fourth call of a fit: from the sums of folds to every penalty's error, and a solution."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkern.choice.small_fit import blocks
from streamkern.engine.scheduler import scatter
from streamkern.models.data_moments import DataMoments
from streamkern.parameters.parameters import Parameters
from streamkern.registry import extension
from streamkern.solvers.fold_solution import Solved, nested_sizes, solve_folds
from streamkern.solvers.leave_one_out import LeaveOneOutPass
from streamkern.sources import Source


@dataclass(frozen=True)
class RidgePath:
    """What was tried, and what was solved for."""

    given: DataMoments
    moments: DataMoments  # the same, of the map whose features are solved for
    leading: int | None  # features of it that were asked for
    folds: Any  # their sums, as an argument of tasks
    solved: Solved
    n_components: int  # leading features, of which a sparse solution has some
    leave_one_out: LeaveOneOutPass | None
    seconds: float


def ridge_path(
    given: DataMoments,
    parameters: Parameters,
    source: Source | None = None,
    *,
    size: int | None = None,
) -> RidgePath:
    """Choose the penalty, the number of features and which of them, and solve.

    Only errors of every row without itself, of `alpha` 'loo', need the rows of a source.
    """
    begun, moments = time.perf_counter(), given.solvable()
    feature_map, options = moments.feature_map, moments.options
    D, folds = feature_map.n_components, scatter(moments.folds)
    automatic = parameters.n_components == "auto" and not options.is_identity
    sizes = nested_sizes(D, feature_map.nesting) if automatic else [size or D]
    parameters.check_sparse(sizes[-1])
    leaving = None
    if source is not None:
        leaving = LeaveOneOutPass(source, feature_map, options, moments.n_threads)
    # Where rows crowd, folds guard the penalty.
    penalty = parameters.penalty
    penalty = penalty.guarded() if moments.crowds else penalty
    completion, sample, rows = moments.completion, moments.sample, None
    uses_rows = penalty.is_guarded and not moments.is_reweighted
    if uses_rows and sample is not None and len(sample.X) == moments.n_rows:
        rows = [*blocks(sample.X, sample.y, sample.counts, np.arange(len(sample.X)))]
    # Features of a sparse solution are no combinations, as those of fewer landmarks are.
    with_landmarks = penalty.is_guarded or parameters.sparse is None
    solved = solve_folds(
        folds,
        penalty if completion is None else completion.penalty,
        intercept=parameters.fit_intercept,
        sizes=sizes,
        leave_one_out=leaving,
        landmarks=moments.landmarks if with_landmarks else None,
        rows=rows,
    )
    solved = solved if completion is None else completion.completed(solved)
    n_components = len(solved.solution.coef)
    if parameters.sparse is not None:
        solved = extension("sparse", "selection").solve_sparse(folds, solved, parameters)
    seconds = time.perf_counter() - begun
    return RidgePath(given, moments, size, folds, solved, n_components, leaving, seconds)
