"""Calibration of the scores of a classifier by rows, or folds of them, that it has not seen."""

from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.engine.scheduler import compute_all, delayed
from streamkern.errors import DataError
from streamkern.extensions.classes.calibration_fit import (
    ScoreSums,
    fitted_calibrator,
    sigmoid_of_sums,
)
from streamkern.extensions.classes.class_errors import ClassErrors, ScoreTable
from streamkern.extensions.classes.class_rule import Calibrator, ClassRule, PlainRule
from streamkern.extensions.classes.labelled_source import LabelledSource
from streamkern.extensions.classes.prediction_sets import PredictionSets
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.models.held_out_predictors import folds_of, unseen_by
from streamkern.models.scoring import scored
from streamkern.passes.column_summary import block_of
from streamkern.predict.deviation import predicted_in_turn
from streamkern.predict.evaluation import Evaluation, FoldPredictors, Measure
from streamkern.predict.predictor import RowFunction
from streamkern.runtime.threads import blas_threads
from streamkern.solvers.held_out_models import LeftOut
from streamkern.statistics import FoldStatistics

# The least that scores are taken to spread by, as a part of the targets' variance.
_LEAST_SPREAD = 1e-6
# Sampled rows that are left out in turn where rows crowd.
_NEIGHBOURS = 4096


def calibrated_by_folds(
    ridge: FittedRidge, source: LabelledSource, method: str
) -> tuple[Calibrator, PredictionSets, ClassErrors]:
    """Return the calibrator of scores of every row by the model without its fold, in one pass.

    With it come prediction sets, and the errors of taking the class of the largest score.  Where
    rows crowd, scores of folds say nothing of neighbours, and a calibrator of them alone knows no
    class.  There they are half of its rows, and the other half are sampled rows, each without
    itself; the sets are of the folds, and hold in gaps.
    """
    known = source.encoding
    held_out = unseen_by(ridge, _folds(ridge)).held_out
    by_largest = ClassErrors(ClassRule(known.classes, PlainRule()), known.factors)
    table, errors = _measured(ridge, source, held_out, by_largest)
    sets = PredictionSets.of(table)
    if ridge.moments is not None and ridge.moments.crowds and ridge.moments.completion is None:
        near = _of_neighbours(ridge, ridge.moments.sample)
        times = table.weights.sum() / near.weights.sum()
        table.weights = (table.weights + times * near.weights) / 2.0
        table.sums = (table.sums + times * near.sums) / 2.0
    return fitted_calibrator(method, table, known.factors), sets, errors


def _of_neighbours(ridge: FittedRidge, sample: Any) -> ScoreTable:
    """Return the table of scores of sampled rows, each by the model without it alone."""
    rows, table = block_of(sample.first(_NEIGHBOURS)), ScoreTable(*_reach(ridge))
    with blas_threads(1):  # the calibrator is part of the result
        table.add(rows, predicted_in_turn(ridge.predictor, ridge.normal_equations, rows))
    return table


def calibrated_by_moments(ridge: FittedRidge) -> Calibrator:
    """Return the sigmoid of scores of every fold by the model without it, and read no rows."""
    folds = _folds(ridge)
    left_out = unseen_by(ridge, folds).left_out
    size = ridge.outcome.sparse_of or len(ridge.predictor.coef)
    sums = [delayed(_sums, folds, k, size, left, name=f"sums-{k}") for k, left in left_out.items()]
    return sigmoid_of_sums(compute_all(sums))


def _sums(folds: FoldStatistics, fold: int, size: int, left: LeftOut) -> ScoreSums:
    """Return the sums of the scores of a fold by the model without it, as its moments tell them."""
    part, coef = folds.split(fold, size).held_out, left.solution.coef
    held = part.centred()
    if left.support is not None:
        held = held.subset(left.support)
    means = left.solution.intercept + held.feature_mean @ coef
    squares = np.einsum("dq,dq->q", coef, held.gram @ coef)
    products = np.einsum("dq,dq->q", coef, held.cross)
    return ScoreSums(
        n_rows=part.n_rows,
        weight=held.weight,
        targets=held.weight * held.target_mean,
        scores=held.weight * means,
        squares=squares + held.weight * means**2,
        products=products + held.weight * means * held.target_mean,
    )


def _folds(ridge: FittedRidge) -> Any:
    """Return the kept moments of folds, or raise DataError where there are no 2 with rows."""
    folds = folds_of(ridge)
    if folds is None:
        raise DataError(
            "calibration needs 2 folds with rows, which there are not; give more rows, or take "
            "calibration None."
        )
    return folds


def calibrated_by_rows(
    ridge: FittedRidge, source: LabelledSource, method: str
) -> tuple[Calibrator, PredictionSets]:
    """Return calibrator and sets of the model's scores of rows that it was not fitted on."""
    (table,), factors = _measured(ridge, source, ridge.predictor), source.encoding.factors
    return fitted_calibrator(method, table, factors), PredictionSets.of(table)


def _measured(
    ridge: FittedRidge,
    source: LabelledSource,
    predictor: FoldPredictors | RowFunction,
    *more: Measure,
) -> tuple[Any, ...]:
    """Return the table of scores of rows, and what else is measured of them, in one pass."""
    skip, row_bytes = ridge.parameters.skips_bad_rows, 8 * len(ridge.predictor.coef)
    scores = Evaluation(predictor, ScoreTable(*_reach(ridge)), *more)
    _, found, _ = scored(source, scores, scores, row_bytes, "calibration", skip)
    return found.measures


def _reach(ridge: FittedRidge) -> tuple[Floats, Floats]:
    """Return where scores lie (q,), and how far they spread (q,), as the fit tells it."""
    predictor, equations = ridge.predictor, ridge.equations
    if equations is None:
        q = predictor.coef.shape[1]
        return np.zeros(q), np.ones(q)
    mean = np.zeros_like(predictor.intercept)
    if equations.intercept:
        mean = predictor.intercept + equations.feature_mean @ predictor.coef
    variance = 1.0 - np.minimum(mean**2, 1.0)  # of targets that are +1 and -1
    explained = variance - equations.train_rss / equations.weight
    least = np.where(variance > 0, _LEAST_SPREAD * variance, 1.0)
    return mean, np.sqrt(np.maximum(explained, least))
