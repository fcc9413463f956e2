"""The squared errors of a solution: those that its moments tell, or those of the rows.

RSS = S - 2 w^T C + w^T G w is a difference of sums, and so is the error of a fold.  Where it is not
well above what rounding makes of such a difference, one light pass predicts the rows instead, and
those of each fold by the model without it.  Without the rows, rounding is added for a bound.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Floats
from streamkern.engine.reduction import PassResult
from streamkern.models.held_out_predictors import Unseen
from streamkern.models.scoring import rounding_at_landmarks, scored
from streamkern.predict.evaluation import Evaluation, FoldPredictors, PredictionErrors
from streamkern.predict.predictor import Predictor
from streamkern.solve import rounding_variance
from streamkern.sources import Source
from streamkern.statistics import Together
from streamkern.tune.fold_solution import Solved

# Times its rounding that a sum of squares must be, to be off by a twentieth at most.
_RESOLVED = 20.0


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
    without_folds: Callable[[], Unseen],
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
        unseen = without_folds()
        errors.append(Evaluation(FoldPredictors(unseen.rule, unseen.predictors), measure))
    both, row_bytes = Together(*errors), 8 * len(predictor.coef)
    passed, found, _ = scored(source, both, both, row_bytes, "residuals", skip_bad_rows)
    told, *without = (part.measures[0].squared / N for part in found.parts)
    if held_out is not None and without:
        held_out = np.where(unseen_hidden, without[0], held_out)
    return SquaredErrors(np.where(hidden, told, train), held_out, "rows", passed)
