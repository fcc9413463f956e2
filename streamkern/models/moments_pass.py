"""The main passes of a fit: for moments, or for those of the combinations that solve it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from streamkern.engine.feature_stores import FeatureStores
from streamkern.engine.reduction import PassResult
from streamkern.engine.scheduler import run, shared, task
from streamkern.errors import DataError, warn
from streamkern.features import LEVELS, FeatureMap, Standardized
from streamkern.features.lattice import trend_and_angles
from streamkern.features.metric import metric_facts, standardizer_of
from streamkern.kernels import Kernel
from streamkern.models.data_moments import DataMoments
from streamkern.models.feature_rounding import MEASURED_ROWS, rounding_of
from streamkern.models.pass_report import pass_report
from streamkern.parameters.fit_options import SAMPLE_ROWS
from streamkern.parameters.fit_report import FitReport
from streamkern.parameters.penalty_options import PenaltyOptions
from streamkern.passes.column_scaling import constant_columns
from streamkern.passes.column_summary import ColumnPass
from streamkern.passes.fit_context import RowPasses
from streamkern.predict.ensemble import Ensemble
from streamkern.predict.support import SupportRows
from streamkern.runtime.memory import usable_cores
from streamkern.runtime.threads import blas_threads
from streamkern.solve.progressive_validation import progressive_error
from streamkern.solvers.fold_solution import nested_sizes
from streamkern.solvers.gram_passes import GramPasses, GramTransforms
from streamkern.solvers.penalty_search import Size, solve_sizes
from streamkern.solvers.subspace_fit import SubspaceChoice, SubspaceSearch
from streamkern.solvers.subspace_passes import SubspacePasses
from streamkern.statistics import (
    ByFold,
    FeatureSums,
    IntegerMoments,
    ToeplitzMoments,
    dtype_of_features,
    empty_moments,
    integer_units,
    is_summed_by_waves,
    joined_moments,
    moment_strips,
    unit_of_weights,
)
from streamkern.tune.metric_learning import LearntMetric

# Leading features whose moments take about one iteration's pass, and their share of all.
_MOST_LEADING, _PART = 2048, 4


def moments_pass(
    rows: RowPasses,
    seen: ColumnPass,
    *,
    weighting: Ensemble | None = None,
    learnt: LearntMetric | None = None,
    penalty: PenaltyOptions | None = None,
) -> DataMoments:
    """Read the rows once for the moments, after the column pass that says how."""
    begun = time.perf_counter()
    source, options, plan, _, rule, like, few_rows, _ = rows
    if not plan.solves_by_passes:
        penalty = None
    with blas_threads(1):  # frequencies and shift are part of the result
        drawn, kernel = _drawn(rows, seen)
        feature_map: FeatureMap = drawn.summed() if penalty is None else drawn.plain()
        empty = None if like is None else like.empty
        if empty is None:
            empty = _empty_moments(rows, feature_map, seen, reweighted=weighting is not None)
        if isinstance(empty, IntegerMoments):
            empty.check_rows(float(seen.columns.weight.max()), seen.sample.weights)
    strips = moment_strips(empty, plan.n_strips)
    makes_features = not isinstance(empty, ToeplitzMoments)
    rows_alone = max(plan.block_rows, plan.column_block_rows)
    if penalty is not None and makes_features:
        # Sums without products of features.
        strips = [replace(empty, first_row=feature_map.n_components)]
    how: Any = {
        "group": rows.fold_of,
        "keep": penalty is None,
        "validate": partial(progressive_error, intercept=options.fit_intercept),
        "read_rows": plan.block_rows if makes_features else rows_alone,
    }
    n = len(strips)
    labels = ["moments"] if n == 1 else [f"moments-{i}-of-{n}" for i in range(1, n + 1)]
    folds = [ByFold(rule, strip, weighting) for strip in strips]
    passes = [rows.read(*each, **how) for each in zip(folds, labels, strict=True)]
    # The last strip knows all but the other strips' rows of the triangle.
    moments = passes[-1]
    weights: dict[int, float] = run(task(_weights_of_folds, moments.statistic, name="weights"))
    for fold in range(rule.n_folds):
        if not weights.get(fold) and not few_rows:
            raise DataError(
                f"fold {fold + 1} of {rule.n_folds} has no rows that could be used; take fewer "
                f"folds, or another fold_by (--fold-by)."
            )
    whole: Any = moments.statistic
    choice: SubspaceChoice | None = None
    solved: FitReport = {"iterations": 0}
    if penalty is not None:
        whole, choice, solved, more = _without_gram(rows, seen, whole, drawn, penalty)
        feature_map, passes = whole.empty.feature_map, [*passes, *more]
    seconds = seen.passed.seconds + time.perf_counter() - begun
    weight = sum(weights[fold] for fold in sorted(weights))
    report = pass_report(rows, seen, passes, weight, seconds)
    report |= {"metric": metric_facts(standardizer_of(feature_map), options.metric)} | solved
    if options.precision in LEVELS:
        few = seen.sample.X[:MEASURED_ROWS]
        how = feature_map, few, options.precision, whole
        report |= run(task(rounding_of, *how, name="rounding"))
    if learnt is not None:
        report = learnt.reported(report)
    if len(strips) > 1:
        whole = task(_joined, *(passed.statistic for passed in passes), name="join")
    sampled = weighting is None and not source.sparse_row_bytes
    how = feature_map, kernel, seen.sample
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
        choice=choice,
        support_rows=SupportRows.of(*how) if sampled else None,
        sample=seen.sample,
    )


def _drawn(rows: RowPasses, seen: ColumnPass) -> tuple[Standardized, Kernel]:
    """Return the map, and the kernel with its length scale: those of a template if there is one."""
    options, standardizer, like = rows.options, seen.standardizer, rows.like
    if like is not None:
        known = None if like.empty is None else like.report.get("input_range")
        _warn_of_period(like.feature_map, seen, known)
        return like.feature_map, like.kernel
    sample, ends = standardizer(seen.sample.X), seen.ends if options.has_grid else None
    inner, kernel = options.map_for(standardizer.outputs, sample, seen.weights, ends)
    return Standardized(standardizer, inner), kernel


def _warn_of_period(feature_map: FeatureMap, seen: ColumnPass, known: Any) -> None:
    """Warn of rows that are farther apart than a grid's period, or from a range that is known."""
    if feature_map.lattice is None:
        return
    p, columns = feature_map.n_features, seen.columns
    ends = np.stack([columns.minimum[:p], columns.maximum[:p]])
    if known is not None and np.shape(known) == (p, 2):
        low, high = np.transpose(known)
        ends = np.stack([np.minimum(ends[0], low), np.maximum(ends[1], high)])
    angles = trend_and_angles(feature_map, feature_map.lattice.cell, ends)[1]
    if (np.ptp(angles, axis=0) > 2.0 * np.pi).any():
        warn(
            "the grid of frequencies was laid for other rows, and these reach beyond the period "
            "after which its functions repeat, so that rows far apart are taken for neighbours; "
            "fit all rows at once, or like some from end to end."
        )


def _without_gram(
    rows: RowPasses,
    seen: ColumnPass,
    sums: ByFold,
    feature_map: FeatureMap,
    penalty: PenaltyOptions,
) -> tuple[ByFold, SubspaceChoice, FitReport, list[PassResult[Any]]]:
    """Return moments that solve without the Gram matrix, and at what penalty; facts, and passes."""
    options, passes = rows.options, list[PassResult[Any]]()
    intercept, read = options.fit_intercept, partial(rows.read, group=rows.fold_of)

    def of_leading(leading: FeatureMap) -> Any:
        empty = _empty_moments(rows, leading, seen)
        passes.append(read(ByFold(rows.folds, empty), "leading", keep=False))
        return passes[-1].statistic

    fewer = _fewer_features(sums, feature_map, penalty, of_leading, intercept=intercept)
    with _products(rows, read, sums) as products:
        growing = SubspacePasses(products, sums, feature_map, intercept=intercept)
        search = SubspaceSearch(growing, penalty)
        folds, choice = search.run()
    facts: FitReport = {"iterations": search.n_iterations, "gradients": search.facts()}
    return folds, replace(choice, fewer=fewer), facts, [*passes, *products.passes]


def _fewer_features(
    sums: ByFold,
    feature_map: FeatureMap,
    penalty: PenaltyOptions,
    read: Callable[[FeatureMap], ByFold],
    *,
    intercept: bool,
) -> tuple[Size, ...]:
    """Return what leading features of a map come to, each number with a penalty of its own.

    They have the folds of the fit.  Sums of waves tell their moments, of other maps `read` returns
    those of the most.  Without folds, or smaller maps in the map, there are none.
    """
    D = feature_map.n_components
    most = min(D // _PART, _MOST_LEADING)
    sizes = [size for size in nested_sizes(D, feature_map.nesting) if size <= most]
    if not (sizes and penalty.needs_folds):
        return ()
    if isinstance(sums.empty, ToeplitzMoments):
        found = {fold: part.leading(sizes[-1]) for fold, part in sums.parts.items()}
    else:
        parts = read(feature_map.first(sizes[-1]).summed()).parts
        with blas_threads(1):
            found = {fold: part.solvable() for fold, part in parts.items()}
    tried = solve_sizes(
        shared(ByFold.of(sums.rule, found)), penalty, intercept=intercept, sizes=sizes
    )
    return tuple(replace(size, total=None, basis=None) for size in tried)


@contextmanager
def _products(rows: RowPasses, read: Any, sums: ByFold) -> Iterator[GramPasses | GramTransforms]:
    """Hold what multiplies vectors with the Gram matrices of folds."""
    if isinstance(sums.empty, ToeplitzMoments):
        yield GramTransforms(sums, usable_cores(), intercept=rows.options.fit_intercept)
        return
    with FeatureStores(rows.plan.stored_bytes) as stores:
        yield GramPasses(read, sums, stores)


def _weights_of_folds(folds: ByFold) -> dict[int, float]:
    return {fold: part.weight for fold, part in folds.parts.items()}


def _joined(*strips: ByFold) -> ByFold:
    """Return the folds of which these are strips."""
    last, *_ = strips
    parts = {k: joined_moments([strip.parts[k] for strip in strips]) for k in last.parts}
    return ByFold.of(last.rule, parts)


def _empty_moments(
    passes: RowPasses, feature_map: FeatureMap, seen: ColumnPass, *, reweighted: bool = False
) -> FeatureSums:
    source, options = passes.source, passes.options
    p, columns, rows = source.n_features, seen.columns, seen.sample.X[:SAMPLE_ROWS]
    precision, units = options.precision, {}
    target: Any = seen.target_scale
    plan, waves = passes.plan, options.sums_waves
    if not plan.solves_by_passes:
        waves = plan.n_strips == 1 and precision not in LEVELS
        waves = waves and is_summed_by_waves(feature_map, source.n_targets)
    if waves:
        return ToeplitzMoments(feature_map, source.n_targets, precision=precision, **target)
    if precision in LEVELS:
        varies = ~constant_columns(source, columns)[p:]
        units = integer_units(columns.mean[p:], varies * np.sqrt(columns.variance[p:]))
        units["weight_unit"] = 1.0
        if reweighted or source.weighted_by is not None:
            whole = not (reweighted or np.any(seen.sample.weights % 1.0))
            weight, n = float(columns.weight.max()), seen.passed.n_rows
            units["weight_unit"] = unit_of_weights(weight, n, precision, whole=whole)
    else:
        dtype = dtype_of_features(precision)
        features = np.empty((len(rows), feature_map.n_components), dtype=dtype)
        feature_map.evaluate(rows, features)
        # What is subtracted of every row, to the last digit.
        shift = features.mean(axis=0, dtype=float).astype(dtype).astype(float)
        units = target | {"feature_shift": shift}
    return empty_moments(feature_map, source.n_targets, precision, **units)
