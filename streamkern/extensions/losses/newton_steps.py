"""Newton's steps of a loss, each of which is ridge regression on reweighted rows.

    rows --> sums at working weights --> ridge path: every penalty, a step --.
      ^                                                                      |
      '----------------------------------------------------------------------'

A pass also adds up the losses at parts of the last step: where the whole of it does not help, the
next pass is at the part that helps most.  The penalty of the first pass is that of the sample.
The two after it choose, by the error of each fold as the quadratic of the other folds tells it.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Floats
from streamkern.engine.scheduler import compute, delayed
from streamkern.errors import StreamkernWarning
from streamkern.extensions.losses.loss import Loss
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
from streamkern.predict.evaluation import FoldPredictors
from streamkern.predict.predictor import Predictor
from streamkern.solve.penalty_curve import PenaltyCurve
from streamkern.sources import Block
from streamkern.statistics import precision_of_features

_LOSSES = attrgetter("losses", "facts")
# Steps on the sample, at the most.
ON_SAMPLE = 12
# Passes over all rows that choose a penalty, after the first.
CHOICES = 2
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


class Point(NamedTuple):
    """A linear function of features."""

    feature_map: FeatureMap
    coef: Floats  # (D,)
    intercept: float

    def towards(self, other: "Point", step: float) -> "Point":
        coef = self.coef + step * (other.coef - self.coef)
        intercept = self.intercept + step * (other.intercept - self.intercept)
        return Point(other.feature_map, coef, intercept)

    def less(self, other: "Point") -> "Point":
        return Point(self.feature_map, self.coef - other.coef, self.intercept - other.intercept)


def _predictor(points: list[Point], precision: str) -> Predictor:
    """Return functions of the same features; one that is constant may be of any."""
    feature_map = max(points, key=lambda point: bool(point.coef.any())).feature_map
    coef = np.column_stack([point.coef for point in points])
    intercepts = np.array([point.intercept for point in points])
    return Predictor(feature_map, coef, intercepts, precision)


@dataclass
class Steps:
    """Newton's steps of one loss: where they are, and what is known of the last pass."""

    rows: WorkingRows
    constant: float  # the best function that is one
    least: float  # an objective so small is as good as none
    here: Point
    before: Point
    start: Point | None = None  # of a model
    others: tuple["Steps", ...] = ()  # of the other classes
    path: RidgePath | None = None  # of the last pass
    alpha: float = np.nan  # of that
    next_alpha: float = np.nan  # of the next pass, unless it chooses
    alphas: Any = None  # to choose from, where they are not given
    choices: int = CHOICES  # of the penalty that are left
    curve: PenaltyCurve | None = None  # of the last choice
    objective: float = np.nan
    weight: float = 0.0  # of the rows of the last pass
    expected: float = np.inf  # fall of the objective by the step after the last pass
    ratio: float = 1.0  # of that to the one before
    is_first: bool = False  # whether no step was taken, from a constant
    is_steady: bool = False  # whether penalty and scale stay
    reports: list[FitReport] = field(default_factory=list)  # of the passes
    ridge: FittedRidge | None = None  # of the last pass
    unseen: FoldPredictors | None = None  # of rows by the folds that they are not in

    @classmethod
    def begun(
        cls, loss: Loss, features: Features, column: int, start: Point | None, *, are_signs: bool
    ) -> "Steps":
        """Begin at a function of these features, or at the constant that suits the sample best."""
        feature_map = features.feature_map
        zeros = Point(feature_map, np.zeros(feature_map.n_components), 0.0)
        rows = WorkingRows(loss, loss, column, are_signs)
        sample = block_of(features.summary.sample)
        y, weights = rows.targets(sample), sample.each_weight()
        constant = loss.constant(y, weights)
        level, plain = np.full(len(y), constant), loss.plain
        if start is not None and not are_signs:  # which may be of other units
            found = _predictor([start], "double").predict(sample.X)[:, 0]
            is_better = weights @ plain.values(y, found) < weights @ plain.values(y, level)
            start = start if is_better else None
        here = start or zeros._replace(intercept=constant)
        least = loss.link != "identity" and (
            _NONE
            * float(features.summary.columns.weight.max())
            * np.average(plain.values(y, level), weights=weights)
        )
        steps = cls(rows, constant, float(least), here, here, start, is_first=start is None)
        steps._begin_scale(features)
        return steps

    def _begin_scale(self, features: Features) -> None:
        """Take the scale of the loss from the residuals of the sample."""
        sample = block_of(features.summary.sample)
        predicted = _predictor([self.here], "double").predict(sample.X)[:, 0]
        loss = self.rows.loss.begun(self.rows.targets(sample) - predicted, sample.each_weight())
        self.rows = replace(self.rows, loss=loss, judge=loss)

    def read(self, context: FitContext, features: Features, parameters: Parameters) -> None:
        """Read the rows once at this point, and go on from it, or part of the way back."""
        rows = self._rows_here(precision_of_features(context.options.precision))
        rows = replace(rows, is_first=self.is_first)
        moments = sum_features(context, features, rows)
        losses, facts = compute(delayed(_LOSSES, moments.folds, name="losses"))
        self.reports.append(moments.report)
        is_first = np.isnan(self.alpha)
        alpha = 0.0 if is_first else self.alpha
        each = self._objectives(losses, alpha)
        if not each[-1] <= each[0] + _ROUNDING * abs(each[0]):
            step = STEPS[int(np.nanargmin(each[:-1]))] or _SHORTER
            self.here = self.before.towards(self.here, step)
            return
        fixed = replace(parameters, alpha=self.next_alpha, alphas=None, one_standard_error=False)
        if not (is_first or (self.choices and self.rows.loss.chooses)):
            parameters = fixed
        elif self.alphas is not None and isinstance(parameters.alpha, str):
            parameters = replace(parameters, alphas=self.alphas)
        with quiet():
            path = ridge_path(moments, parameters)
            solution = path.solved.solution
            if path.solved.size is not None:
                self.choices, self.curve = self.choices - 1, path.solved.size.curve
                self._keep_grid(self.curve.alphas, solution.floor, parameters)
                if self.others and not is_first:  # all choose together, after the cycle
                    path = ridge_path(moments, fixed)
                    solution = path.solved.solution
        after = Point(path.moments.feature_map, solution.coef[:, 0], float(solution.intercept[0]))
        self.path, self.alpha, loss = path, float(solution.alpha), self.rows.loss
        self.next_alpha = self.alpha
        self.objective = float(losses[-1] + 0.5 * self.alpha * (self.here.coef @ self.here.coef))
        self._expect(path, after)
        self.is_steady = self.alpha == alpha and loss.is_settled
        self.rows = replace(self.rows, loss=loss.next(facts), judge=loss)
        self.before, self.here, self.is_first = self.here, after, False

    def _rows_here(self, precision: str) -> WorkingRows:
        points = [self.before, self.here, *(other.here for other in self.others)]
        return replace(self.rows, predictor=_predictor(points, precision))

    def _objectives(self, losses: Floats, alpha: float) -> Floats:
        """Return the objective at parts of the last step, but for penalties of other classes."""
        parts = [self.before.towards(self.here, step) for step in STEPS]
        return losses + 0.5 * np.array([alpha * part.coef @ part.coef for part in parts])

    def try_on(self, sample: Block) -> None:
        """Go only as far as is best for the rows of the sample, which were read."""
        for _ in range(_SHORTENED):
            sums = SimpleNamespace(losses=np.zeros(len(STEPS)), facts=0.0)
            self._rows_here("double").reweighted(sample, sums)
            step = STEPS[int(np.nanargmin(self._objectives(sums.losses, self.alpha)))]
            self.here = self.before.towards(self.here, step or _SHORTER)
            if step:
                return

    def close(self, parameters: Parameters) -> FittedRidge:
        """Return the regression as it is here; sums of the last pass are not needed any more."""
        if self.path is not None:
            with quiet():
                ridge = ridge_result(self.path, parameters)
            folds = folds_of(ridge)
            self.unseen = None if folds is None else unseen_by(ridge, folds).held_out
            self.ridge, self.path = replace(ridge, moments=None), None
        assert self.ridge is not None  # noqa: S101  after a pass
        here = {"coef": self.here.coef[:, None], "intercept": np.array([self.here.intercept])}
        predictor: Any = self.ridge.predictor
        return replace(self.ridge, predictor=replace(predictor, **here))

    def _expect(self, path: RidgePath, after: Point) -> None:
        """Note by how much the objective is to fall, as the quadratic of the pass tells it."""
        equations, last = path.solved.equations, self.expected
        coef, level = after.coef - self.here.coef, after.intercept - self.here.intercept
        mean = level + equations.feature_mean @ coef
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

    def begin_anew(self, features: Features, share: float) -> None:
        """Begin again here with all rows, of which those before were a share."""
        self.alphas = None if self.alphas is None else times(1.0 / share, self.alphas)
        self._begin_scale(features)
        self.here = self.start or self.here
        self.before, self.path, self.alpha, self.reports = self.here, None, np.nan, []
        self.expected, self.ratio, self.is_steady = np.inf, 1.0, False
        self.choices, self.curve = 1 if self.others else CHOICES, None

    def _keep_grid(self, alphas: Floats, floor: float, parameters: Parameters) -> None:
        """Keep the penalties of the first choice, where none are given, to the end.

        They follow from the sums, whose weights change.
        """
        if parameters.alphas is None and isinstance(parameters.alpha, str):
            self.alphas = alphas[alphas >= min(_RESOLVED * floor, alphas[-1])].tolist()


def times(factor: float, alpha: Any) -> Any:
    return (factor * np.asarray(alpha)).tolist()


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out warnings of working residuals."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamkernWarning)
        yield
