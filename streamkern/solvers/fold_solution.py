"""From the moments of folds to a solution: what is factorised runs where the moments are.

    folds --> total --> eigenbasis --+-- errors of fold 0 --.
                                     +-- errors of fold 1 ---+--> curve --> alpha --> solution
                                     +-- ...               --'

Smaller maps are leading blocks of the same moments.  The caller's process sees spectra, curves,
coefficients, and the one packed G that a model keeps.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.engine.scheduler import compute, delayed, persist
from streamkern.errors import ParameterError
from streamkern.features import LandmarkFolds
from streamkern.parameters.penalty_options import PenaltyOptions
from streamkern.solve import Eigenbasis, NormalEquations, RidgeSolution, kept_gram, solve_ridge
from streamkern.solve.penalty_curve import at_the_edge, short_of_precision
from streamkern.solvers.penalty_search import LeaveOneOutCurve, Size, solve_sizes
from streamkern.statistics import CentredMoments, FeatureSums, FoldStatistics

_SMALLEST_SIZE = 64


@dataclass(frozen=True)
class Solved:
    solution: RidgeSolution
    equations: NormalEquations
    # The one that was solved for, unless the penalty was given, and all that were tried, ascending.
    size: Size | None = None
    sizes: tuple[Size, ...] = ()
    # The features that a sparse solution is on, and errors of such solutions, where folds were.
    support: Array | None = None
    sparsity: Any = None

    @property
    def cv_rmse(self) -> Floats | None:
        """The held-out root mean squared error, (q,), where it is known of what was solved."""
        if self.sparsity is not None:
            return self.sparsity.rmse[self.sparsity.sizes.index(len(self.solution.coef))]
        return self.size.cv_rmse if self.size and self.support is None else None

    @property
    def held_out(self) -> Floats | None:
        """The mean squared error of folds, (q,), as their moments tell it."""
        by_rows = self.size is not None and self.size.curve.criterion == "loo"
        return None if self.cv_rmse is None or by_rows else np.square(self.cv_rmse)

    def penalty_notes(self, precision: str) -> tuple[str, str]:
        """Sentences on single precision, and on the grid, or ''."""
        if self.size is None:
            return "", ""
        choice = self.size.curve, self.size.chosen
        short = short_of_precision(*choice, self.solution.floor, precision)
        edge = "" if short else at_the_edge(*choice, self.solution.floor, precision)
        return short, edge


def nested_sizes(n_components: int, nesting: int = 2) -> list[int]:
    """Return D, D / 2, D / 4 and so on, ascending from about 64."""
    sizes = [n_components]
    step = math.lcm(nesting, 2)
    while nesting and sizes[-1] >= 2 * max(_SMALLEST_SIZE, step):
        sizes.append(sizes[-1] // (2 * step) * step)
    return sizes[::-1]


def solve_folds(
    folds: Any,
    options: PenaltyOptions,
    *,
    intercept: bool,
    sizes: Sequence[int],
    leave_one_out: LeaveOneOutCurve | None = None,
    landmarks: LandmarkFolds | None = None,
    rows: Any = None,
) -> Solved:
    """Choose the penalty, and the number of features, from the moments of folds, and solve.

    `folds` is an argument of tasks; landmarks and rows are as in `solve_sizes`.
    """
    if options.is_fixed and len(sizes) == 1:
        total = persist(delayed(FoldStatistics.total, folds, sizes[0], name="total"))
        return Solved(*compute(delayed(_solved, total, options.alpha, intercept, name="solve")))
    if len(sizes) > 1 and not options.needs_folds:
        raise ParameterError(
            "the number of components is chosen by cross-validation; take alpha 'cv' or a grid "
            "of penalties, or give the number."
        )
    how: Any = {"leave_one_out": leave_one_out, "landmarks": landmarks, "rows": rows}
    tried = solve_sizes(folds, options, intercept=intercept, sizes=sizes, **how)
    size = tried[0]
    if len(tried) > 1:  # the smallest size within one standard error of the best
        scores = [each.curve.combined(each.chosen) for each in tried]
        most = sum(min(scores))
        size = next(each for each, (score, _) in zip(tried, scores, strict=True) if score <= most)
    alphas = size.curve.alphas[size.chosen]
    alpha = alphas if len(alphas) > 1 else float(alphas[0])
    solution, equations = compute(delayed(_solved_in, size.basis, size.total, alpha, name="solve"))
    return Solved(solution, equations, size, tried)


def _solved(
    total: FeatureSums, alpha: float, intercept: bool
) -> tuple[RidgeSolution, NormalEquations]:
    def centred() -> CentredMoments:
        return total.centred(intercept=intercept)

    moments = centred()
    gram = kept_gram(moments)
    solution = solve_ridge(moments, alpha, again=centred)
    return solution, NormalEquations.of(moments, solution, gram)


def _solved_in(
    basis: Eigenbasis, total: FeatureSums, alpha: float | Floats
) -> tuple[RidgeSolution, NormalEquations]:
    solution = basis.solve(alpha)
    return solution, NormalEquations.of(total.centred(intercept=basis.spectrum.intercept), solution)
