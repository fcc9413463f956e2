"""The two passes of a fit: columns and a sample first, then moments."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkern.engine.scheduler import run, task
from streamkern.errors import DataError, ParameterError
from streamkern.features import LEVELS, Standardized
from streamkern.features.metric import metric_facts, standardizer_of
from streamkern.models.checkpoint_job import RowPasses, checkpointed
from streamkern.models.data_moments import DataMoments
from streamkern.models.labelling import class_facts
from streamkern.parameters.fit_options import SAMPLE_ROWS
from streamkern.parameters.plan import plan_for
from streamkern.runtime.integer_products import integer_products
from streamkern.runtime.threads import blas_threads
from streamkern.solve.progressive_validation import progressive_error
from streamkern.sources.hdf5 import without_folders
from streamkern.sources.preprocessing.column_names import input_names
from streamkern.statistics import (
    ByFold,
    RowFolds,
    RowIndex,
    block_folds,
    dtype_of_features,
    empty_moments,
    integer_units,
    joined_moments,
    moment_strips,
    shard_folds,
)
from streamkern.tune.column_pass import run_column_pass
from streamkern.tune.metric_learning import check_metric_of, in_metric

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from streamkern.features import FeatureMap
    from streamkern.parameters.fit_options import FitOptions
    from streamkern.parameters.fit_report import FitReport
    from streamkern.parameters.job_plan import Plan
    from streamkern.parameters.template import Template
    from streamkern.predict.ensemble import Ensemble
    from streamkern.sources import Source
    from streamkern.statistics import FeatureSums, Folds
    from streamkern.tune.candidates import Contender
    from streamkern.tune.column_pass import ColumnPass
    from streamkern.tune.metric_learning import LearntMetric, Pair


def fit_moments(
    source: Source, options: FitOptions, *, checkpoint: str | Path | None = None, **job: Any
) -> DataMoments:
    """Read the rows twice, lightly for the columns and a sample, then for the moments.

    `job` is as of `fit_job`.
    """
    with fit_job(source, options, checkpoint, **job) as (rows, (best, *_), learnt):
        return moments_pass(rows, best.column_pass, learnt=learnt)


@contextmanager
def fit_job(
    source: Source,
    options: FitOptions,
    folder: str | Path | None,
    *,
    pairs: Sequence[Pair] = (),
    n_sample: int | None = None,
    like: Template | None = None,
    indexed: bool = False,
    more_to_come: bool = False,
    searched: Sequence[Any] = (),
    **solution: Any,
) -> Iterator[tuple[RowPasses, list[Contender], LearntMetric | None]]:
    """Hold the passes of a fit after the column pass, the best metrics, and how they were learnt.

    Without `pairs` of kernel and map to choose from, the passes have the kernel in the best metric;
    with them the plan is of the map that is made of most rows.  `solution` is what `plan_for`
    counts of what follows.
    """
    given = pairs or [(options.kernel, options.feature_map)]
    each = [replace(options, kernel=kernel, feature_map=name) for kernel, name in given]
    if like is not None:
        like.check(source)
        n_sample = SAMPLE_ROWS
    else:
        check_metric_of(options, [kernel for kernel, _ in given], source)
        n_sample = max(n_sample or 0, *(one.sample_rows(source) for one in each))
    heaviest = max(each, key=lambda one: one.family.made.rows_a_feature)
    solution |= {"indexed": indexed, "few_rows": like is not None or more_to_come}
    plan = plan_for(source, heaviest, n_sample, **solution)
    # Of rows that come in single shards, one fold would get all.
    few_rows = like is not None or (more_to_come and plan.fold_by != "shards")
    folds = _folds(source, plan, options, few_rows=few_rows)
    job: Any = {"like": like, "indexed": indexed, "searched": searched}
    with checkpointed(folder, source, options, plan, **job) as saved:
        index = RowIndex(folds) if indexed else None
        how: Any = {"like": like, "index": index, "more_to_come": more_to_come}
        seen = run_column_pass(source, options, plan, n_sample, checkpoint=saved, **how)
        wanted = options if like is None else replace(options, metric=None)  # its map has one
        contenders, learnt = in_metric(seen, wanted, given)
        if not pairs:
            options = replace(options, kernel=contenders[0].pairs[0][0])
        yield RowPasses(source, options, plan, saved, folds, like, few_rows), contenders, learnt


def moments_pass(
    rows: RowPasses,
    seen: ColumnPass,
    *,
    weighting: Ensemble | None = None,
    learnt: LearntMetric | None = None,
) -> DataMoments:
    """Read the rows once for the moments, after the column pass that says how."""
    begun = time.perf_counter()
    source, options, plan, _, rule, like, few_rows = rows
    with blas_threads(1):  # frequencies and shift are part of the result
        if like is None:
            sample = seen.standardizer(seen.sample.X)
            inner, kernel = options.map_for(seen.standardizer.columns, sample, seen.weights)
            feature_map: FeatureMap = Standardized(seen.standardizer, inner)
        else:
            feature_map, kernel = like.feature_map, like.kernel
        feature_map = feature_map.summed()
        empty = None if like is None else like.empty
        if empty is None:
            reweighted = weighting is not None
            empty = _empty_moments(source, feature_map, seen, options, reweighted=reweighted)
    strips = moment_strips(empty, plan.n_strips)
    passes = [
        rows.read(
            ByFold(rule, strip, weighting),
            "moments" if len(strips) == 1 else f"moments-{i + 1}-of-{len(strips)}",
            keep=True,
            group=lambda shard: int(rule.of(np.array([shard.start]))[0]),
            validate=partial(progressive_error, intercept=options.fit_intercept),
        )
        for i, strip in enumerate(strips)
    ]
    # The last strip knows all but the other strips' rows of the triangle.
    moments = passes[-1]
    weights: dict[int, float] = run(task(_weights_of_folds, moments.statistic, name="weights"))
    for fold in range(rule.n_folds):
        if not weights.get(fold) and not few_rows:
            raise DataError(
                f"fold {fold + 1} of {rule.n_folds} has no rows that could be used; take fewer "
                f"folds, or another fold_by (--fold-by)."
            )
    every, passing = [seen.passed, *passes], sum(passed.seconds for passed in passes)
    total = seen.passed.seconds + time.perf_counter() - begun
    data = without_folders(source.describe())
    names = input_names({"data": data})
    named: FitReport = {} if names is None else {"feature_names": names}
    report: FitReport = {
        "rows": moments.n_rows,
        "n_features": source.n_features,
        "n_targets": source.n_targets,
        "seconds": {"total": total, "columns": seen.passed.seconds, "pass": passing},
        "rows_per_second": moments.n_rows / passing,
        "peak_worker_bytes": max(passed.peak_worker_bytes for passed in every),
        "projected_worker_bytes": plan.worker_bytes,
        "skipped_rows": moments.n_skipped,
        "weightless_rows": moments.n_weightless,
        "retried_shards": sum(passed.retried_shards for passed in every),
        "resumed_shards": sum(passed.resumed_shards for passed in every),
        **named,
        "n_folds": rule.n_folds if rule.n_folds > 1 else 0,
        "fold_by": plan.fold_by if rule.n_folds > 1 else None,
        "weights": source.weighted_by,
        "weight": sum(weights[fold] for fold in sorted(weights)),
        "precision": options.precision,
        "feature_map": options.feature_map,
        "dropped_columns": seen.dropped,
        "nearly_constant_columns": list(seen.nearly_constant),
        "data": data,
        "metric": metric_facts(standardizer_of(feature_map), options.metric),
        **class_facts(source),
    }
    if options.precision in LEVELS:
        report["products"] = run(task(_products_here, name="products"))
    if learnt is not None:
        report = learnt.reported(report)
    whole = moments.statistic
    if len(passes) > 1:
        whole = task(_joined, *(passed.statistic for passed in passes), name="join")
    return DataMoments(
        folds=whole,
        n_folds=rule.n_folds,
        feature_map=feature_map,
        kernel=kernel,
        flat=source.target_ndim == 1,
        report=report,
        options=options,
        index=seen.index,
        n_threads=plan.n_threads,
    )


def _folds(source: Source, plan: Plan, options: FitOptions, *, few_rows: bool) -> Folds:
    """Return how rows, of which the plan has seen that there are enough, are dealt to folds."""
    K, by = options.n_folds, plan.fold_by
    if K == 1:
        return block_folds(source.n_samples, 1)
    if by == "shards":
        shards = source.shards(plan.shard_rows, plan.block_rows)
        if len(shards) < K and not few_rows:
            raise ParameterError(
                f"{K} folds need as many shards, but there are {len(shards):,}; take fewer folds, "
                f"or deal rows with fold_by 'rows' (--fold-by rows)."
            )
        return shard_folds(shards, K, options.random_state)
    if by == "blocks":
        return block_folds(source.n_samples, K)
    return RowFolds(K, options.random_state)


def _weights_of_folds(folds: ByFold) -> dict[int, float]:
    return {fold: part.weight for fold, part in folds.parts.items()}  # type: ignore[attr-defined]


def _products_here() -> str:
    return integer_products().name


def _joined(*strips: ByFold) -> ByFold:
    """Return the folds of which these are strips."""
    empties: list[Any] = [strip.empty for strip in strips]
    whole = ByFold(strips[-1].rule, joined_moments(empties))
    for fold in strips[-1].parts:
        parts: list[Any] = [strip.parts[fold] for strip in strips]
        whole.parts[fold] = joined_moments(parts)
    return whole


def _empty_moments(
    source: Source,
    feature_map: FeatureMap,
    seen: ColumnPass,
    options: FitOptions,
    *,
    reweighted: bool,
) -> FeatureSums:
    p, columns, rows = source.n_features, seen.columns, seen.sample.X[:SAMPLE_ROWS]
    mean, deviation = columns.mean[p:], np.sqrt(columns.variance[p:])
    precision, units = options.precision, {}
    if precision in LEVELS:
        weighted = reweighted or source.weighted_by is not None
        row_weight = float(columns.weight.max()) / seen.passed.n_rows if weighted else None
        units = integer_units(mean, deviation, row_weight)
    else:
        dtype = dtype_of_features(precision)
        features = np.empty((len(rows), feature_map.n_components), dtype=dtype)
        feature_map.evaluate(rows, features)
        units = {
            # What is subtracted of every row, to the last digit.
            "feature_shift": features.mean(axis=0, dtype=float).astype(dtype).astype(float),
            "target_shift": mean,
            "target_unit": np.where(deviation > 0, deviation, 1.0),
        }
    return empty_moments(feature_map, source.n_targets, precision, **units)
