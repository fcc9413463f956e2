"""Figures of a fit report: of passes, of a kernel, of a solution, and of numbers of features."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from streamkern.engine.reduction import PassResult
from streamkern.kernels import Kernel, length_scale_of
from streamkern.parameters.fit_report import FitReport, with_seconds
from streamkern.passes.column_summary import ColumnSummary
from streamkern.passes.fit_context import FitContext
from streamkern.predict.evaluation import as_stored
from streamkern.solve import NormalEquations, RidgeSolution
from streamkern.solvers.penalty_search import Size
from streamkern.sources.columns import Columns, columns_of
from streamkern.sources.hdf5 import without_folders
from streamkern.sources.target_encoding import encoding_of

# Inputs up to which a model knows their range, for predictions on a grid.
_MOST_RANGES = 3


def kernel_facts(kernel: Kernel) -> FitReport:
    return {
        "kernel": kernel.name,
        "kernel_parameters": kernel.parameters(),
        "length_scale": length_scale_of(kernel),
    }


def facts_of(solution: RidgeSolution, equations: NormalEquations, flat: bool) -> FitReport:
    return {
        "n_components": len(solution.coef),
        "alpha": np.asarray(solution.alpha).tolist(),
        "train_rmse": as_stored(np.sqrt(equations.train_rss / equations.weight), flat),
        "effective_dof": np.asarray(solution.effective_dof).tolist(),
        "noise": as_stored(np.sqrt(equations.noise_variance), flat),
        "condition": solution.condition if np.isfinite(solution.condition) else None,
        "precision_floor": solution.floor,
        "solver": solution.solver,
    }


def sizes_as_dict(sizes: Sequence[Size], flat: bool) -> dict[str, Any] | None:
    if len(sizes) < 2:
        return None
    scores = [size.curve.combined(size.chosen) for size in sizes]
    return {
        "n_components": [size.n_components for size in sizes],
        "cv_rmse": [as_stored(size.cv_rmse, flat) for size in sizes if size.cv_rmse is not None],
        "relative_mse": [score for score, _ in scores],
        "standard_errors": [error for _, error in scores],
        "alpha": [size.curve.alphas[size.chosen].tolist() for size in sizes],
    }


def known_columns(context: FitContext, summary: ColumnSummary) -> Columns:
    """Return the columns of rows, with the ranges of few inputs that are coordinates."""
    found, known = columns_of(context.source), summary.columns
    p = found.n_features
    if p > _MOST_RANGES or context.options.n_coordinates(p) < p:
        return found
    ends = np.stack([known.minimum, known.maximum], axis=1)[:p]
    return replace(found, input_range=ends.tolist())


def pass_report(
    context: FitContext,
    summary: ColumnSummary,
    columns: Columns,
    passes: Sequence[PassResult[Any]],
    *,
    weight: float,
    seconds: float,
) -> FitReport:
    """Return what is reported of passes after the column pass, of rows that weigh so much."""
    source, options, plan, rule = context.source, context.options, context.plan, context.fold_rule
    every, passing = [summary.passed, *passes], sum(passed.seconds for passed in passes)
    first, data = passes[0], without_folders(source.describe())
    read = first.n_rows * len(passes) - sum(passed.resumed_rows for passed in passes)
    report: FitReport = {
        "rows": first.n_rows,
        "n_features": source.n_features,
        "n_targets": source.n_targets,
        "seconds": {"total": seconds, "columns": summary.passed.seconds, "pass": passing},
        "rows_per_second": max(read, 0) / passing,
        "peak_worker_bytes": max(passed.peak_worker_bytes for passed in every),
        "projected_worker_bytes": plan.worker_bytes,
        "skipped_rows": first.n_skipped,
        "weightless_rows": first.n_weightless,
        "retried_shards": sum(passed.retried_shards for passed in every),
        "resumed_shards": sum(passed.resumed_shards for passed in every),
        **columns.as_dict(),
        "n_folds": options.n_folds if rule.n_folds > 1 else 0,
        "fold_by": plan.fold_by if rule.n_folds > 1 else None,
        "weights": source.weighted_by,
        "weight": weight,
        "precision": options.precision,
        "feature_map": options.feature_map,
        "dropped_columns": summary.dropped,
        "nearly_constant_columns": list(summary.nearly_constant),
        "data": data,
        **encoding_of(source).facts(),
    }
    choice: FitReport = context.facts | {"passes": len(every) + context.facts.get("passes", 0)}
    spent = choice.get("seconds", {})
    return with_seconds(report | choice | {"seconds": report["seconds"]}, **spent)
