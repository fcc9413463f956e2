"""The fifth call of a fit: the model of a solution, its errors, intervals and report.

Rows whose errors rounding hides are predicted in one more light pass.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from streamkern.engine.scheduler import compute, delayed
from streamkern.errors import warn
from streamkern.features import FeatureMap, innermost, trended
from streamkern.fitting.ridge_path import RidgePath
from streamkern.models.feature_rounding import rounding_errors, rounding_note, share_of_rounding
from streamkern.models.fitted_ridge import FittedRidge, Outcome
from streamkern.models.held_out_predictors import (
    FoldModels,
    rule_of_tests,
    squared_errors_of,
    unseen,
)
from streamkern.models.report_facts import facts_of, kernel_facts, sizes_as_dict
from streamkern.parameters.fit_report import FitReport, with_seconds
from streamkern.parameters.parameters import AUTO, Parameters
from streamkern.passes.column_summary import block_of
from streamkern.predict.deviation import predicted_in_turn
from streamkern.predict.evaluation import as_stored
from streamkern.predict.interval_fit import fitted_intervals
from streamkern.predict.intervals import Intervals
from streamkern.predict.predictor import Predictor
from streamkern.registry import extension
from streamkern.runtime.events import tell_of_job
from streamkern.runtime.threads import blas_threads
from streamkern.solve import NormalEquations
from streamkern.solvers.fold_solution import Solved
from streamkern.sources import Source
from streamkern.statistics import RowSample, precision_of_features

_WEIGHTS_NOTE = (
    "weights are below 1 on average and so do not count rows: standard deviations take them over "
    "their mean."
)
_UNRESOLVED = (
    "the best alpha is as small as the weight of the kernel that the grid leaves out, {:.2g}: more "
    "components would resolve more."
)
_ROUNDING = 1e-9
# Rows of the sample that intervals are from, by models of folds or left out in turn: these take D^2
# a row, and an inverse, which is for so many features at the most.
_ROWS, _ROWS_IN_TURN, _MOST_IN_TURN = 4096, 2048, 4096
# What is told of a solution.
_OF_SOLUTION = ("seconds", "alpha", "alpha_curve", "cv_rmse", "train_rmse")


def ridge_result(
    path: RidgePath,
    parameters: Parameters,
    source: Source | None = None,
    *,
    with_intervals: bool = False,
) -> FittedRidge:
    """Return the model of a solution, with its errors and what is reported of it.

    The model keeps the moments and, if it is asked for and these have a sample, intervals.
    """
    begun, given, moments = time.perf_counter(), path.given, path.moments
    solved, is_sparse = path.solved, parameters.sparse is not None
    feature_map, flat, options = moments.feature_map, moments.flat, moments.options
    folds, leaving = path.folds, path.leave_one_out
    size = path.n_components
    if size < feature_map.n_components:
        feature_map = feature_map.first(size)
    whole_map = feature_map
    if solved.support is not None:
        feature_map = feature_map.subset(solved.support)
    solution, equations, report = solved.solution, solved.equations, moments.report
    precision, skip = precision_of_features(options.precision), options.on_bad_rows == "skip"
    predictor = Predictor(
        feature_map, solution.coef, solution.intercept, precision, flat, parameters.target_range
    )

    def without_folds() -> FoldModels:
        return unseen(folds, predictor, whole_map, (solution.alpha, solution.floor), parameters)

    errors = squared_errors_of(solved, predictor.linear, source, without_folds, skip_bad_rows=skip)
    intervals, calibrating = _intervals(
        given.sample if with_intervals and given.completion is None else None,
        *(solved, predictor, folds, without_folds),
        of_gaps=options.leaves_out_places,
    )
    cv_rmse, curve = solved.cv_rmse, None if solved.size is None else solved.size.curve
    if errors.source != "moments":
        equations = replace(equations, train_rss=errors.train * equations.weight)
        cv_rmse = cv_rmse if errors.held_out is None else np.sqrt(errors.held_out)
    rounding = rounding_errors(predictor, options.precision, given.feature_rounding)
    train_rmse = np.sqrt(equations.train_rss / equations.weight)
    share = share_of_rounding(rounding, train_rmse if cv_rmse is None else cv_rmse)
    note = errors.note(options.precision)
    short, edge = solved.penalty_notes(options.precision)
    warned = [*filter(None, (solution.note, short, note * (errors.source == "bound")))]
    # Too common for warnings.
    notes = [
        (moments.report.get("crowding") or {}).get("note"),  # which was warned of where rows crowd
        edge,
        _unresolved(whole_map, equations, given.n_rows) * (not parameters.penalty.is_fixed),
        given.search_note,
        note * (errors.source == "rows"),
        _WEIGHTS_NOTE * (equations.row_weight < 1.0 - _ROUNDING),
        rounding_note(share, options.precision),
    ]
    sparsity = solved.sparsity if parameters.sparse == AUTO else None
    passes = {"leave-one-out": leaving.passed if leaving else None, "residuals": errors.passed}
    done = {name: passed for name, passed in passes.items() if passed is not None}
    spent = calibrating | {name: passed.seconds for name, passed in done.items()}
    spent["solve"] = path.seconds + time.perf_counter() - begun - sum(spent.values())
    peaks = [report["peak_worker_bytes"], *(each.peak_worker_bytes for each in done.values())]
    figures: FitReport = {
        "peak_worker_bytes": max(peaks),
        **kernel_facts(moments.kernel),
        "alpha_curve": None if curve is None else curve.as_dict(),
        "components_curve": sizes_as_dict(solved.sizes, flat),
        "cv_rmse": None if cv_rmse is None else as_stored(cv_rmse, flat),
        "sparse_of": size if is_sparse else None,
        "sparse_method": parameters.sparse_method if is_sparse else None,
        "sparse_curve": None if sparsity is None else sparsity.as_dict(flat=flat),
        **facts_of(solution, equations, flat),
        **({"rounding_rmse": as_stored(rounding, flat)} if rounding.any() else {}),
        "errors_from": errors.source,
        "passes": report.get("passes", 0) + len(done),
    }
    if trended(predictor.feature_map):
        facts = extension("fields", "asked_trend").trend_facts
        figures |= facts(predictor, equations, given.columns)
    if given.completion is not None:
        figures |= {"solver": "cg", "n_components": given.completion.n_components}
        warned += filter(None, [given.completion.note])
    report = with_seconds(report, **spent) | figures
    report["note"] = " ".join(filter(None, [*warned, *notes]))
    for warning in warned:
        warn(warning)
    outcome = Outcome(
        *(given.kernel, options.feature_map, options.scale, options.precision),
        *(figures["alpha"], figures["cv_rmse"], figures["n_components"]),
        sparse_of=figures["sparse_of"],
        by_gradients=given.completion is not None,
        searched=given.search_note is not None,
        rounding_share=share,
        weight_unit=given.weight_unit if errors.source == "moments" else None,
    )
    return FittedRidge(
        parameters, predictor, report, given.columns, outcome,
        equations, penalty_curve=curve, moments=given, size=path.leading, intervals=intervals,
        support_rows=given.support_rows and given.support_rows.of_map(feature_map),
    )  # fmt: skip


def tell_of_solution(report: FitReport) -> None:
    """Tell who watches what was chosen, and the errors."""
    tell_of_job("solved", **{name: report[name] for name in _OF_SOLUTION})


def _intervals(
    sample: RowSample | None,
    solved: Solved,
    predictor: Predictor,
    folds: Any,
    without_folds: Callable[[], FoldModels],
    *,
    of_gaps: bool,
) -> tuple[Intervals | None, dict[str, float]]:
    """Return intervals by sampled rows and models without their folds, and the seconds that took.

    Without folds, rows are left out in turn, in closed form.  None where there is no map of parts.
    """
    D, in_turn = predictor.n_components, solved.held_out is None
    if sample is None or trended(predictor.feature_map) or (D > _MOST_IN_TURN and in_turn):
        return None, {}
    begun, sample = time.perf_counter(), sample.first(_ROWS_IN_TURN if in_turn else _ROWS)
    rows = block_of(sample)
    with blas_threads(1):
        if in_turn:
            predicted = predicted_in_turn(predictor, solved.equations, rows)
            np.clip(predicted, *(predictor.limits or (-np.inf, np.inf)), out=predicted)
        else:
            predicted = np.full(rows.y.shape, np.nan)
            known: Any = (
                solved.size.without_folds if solved.size and solved.support is None else None
            )
            unseen: Any = None if known else without_folds().held_out.predictors
            numbers = compute(delayed(rule_of_tests, folds, name="rule")).of(rows)
            for k in np.unique(numbers[numbers >= 0]).tolist():
                model = replace(predictor, **known[k]) if known else unseen[k]
                mine = numbers == k
                predicted[mine] = model.predict(rows.X[mine]).reshape(-1, predictor.n_targets)
        of_gaps &= not in_turn
        found = fitted_intervals(predictor, rows, predicted, of_gaps=of_gaps)
    return found, {"intervals": time.perf_counter() - begun}


def _unresolved(feature_map: FeatureMap, equations: NormalEquations, n_rows: int) -> str:
    """Return a note if the penalty is the least that a map allows, or ''."""
    least = innermost(feature_map).left_out
    is_least = 0 < equations.alphas.min() <= 1.001 * least * equations.weight / n_rows
    return _UNRESOLVED.format(least) if is_least else ""
