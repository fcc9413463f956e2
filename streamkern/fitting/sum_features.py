"""The third call of a fit: the sums of features over all rows."""

import time

from streamkern.features import LandmarkFolds
from streamkern.features.metric import metric_facts, standardizer_of
from streamkern.fitting.draw_features import Features
from streamkern.models.data_moments import DataMoments
from streamkern.models.feature_rounding import USUAL_ROUNDING
from streamkern.models.report_facts import known_columns, pass_report
from streamkern.parameters.fit_options import has_few_rows
from streamkern.passes.column_summary import block_of
from streamkern.passes.fit_context import FitContext
from streamkern.predict.support import SupportRows
from streamkern.solvers.table import solver_of
from streamkern.sources.target_encoding import encoding_of
from streamkern.statistics.folds import Weighting


def sum_features(
    context: FitContext, features: Features, weighting: Weighting | None = None
) -> DataMoments:
    """Read the rows for the sums of their features, by fold, as the solver of the fit needs them.

    `weighting` weighs the rows by an earlier model.
    """
    begun, (drawn, kernel, summary, learnt, drawing_seconds) = time.perf_counter(), features
    source = context.source
    sums = solver_of(context, summary, drawn, weighting).sums(drawn)
    feature_map = sums.feature_map
    seconds = summary.passed.seconds + drawing_seconds + time.perf_counter() - begun
    weight = sum(sums.weights[fold] for fold in sorted(sums.weights))
    columns = known_columns(context, summary)
    report = pass_report(context, summary, columns, sums.passes, weight=weight, seconds=seconds)
    metric = metric_facts(standardizer_of(feature_map), context.options.metric)
    report |= {"metric": metric} | sums.facts
    if learnt is not None:
        report = learnt.reported(report)
    folds, landmarks, sampled = context.fold_rule, None, not source.sparse_row_bytes
    n_rows, penalty = sums.passes[0].n_rows, context.penalty
    # The nearest rows of many landmarks in many inputs take seconds.
    is_asked = context.crowding is not None or (penalty is not None and penalty.is_guarded)
    is_asked |= sums.completion is None and has_few_rows(n_rows, feature_map.n_components)
    if sampled and folds.n_folds > 1 and is_asked:
        rows, numbers = standardizer_of(feature_map)(summary.sample.X), folds.of_tests()
        landmarks = LandmarkFolds.of(feature_map, rows, numbers.of(block_of(summary.sample)))
    how = feature_map, kernel, summary.sample
    return DataMoments(
        folds=sums.folds,
        n_folds=folds.n_folds,
        feature_map=feature_map,
        kernel=kernel,
        flat=source.target_ndim == 1,
        report=report,
        options=context.options,
        index=summary.index,
        n_threads=context.plan.n_threads,
        completion=sums.completion,
        support_rows=SupportRows.of(*how) if sampled else None,
        sample=summary.sample,
        columns=columns,
        n_rows=n_rows,
        encoding=encoding_of(source),
        feature_rounding=sums.facts.get("feature_rounding", USUAL_ROUNDING),
        weight_unit=sums.facts.get("weight_unit"),
        crowds=context.crowding is not None,
        landmarks=landmarks,
        is_reweighted=weighting is not None,
        search_note=context.facts.get("tuning_note"),
    )
