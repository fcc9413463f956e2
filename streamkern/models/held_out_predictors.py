"""Models without each fold of the rows, from kept moments."""

from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Floats
from streamkern.engine.scheduler import run, run_all, shared, task
from streamkern.features import FeatureMap
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.predict.predictor import Predictor
from streamkern.solve.sparse_selection import Sparsifier
from streamkern.statistics import Folds
from streamkern.tune.fold_moments import folds_with_rows
from streamkern.tune.held_out_models import solve_without

_SOLUTION = attrgetter("solution.coef", "solution.intercept", "support", "errors")


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
    folds = shared(model.moments.solvable().folds)
    return folds if len(run(task(folds_with_rows, folds, name="folds"))) > 1 else None


def unseen_by(model: FittedRidge, folds: Any) -> Unseen:
    """Solve for what predicts each fold from the moments of the others, as the model was fitted."""
    predictor = model.predictor
    alpha = np.array(model.alpha) if isinstance(model.alpha, list) else model.alpha
    size = model.report["sparse_of"] or len(predictor.coef)
    feature_map, _ = model.moments.feature_map.solved()  # type: ignore[union-attr]
    if size < feature_map.n_components:
        feature_map = feature_map.first(size)
    parameters = model.parameters
    sparsifier = Sparsifier(parameters.sparse_method, alpha, model.report["precision_floor"])
    return unseen(folds, predictor, feature_map, sparsifier, intercept=parameters.fit_intercept)


def unseen(
    folds: Any,
    predictor: Predictor,
    feature_map: FeatureMap,
    sparsifier: Sparsifier,
    *,
    intercept: bool,
) -> Unseen:
    """Solve for what predicts each fold from the moments of the others, as a predictor was."""
    size, K = feature_map.n_components, len(predictor.coef)
    few = (K, sparsifier) if size > K else None
    left_out = solve_without(
        folds, sparsifier.alpha, n_components=size, intercept=intercept, few=few
    )
    solutions = run_all([task(_SOLUTION, left, name="solution") for left in left_out.values()])
    predictors = {}
    for k, (coef, level, support, _) in zip(left_out, solutions, strict=True):
        part = feature_map if support is None else feature_map.subset(support)
        predictors[k] = replace(predictor, feature_map=part, coef=coef, intercept=level)
    errors: Floats = np.sum([each for *_, each in solutions], axis=0)
    return Unseen(run(task(attrgetter("rule"), folds, name="rule")), predictors, left_out, errors)
