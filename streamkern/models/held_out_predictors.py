"""Predictors of a fitted model that have not seen a fold, from its kept moments."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamkern.engine.scheduler import is_task, run, run_all, shared, task
from streamkern.solve.sparse_selection import Sparsifier
from streamkern.tune.fold_solution import folds_with_rows
from streamkern.tune.held_out_models import solve_without

if TYPE_CHECKING:
    from streamkern._typing import Array, Floats
    from streamkern.features import FeatureMap
    from streamkern.models.fitted_ridge import FittedRidge
    from streamkern.predict.predictor import Predictor
    from streamkern.statistics import ByFold, Folds
    from streamkern.tune.held_out_models import LeftOut


class Unseen(NamedTuple):
    """A model without each of its folds.

    Parameters
    ----------
    rule : Folds
        Which fold a row is in.
    predictors : dict of int to Predictor
        For every fold that has rows, the one that has not seen it.
    left_out : dict of int to task of LeftOut
        What they were made from, where it was made.
    errors : ndarray of shape (q,)
        The sum of squared errors on all folds, as their moments tell it.
    """

    rule: Folds
    predictors: dict[int, Predictor]
    left_out: dict[int, Any]
    errors: Floats


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
    said = run_all([task(_said, left, name="solution") for left in left_out.values()])
    predictors = {
        k: replace(predictor, feature_map=_part(feature_map, support), coef=coef, intercept=level)
        for k, (coef, level, support, _) in zip(left_out, said, strict=True)
    }
    errors: Floats = np.sum([each for *_, each in said], axis=0)
    rule: Folds = run(task(_rule, folds, name="rule"))
    return Unseen(rule, predictors, left_out, errors)


def _rule(folds: ByFold) -> Folds:
    return folds.rule


def _said(left: LeftOut) -> tuple[Floats, Floats, Array | None, Floats]:
    return left.solution.coef, left.solution.intercept, left.support, left.errors


def _part(feature_map: FeatureMap, support: Array | None) -> FeatureMap:
    return feature_map if support is None else feature_map.subset(support)
