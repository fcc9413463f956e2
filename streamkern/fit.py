"""A fit is five calls, each a file of `fitting/`, on rows that `planned_fit` has planned before.

    rows --> summarize --> draw_features --> sum_features --> ridge_path --> ridge_result
      |____________________________________________|

The rows are read twice: for what their columns hold with a sample, and for the sums; more often
where something is chosen from all rows, or memory holds no D x D system.  Everything after that
uses only the sums (`solve` names the two exceptions).  So one can solve again with another penalty,
or for a part of the rows, without reading them.
`solvers/table.py` picks the solver and `features/families.py` lists the maps; any of them will do.

    before    estimators/feature_estimator.py, estimators/problems.py, fitting/planned_fit.py
    rows      sources/arrays.py or another source, in blocks
    a pass    passes/fit_context.py, engine/reduction.py, engine/shard_task.py
    features  features/standardized.py, kernel_map.py, spectral.py, projection.py, cosines.py
    sums      solvers/base.py, statistics/folds.py, statistics/feature_moments.py
    path      solvers/fold_solution.py, solvers/penalty_search.py, solve/spectrum.py

Sums of a fold are `Moments`, of all folds `FoldStatistics`; `FoldSums` adds their passes, and
`DataMoments` what else a model keeps of the rows.

Rahimi and Recht (2007), "Random features for large-scale kernel machines".
"""

from collections.abc import Callable

from streamkern.fitting.draw_features import Features, draw_features
from streamkern.fitting.ridge_path import ridge_path
from streamkern.fitting.ridge_result import ridge_result, tell_of_solution
from streamkern.fitting.sum_features import sum_features
from streamkern.fitting.summarize import summarize
from streamkern.models.data_moments import DataMoments
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.parameters.parameters import Parameters
from streamkern.passes.checkpoint_job import checkpointed
from streamkern.passes.fit_context import FitContext
from streamkern.sources import Source


def fit(
    context: FitContext, parameters: Parameters, *, with_intervals: bool = False
) -> FittedRidge:
    """Fit a ridge regression on random features to the rows of a context.

    Errors are those of `RandomFeatureRidge.fit`.
    """
    moments = sums_of(context)
    return solve(moments, parameters, context.source, with_intervals=with_intervals)


def sums_of(
    context: FitContext, draw: Callable[..., tuple[FitContext, Features]] = draw_features
) -> DataMoments:
    """Read rows of p inputs and q targets for the sums of D features by fold: D^2 + D q numbers.

    A search draws what it has chosen, otherwise as `draw_features` does.
    """
    with checkpointed(context) as planned:
        known, summary = summarize(planned)
        chosen, features = draw(known, summary)
        return sum_features(chosen, features)


def solve(
    moments: DataMoments,
    parameters: Parameters,
    source: Source | None = None,
    *,
    size: int | None = None,
    with_intervals: bool = False,
) -> FittedRidge:
    """Choose the penalty from the sums of folds, solve for the coefficients, and say how good.

    It uses all features, or the first `size`.  Rows are read again for errors that sums do not
    tell: those of every row without itself, and any near the rounding of sums.
    """
    path = ridge_path(moments, parameters, source, size=size)
    model = ridge_result(path, parameters, source, with_intervals=with_intervals)
    tell_of_solution(model.report)
    return model
