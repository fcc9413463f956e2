"""Models without each fold of the rows, from kept moments, and what errors there are to tell.

RSS = S - 2 w^T C + w^T G w is a difference of sums, and so is the error of a fold.  Where it is not
well above what rounding makes of such a difference, one light pass predicts the rows instead, and
those of each fold by the model without it.  Without the rows, rounding is added for a bound.
"""

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Floats
from streamkern.engine.reduction import PassResult
from streamkern.engine.scheduler import compute, compute_all, delayed, scatter
from streamkern.features import FeatureMap, solve_map
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.models.scoring import rounding_at_landmarks, scored
from streamkern.parameters.parameters import Parameters
from streamkern.predict.evaluation import Evaluation, FoldPredictors, PredictionErrors
from streamkern.predict.predictor import Predictor
from streamkern.registry import extension
from streamkern.solve import rounding_variance
from streamkern.solvers.fold_solution import Solved
from streamkern.solvers.held_out_models import solve_without
from streamkern.sources import Source
from streamkern.statistics import Composite, Folds, FoldStatistics

_SOLUTION = attrgetter("solution.coef", "solution.intercept", "support", "errors")
# Times its rounding that a sum of squares must be, to be off by a twentieth at most.
_RESOLVED = 20.0


class FoldModels(NamedTuple):
    """A model without each of its folds."""

    held_out: FoldPredictors
    left_out: dict[int, Any]  # tasks of LeftOut, where the predictors were made
    errors: Floats  # (q,), the sum of squared errors on all folds, as their moments tell it


def folds_of(model: FittedRidge) -> Any:
    """Return the kept moments of two folds or more as an argument of tasks, or None."""
    if model.moments is None:
        return None
    folds = scatter(model.moments.solvable().folds)
    return folds if len(compute(delayed(FoldStatistics.tests, folds, name="folds"))) > 1 else None


def unseen_by(model: FittedRidge, folds: Any) -> FoldModels:
    """Solve for what predicts each fold from the moments of the others, as the model was fitted."""
    predictor = model.predictor
    alpha = np.array(model.alpha) if isinstance(model.alpha, list) else model.alpha
    size = model.outcome.sparse_of or len(predictor.coef)
    feature_map, _ = solve_map(model.moments.feature_map)  # type: ignore[union-attr]
    if size < feature_map.n_components:
        feature_map = feature_map.first(size)
    parameters = model.parameters
    penalty = alpha, model.normal_equations.floor
    return unseen(folds, predictor, feature_map, penalty, parameters)


def unseen(
    folds: Any,
    predictor: Predictor,
    feature_map: FeatureMap,
    penalty: tuple[Any, float],
    parameters: Parameters,
) -> FoldModels:
    """Solve for what predicts each fold from the moments of the others, as a predictor was.

    `penalty` is (alpha, floor): alpha is one number or one a target; floor is the smallest penalty
    that is used while features are selected.
    """
    alpha, floor = penalty
    size, K, few = feature_map.n_components, len(predictor.coef), None
    if size > K:
        sparsifier = extension("sparse", "selection").Sparsifier
        few = K, sparsifier(parameters.sparse_method, alpha, floor)
    intercept = parameters.fit_intercept
    left_out = solve_without(folds, alpha, n_components=size, intercept=intercept, few=few)
    solutions = compute_all(
        [delayed(_SOLUTION, left, name="solution") for left in left_out.values()]
    )
    predictors = {}
    for k, (coef, level, support, _) in zip(left_out, solutions, strict=True):
        part = feature_map if support is None else feature_map.subset(support)
        predictors[k] = replace(predictor, feature_map=part, coef=coef, intercept=level)
    errors: Floats = np.sum([each for *_, each in solutions], axis=0)
    rule = compute(delayed(rule_of_tests, folds, name="rule"))
    return FoldModels(FoldPredictors(rule, predictors), left_out, errors)


def rule_of_tests(folds: FoldStatistics) -> Folds:
    return folds.rule.of_tests()


class SquaredErrors(NamedTuple):
    """The mean squared errors of a solution, of its own rows and of rows held out of it, (q,)."""

    train: Floats
    held_out: Floats | None
    source: str = "moments"  # or "rows", or "bound" where rounding hides them
    passed: PassResult[Any] | None = None

    def note(self, precision: str) -> str:
        """One sentence where the errors are not those of the moments, else ''."""
        if self.source == "moments":
            return ""
        begun = f"residuals are smaller than the rounding of sums in {precision} precision"
        if self.source == "rows":
            return f"{begun}, so the errors were taken from the rows, in one more light pass."
        return (
            f"{begun}: errors and standard deviations are upper bounds; fit the rows instead of "
            f"their moments" + (", or take double precision." if precision == "single" else ".")
        )


def squared_errors_of(
    solved: Solved,
    predictor: Predictor,
    source: Source | None,
    without_folds: Callable[[], FoldModels],
    *,
    skip_bad_rows: bool,
) -> SquaredErrors:
    """Return the errors that the moments tell, or those of the rows where rounding hides them."""
    N = solved.equations.weight
    train, held_out = solved.solution.train_rss / N, solved.held_out
    rounding = solved.solution.rss_rounding / N + rounding_at_landmarks(predictor, N) / N
    # Rows would tell no more of targets that vary by their own rounding.
    mean = predictor.intercept + solved.equations.feature_mean @ predictor.coef
    least = np.where(train > rounding_variance(mean), _RESOLVED * rounding, 0.0)
    hidden, unseen_hidden = train < least, held_out is not None and held_out < least
    if not np.any(hidden | unseen_hidden):
        return SquaredErrors(train, held_out)
    if source is None:
        bound = None if held_out is None else held_out + rounding * unseen_hidden
        return SquaredErrors(train + rounding * hidden, bound, "bound")
    measure = PredictionErrors(predictor.n_targets)
    errors = [Evaluation(predictor, measure)]
    if np.any(unseen_hidden):
        errors.append(Evaluation(without_folds().held_out, measure))
    both, row_bytes = Composite(*errors), 8 * len(predictor.coef)
    passed, found, _ = scored(source, both, both, row_bytes, "residuals", skip_bad_rows)
    told, *without = (part.measures[0].mse for part in found.parts)
    if held_out is not None and without:
        held_out = np.where(unseen_hidden, without[0], held_out)
    return SquaredErrors(np.where(hidden, told, train), held_out, "rows", passed)
