"""Models without each fold of the rows, from kept moments, and calibration by their scores."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamkern.engine.scheduler import is_task, run, run_all, shared, task
from streamkern.errors import DataError
from streamkern.models.scoring import scored
from streamkern.predict.calibration_fit import ScoreSums, fitted_calibrator, sigmoid_of_sums
from streamkern.predict.class_errors import ScoreTable
from streamkern.predict.evaluation import Evaluation, FoldPredictors
from streamkern.solve.sparse_selection import Sparsifier
from streamkern.tune.fold_solution import folds_with_rows, part_of
from streamkern.tune.held_out_models import solve_without

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats
    from streamkern.features import FeatureMap
    from streamkern.models.fitted_ridge import FittedRidge
    from streamkern.predict.class_rule import Calibrator
    from streamkern.predict.predictor import Predictor, RowFunction
    from streamkern.sources import LabelledSource
    from streamkern.statistics import ByFold, Folds
    from streamkern.tune.held_out_models import LeftOut
# The least that scores are taken to spread by, as a part of the targets' variance.
_LEAST_SPREAD = 1e-6


class Unseen(NamedTuple):
    """A model without each of its folds: a predictor for every fold that has rows."""

    rule: Folds
    predictors: dict[int, Predictor]
    left_out: dict[int, Any]  # tasks of LeftOut, where the predictors were made
    errors: Floats  # (q,), the sum of squared errors on all folds, as their moments tell it


def folds_of(model: FittedRidge) -> Any:
    """Return the kept moments of two folds or more as an argument of tasks, or None."""
    if model.moments is None:
        return None
    folds = model.moments.solvable().folds
    folds = folds if is_task(folds) else shared(folds)
    return folds if len(run(task(folds_with_rows, folds, name="folds"))) > 1 else None


def unseen_by(model: FittedRidge, folds: Any) -> Unseen:
    """Solve for what predicts each fold from the moments of the others, as the model was fitted."""
    predictor = model.predictor
    alpha = np.array(model.alpha) if isinstance(model.alpha, list) else model.alpha
    size = model.report["sparse_of"] or len(predictor.coef)
    feature_map, _ = model.moments.feature_map.solved()  # type: ignore[union-attr]
    if size < feature_map.n_components:
        feature_map = feature_map.first(size)
    sparsifier = Sparsifier(model.parameters.sparse_method, alpha, model.report["precision_floor"])
    return unseen(
        folds, predictor, feature_map, sparsifier, intercept=model.parameters.fit_intercept
    )


def unseen(
    folds: Any,
    predictor: Predictor,
    feature_map: FeatureMap,
    sparsifier: Sparsifier,
    *,
    intercept: bool,
) -> Unseen:
    """Solve for what predicts each fold from the moments of the others, as a predictor was."""
    size, few = feature_map.n_components, None
    if len(predictor.coef) < size:
        few = len(predictor.coef), sparsifier
    left_out = solve_without(
        folds, sparsifier.alpha, n_components=size, intercept=intercept, few=few
    )
    solutions = run_all([task(_solution, left, name="solution") for left in left_out.values()])
    predictors = {}
    for k, (coef, level, support, _) in zip(left_out, solutions, strict=True):
        part = feature_map if support is None else feature_map.subset(support)
        predictors[k] = replace(predictor, feature_map=part, coef=coef, intercept=level)
    errors: Floats = np.sum([each for *_, each in solutions], axis=0)
    return Unseen(run(task(attrgetter("rule"), folds, name="rule")), predictors, left_out, errors)


def _solution(left: LeftOut) -> tuple[Floats, Floats, Array | None, Floats]:
    return left.solution.coef, left.solution.intercept, left.support, left.errors


def calibrated_by_folds(ridge: FittedRidge, source: LabelledSource, method: str) -> Calibrator:
    """Return the calibrator of scores of every row by the model without its fold, in one pass."""
    unseen = unseen_by(ridge, _folds(ridge))
    held_out = FoldPredictors(unseen.rule, unseen.predictors)
    del unseen  # and with it the normal equations of every fold
    return calibrated_by_rows(ridge, source, method, held_out)


def calibrated_by_moments(ridge: FittedRidge) -> Calibrator:
    """Return the sigmoid of scores of every fold by the model without it, and read no rows."""
    folds = _folds(ridge)
    left_out = unseen_by(ridge, folds).left_out
    size = ridge.report["sparse_of"] or len(ridge.predictor.coef)
    sums = [task(_sums, folds, k, size, left, name=f"sums-{k}") for k, left in left_out.items()]
    return sigmoid_of_sums(run_all(sums))


def _sums(folds: ByFold, fold: int, size: int, left: LeftOut) -> ScoreSums:
    """Return the sums of the scores of a fold by the model without it, as its moments tell them."""
    part, coef = part_of(folds, fold, size), left.solution.coef
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
    ridge: FittedRidge,
    source: LabelledSource,
    method: str,
    held_out: FoldPredictors | RowFunction | None = None,
) -> Calibrator:
    """Return the calibrator of scores of rows that were not fitted on, by the model by default."""
    held_out = held_out or ridge.predictor
    skip, row_bytes = ridge.parameters.skips_bad_rows, 8 * len(ridge.predictor.coef)
    scores = Evaluation(held_out, ScoreTable(*_reach(ridge)))
    _, found, _ = scored(source, scores, scores, row_bytes, "calibration", skip)
    return fitted_calibrator(method, found.measures[0])


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
