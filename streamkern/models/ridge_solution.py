"""From moments to a fitted ridge regression: what is left to choose, the solution, its report."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from streamkern.engine.scheduler import is_task, shared
from streamkern.errors import StreamkernWarning
from streamkern.kernels import length_scale_of
from streamkern.models.fit_report import as_stored, facts_of, sizes_as_dict
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.models.held_out_predictors import unseen
from streamkern.models.solution_passes import LeaveOneOutPass, squared_errors_of
from streamkern.predict.predictor import Predictor
from streamkern.runtime.events import tell_of_job
from streamkern.solve.sparse_selection import Sparsifier
from streamkern.tune.fold_solution import nested_sizes, solve_folds
from streamkern.tune.held_out_models import solve_sparse

if TYPE_CHECKING:
    from streamkern.models.data_moments import DataMoments
    from streamkern.models.held_out_predictors import Unseen
    from streamkern.parameters.parameters import Parameters
    from streamkern.sources import Source


_WEIGHTS_NOTE = (
    "weights are below 1 on average and so do not count rows: standard deviations take them over "
    "their mean."
)
_ROUNDING = 1e-9
# What is told of a solution.
_OF_SOLUTION = ("seconds", "alpha", "alpha_curve", "cv_rmse", "train_rmse")


def solve_moments(
    given: DataMoments,
    parameters: Parameters,
    size: int | None = None,
    *,
    source: Source | None = None,
    keep_moments: bool = False,
) -> FittedRidge:
    """Choose the penalty, the number of features and which of them, and solve."""
    leading = size
    begun, moments = time.perf_counter(), given.solvable()
    feature_map, flat = moments.feature_map, moments.flat
    D = feature_map.n_components
    automatic = parameters.n_components == "auto" and not moments.options.is_identity
    sizes = nested_sizes(D, feature_map.nesting) if automatic else [size or D]
    sparse, intercept = parameters.sparse_options(sizes[-1]), parameters.fit_intercept
    leaving = None if source is None else LeaveOneOutPass(source, moments)
    solved = solve_folds(
        moments.folds, parameters.penalty, intercept=intercept, sizes=sizes, leave_one_out=leaving
    )
    size = len(solved.solution.coef)
    if size < D:
        feature_map = feature_map.first(size)
    whole_map = feature_map
    if sparse is not None:
        solved = solve_sparse(moments.folds, solved, sparse, intercept=intercept)
        if solved.support is not None:
            feature_map = feature_map.subset(solved.support)
    solution, equations, report = solved.solution, solved.equations, moments.report
    predictor = Predictor(
        feature_map, solution.coef, solution.intercept, precision=report["precision"], flat=flat
    )

    def without_folds() -> Unseen:
        folds = moments.folds if is_task(moments.folds) else shared(moments.folds)
        sparsifier = Sparsifier(parameters.sparse_method, solution.alpha, solution.floor)
        return unseen(folds, predictor, whole_map, sparsifier, intercept=intercept)

    errors = squared_errors_of(
        solved,
        predictor,
        source,
        without_folds,
        skip_bad_rows=moments.options.on_bad_rows == "skip",
    )
    cv_rmse = solved.cv_rmse
    if errors.source != "moments":
        equations = replace(equations, train_rss=errors.train * equations.weight)
        cv_rmse = cv_rmse if errors.held_out is None else np.sqrt(errors.held_out)
    note, fold_by = errors.note(report["precision"]), report["fold_by"] or "rows"
    short = solved.short_of_precision(report["precision"])
    told = [solution.note, solved.ordered_rows(fold_by), short, note * (errors.source == "bound")]
    warned = list(filter(None, told))
    # Too common for warnings.
    notes = [
        "" if short else solved.at_the_edge(report["precision"]),
        report.get("tuning_note", ""),
        note * (errors.source == "rows"),
        _WEIGHTS_NOTE * (equations.row_weight < 1.0 - _ROUNDING),
    ]
    curve = solved.sparsity if sparse is not None and sparse.is_chosen else None
    peak, seconds = report["peak_worker_bytes"], dict(report["seconds"])
    spent = time.perf_counter() - begun
    seconds["total"] += spent
    if leaving is not None and leaving.passed:
        seconds["leave-one-out"] = leaving.passed.seconds
        peak = max(peak, leaving.passed.peak_worker_bytes)
    if errors.passed is not None:
        seconds["residuals"] = errors.passed.seconds
        peak = max(peak, errors.passed.peak_worker_bytes)
    seconds["solve"] = spent - seconds.get("leave-one-out", 0.0) - seconds.get("residuals", 0.0)
    report = report | {
        "seconds": seconds,
        "peak_worker_bytes": peak,
        "kernel": moments.kernel.name,
        "kernel_parameters": moments.kernel.parameters(),
        "length_scale": length_scale_of(moments.kernel),
        "alpha_curve": solved.size and solved.size.curve.as_dict(),
        "components_curve": sizes_as_dict(solved.sizes, flat) or None,
        "cv_rmse": None if cv_rmse is None else as_stored(cv_rmse, flat),
        "sparse_of": None if sparse is None else size,
        "sparse_method": None if sparse is None else sparse.method,
        "sparse_curve": None if curve is None else curve.as_dict(flat=flat),
        **facts_of(solution, equations, flat),
        "errors_from": errors.source,
        "note": " ".join(filter(None, warned + notes)),
    }
    for warning in warned:
        warnings.warn(warning, StreamkernWarning, stacklevel=4)
    tell_of_job("solved", **{name: report[name] for name in _OF_SOLUTION})
    return FittedRidge(
        parameters,
        predictor,
        report,
        equations,
        penalty_curve=None if solved.size is None else solved.size.curve,
        moments=given if keep_moments else None,
        size=leading,
    )
