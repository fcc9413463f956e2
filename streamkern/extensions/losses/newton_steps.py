"""Newton's steps of a loss, each of which is ridge regression on reweighted rows.

    rows --> sums at working weights --> ridge path: every penalty, a step --.
      ^                                                                      |
      '----------------------------------------------------------------------'

A pass also adds up the losses at parts of the last step: where the whole of it does not help, the
next pass is at the part that helps most.  The penalty of the first pass is that of the sample.
The two after it choose, by the error of each fold as the quadratic of the other folds tells it.
"""

import warnings
from dataclasses import dataclass, field, replace
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.engine.scheduler import compute, delayed
from streamkern.errors import StreamkernWarning
from streamkern.extensions.losses.working_rows import STEPS, WorkingRows
from streamkern.features import FeatureMap
from streamkern.fitting.draw_features import Features
from streamkern.fitting.ridge_path import RidgePath, ridge_path
from streamkern.fitting.ridge_result import ridge_result
from streamkern.fitting.sum_features import sum_features
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.models.held_out_predictors import folds_of, unseen_by
from streamkern.parameters.fit_report import FitReport
from streamkern.parameters.parameters import Parameters
from streamkern.passes.column_summary import block_of
from streamkern.passes.fit_context import FitContext
from streamkern.predict.predictor import Predictor
from streamkern.solve.penalty_curve import PenaltyCurve
from streamkern.statistics import precision_of_features

_LOSSES = attrgetter("losses", "facts")
# A rate of steps beyond which what is left cannot be told.
_SLOWEST = 0.95
# The part of the loss of a constant that is as good as none.
_NONE = 1e-3
# How a step that does not help at all is cut.
_SHORTER, _SHORTENED = 1 / 64, 5
# Losses that grow by less than this part of them have not grown.
_ROUNDING = 1e-9
# Times the precision floor of sums that a penalty is at least: below, steps are of their rounding.
_RESOLVED = 10.0
# What is said of working residuals.
_QUIET: Any = {"action": "ignore", "category": StreamkernWarning}


@dataclass
class Penalty:
    """The penalty of steps, and what it is chosen by."""

    choices: int = 2  # that are left
    grid: Any = None  # to choose from, where no penalties are given
    next: float = np.nan  # of the next pass, unless it chooses
    last: float = np.nan  # of the last one
    curve: PenaltyCurve | None = None  # of the last choice

    def fixed(self, parameters: Parameters) -> Parameters:
        return replace(parameters, alpha=self.next, alphas=None, one_standard_error=False)

    def asked(self, parameters: Parameters, *, may_choose: bool) -> Parameters:
        """Return parameters of the next pass."""
        is_open = not np.isnan(self.last) and self.choices and may_choose
        if not (is_open or np.isnan(self.next)):
            return self.fixed(parameters)
        of_grid = self.grid is not None and isinstance(parameters.alpha, str)
        return replace(parameters, alphas=self.grid) if of_grid else parameters

    def chosen(self, curve: PenaltyCurve, floor: float, asked: Parameters) -> None:
        """Note a choice; of penalties that follow from the sums, the first are kept to the end."""
        self.choices, self.curve = self.choices - 1, curve
        if asked.alphas is None and isinstance(asked.alpha, str):
            least = min(_RESOLVED * floor, curve.alphas[-1])
            self.grid = curve.alphas[curve.alphas >= least].tolist()


@dataclass
class Steps:
    """Newton's steps of one loss: where they are, and what is known of the last pass.

    Functions are coefficients and an intercept, (D + 1,).
    """

    rows: WorkingRows
    features: Features
    constant: float  # the best function that is one
    least: float  # an objective so small is as good as none
    feature_map: FeatureMap
    here: Floats
    start: tuple[FeatureMap, Floats] | None = None  # of a model
    before: Any = None  # the function before the last step
    others: tuple["Steps", ...] = ()  # of the other classes
    penalty: Penalty = field(default_factory=Penalty)
    moments: Any = None  # of the last pass
    path: RidgePath | None = None  # of them, where a step was taken
    objective: float = np.nan
    weight: float = 0.0  # of the rows of the last pass
    expected: float = np.inf  # fall of the objective by the step after the last pass
    ratio: float = 1.0  # of that to the one before
    is_first: bool = False  # whether no step was taken, from a constant
    is_steady: bool = False  # whether penalty and scale stay
    reports: list[FitReport] = field(default_factory=list)  # of the passes
    ridge: Any = None  # the regression of the last pass
    unseen: Any = None  # `FoldPredictors` of rows by the folds that they are not in

    @classmethod
    def begun(
        cls, rows: WorkingRows, features: Features, start: tuple[FeatureMap, Floats] | None
    ) -> "Steps":
        """Begin at a function of these features, or at the constant that suits the sample best."""
        sample, loss = block_of(features.summary.sample), rows.loss
        y, weights = rows.targets(sample), sample.each_weight()
        constant = loss.constant(y, weights)
        lost = weights @ loss.plain.values(y, np.full(len(y), constant))
        if start is not None and not rows.are_signs:  # which may be of other units
            found = _predictor(start[0], [start[1]], "double").predict(sample.X)[:, 0]
            start = start if weights @ loss.plain.values(y, found) < lost else None
        level = np.append(np.zeros(features.feature_map.n_components), constant)
        feature_map, here = start or (features.feature_map, level)
        least = 0.0 if loss.link == "identity" else _NONE * lost / share_of_sample(features)
        steps = cls(rows, features, constant, float(least), feature_map, here, start)
        steps.is_first = start is None
        steps.begin(steps.penalty)
        return steps

    def begin(self, penalty: Penalty) -> None:
        """Begin here or at the start, with the scale of the residuals of the sample."""
        sample = block_of(self.features.summary.sample)
        predicted = _predictor(self.feature_map, [self.here], "double").predict(sample.X)[:, 0]
        loss = self.rows.loss.begun(self.rows.targets(sample) - predicted, sample.each_weight())
        self.rows, self.penalty = replace(self.rows, loss=loss, judge=loss), penalty
        self.feature_map, self.here = self.start or (self.feature_map, self.here)
        self.before, self.moments, self.path, self.reports = self.here, None, None, []
        self.expected, self.ratio, self.is_steady = np.inf, 1.0, False

    def read(self, context: FitContext, parameters: Parameters) -> None:
        """Read the rows once at this point, and go on from it, or part of the way back."""
        rows = self._rows_here(precision_of_features(context.options.precision))
        self.moments = self.path = None  # two passes' sums would take twice the memory
        moments = sum_features(context, self.features, replace(rows, is_first=self.is_first))
        losses, facts = compute(delayed(_LOSSES, moments.folds, name="losses"))
        self.reports.append(moments.report)
        each, penalty, loss = self._objectives(losses), self.penalty, rows.loss
        self.moments = moments
        if not each[-1] <= each[0] + _ROUNDING * abs(each[0]):
            self.here = self._part(STEPS[int(np.nanargmin(each[:-1]))] or _SHORTER)
            return
        is_first, asked = np.isnan(penalty.last), penalty.asked(parameters, may_choose=loss.chooses)
        with warnings.catch_warnings(**_QUIET):
            path = ridge_path(moments, asked)
            if (size := path.solved.size) is not None:
                penalty.chosen(size.curve, path.solved.solution.floor, asked)
                if self.others and not is_first:  # all choose together, after the cycle
                    path = ridge_path(moments, penalty.fixed(parameters))
        solution, here, last = path.solved.solution, self.here, penalty.last
        alpha = penalty.last = penalty.next = float(solution.alpha)
        self.is_steady = alpha == (0.0 if is_first else last) and loss.is_settled
        self.objective = float(losses[-1] + 0.5 * alpha * (here[:-1] @ here[:-1]))
        self.rows = replace(self.rows, loss=loss.next(facts), judge=loss)
        self.before, self.here = here, np.append(solution.coef[:, 0], solution.intercept[0])
        self.path, self.feature_map, self.is_first = path, path.moments.feature_map, False
        self._expect(path, self.here - here)

    def _rows_here(self, precision: str) -> WorkingRows:
        points = [self.before, self.here, *(other.here for other in self.others)]
        return replace(self.rows, predictor=_predictor(self.feature_map, points, precision))

    def _part(self, step: float) -> Floats:
        return self.before + step * (self.here - self.before)

    def _objectives(self, losses: Floats) -> Floats:
        """Return the objective at parts of the last step, but for penalties of other classes."""
        parts = [self._part(step)[:-1] for step in STEPS]
        alpha = np.nan_to_num(self.penalty.last)
        return losses + 0.5 * np.array([alpha * part @ part for part in parts])

    def try_on(self) -> None:
        """Go only as far as is best for the rows of the sample, which were read."""
        for _ in range(_SHORTENED):
            sums = SimpleNamespace(losses=np.zeros(len(STEPS)), facts=0.0)
            self._rows_here("double").reweighted(block_of(self.features.summary.sample), sums)
            step = STEPS[int(np.nanargmin(self._objectives(sums.losses)))]
            self.here = self._part(step or _SHORTER)
            if step:
                return

    def close(self, parameters: Parameters) -> FittedRidge:
        """Return the regression as it is here; sums of the last pass are not needed any more."""
        if self.moments is not None:
            with warnings.catch_warnings(**_QUIET):
                path = self.path or ridge_path(self.moments, self.penalty.fixed(parameters))
                ridge = ridge_result(path, parameters)
            folds = folds_of(ridge)
            self.unseen = None if folds is None else unseen_by(ridge, folds).held_out
            self.ridge, self.moments, self.path = replace(ridge, moments=None), None, None
        here = {"coef": self.here[:-1, None], "intercept": self.here[-1:]}
        return replace(self.ridge, predictor=replace(self.ridge.predictor, **here))

    def _expect(self, path: RidgePath, step: Floats) -> None:
        """Note by how much the objective is to fall, as the quadratic of the pass tells it."""
        equations, last, coef = path.solved.equations, self.expected, step[:-1]
        mean = step[-1] + equations.feature_mean @ coef
        curved = coef @ (equations.gram @ coef) + equations.weight * mean**2
        self.weight = float(equations.weight)
        self.expected = 0.5 * float(curved + path.solved.solution.alpha * coef @ coef)
        self.ratio = self.expected / last if last < np.inf else 1.0

    @property
    def left(self) -> float:
        """What the objective is to fall by after the last step, as a part of it.

        Steps are taken to go on as the last two did, or at the rate of their loss if that is
        slower.
        """
        ratio = min(max(self.ratio, self.rows.loss.rate), _SLOWEST)
        return self.expected / max(abs(self.objective), self.least) * ratio / (1.0 - ratio)


def _predictor(feature_map: FeatureMap, functions: list[Floats], precision: str) -> Predictor:
    """Return functions of the same features together."""
    both = np.column_stack(functions)
    return Predictor(feature_map, both[:-1], both[-1], precision)


def share_of_sample(features: Features) -> float:
    """Return the part of the weight of all rows that the sample has."""
    summary = features.summary
    return float(summary.sample.weights.sum() / summary.columns.weight.max())
