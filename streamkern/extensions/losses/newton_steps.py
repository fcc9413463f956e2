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
from typing import Any, NamedTuple

import numpy as np

from streamkern._typing import Floats
from streamkern.engine.scheduler import compute, delayed
from streamkern.errors import StreamkernWarning
from streamkern.extensions.losses.losses import Loss
from streamkern.extensions.losses.working_rows import STEPS, WorkingRows, targets_of
from streamkern.features import FeatureMap
from streamkern.fitting.draw_features import Features
from streamkern.fitting.ridge_path import RidgePath, ridge_path
from streamkern.fitting.sum_features import sum_features
from streamkern.parameters.fit_report import FitReport
from streamkern.parameters.parameters import Parameters
from streamkern.passes.column_summary import block_of
from streamkern.passes.fit_context import FitContext
from streamkern.passes.fold_rules import placed_folds
from streamkern.predict.predictor import Predictor
from streamkern.solve.penalty_curve import PenaltyCurve
from streamkern.sources import as_source
from streamkern.statistics import precision_of_features
from streamkern.statistics.folds import PlacedFolds

_LOSSES = attrgetter("losses", "facts")
# Steps on the sample, which may leave this part of the objective.
_ON_SAMPLE, _ENOUGH = 12, 1e-3
# Passes over all rows that choose a penalty, after the first.
_CHOICES = 2
# A rate of steps beyond which what is left cannot be told.
_SLOWEST = 0.95
# The part of the loss of a constant that is as good as none.
_NONE = 1e-3
# How a step that does not help at all is cut.
_SHORTER = 1 / 64
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

    def predictor(self, before: "Point", precision: str) -> Predictor:
        """Return the function before, and this."""
        coef = np.column_stack([before.coef, self.coef])
        intercepts = np.array([before.intercept, self.intercept])
        return Predictor(self.feature_map, coef, intercepts, precision)


@dataclass
class Steps:
    """Newton's steps of one loss: where they are, and what is known of the last pass."""

    rows: WorkingRows
    constant: float  # the best function that is one
    least: float  # an objective so small is as good as none
    here: Point
    before: Point
    path: Any = None  # RidgePath, of the last pass
    alphas: Any = None  # to choose from, where they are not given
    choices: int = _ON_SAMPLE  # of the penalty that are left
    curve: PenaltyCurve | None = None  # of the last choice
    objective: float = np.nan
    expected: float = np.inf  # fall of the objective by the step after the last pass
    ratio: float = 1.0  # of that to the one before
    is_over: bool = False
    reports: list[FitReport] = field(default_factory=list)  # of the passes

    @classmethod
    def begun(
        cls, loss: Loss, features: Features, column: int, start: Point | None, *, are_signs: bool
    ) -> "Steps":
        """Begin at a function of these features, or at the constant that suits the sample best."""
        sample, feature_map = block_of(features.summary.sample), features.feature_map
        y, weights = targets_of(sample, column, are_signs=are_signs), sample.each_weight()
        constant = loss.constant(y, weights)
        here = start or Point(feature_map, np.zeros(feature_map.n_components), constant)
        predictor = here.predictor(here, "double")
        least = loss.link != "identity" and (
            _NONE
            * float(features.summary.columns.weight.max())
            * np.average(loss.plain.values(y, np.full(len(y), constant)), weights=weights)
        )
        loss = loss.begun(y - predictor.predict(sample.X)[:, 1], weights)
        rows = WorkingRows(loss, loss, predictor, column, are_signs)
        return cls(rows, constant, float(least), here, here)

    def read(self, context: FitContext, features: Features, parameters: Parameters) -> None:
        """Read the rows once at this point, and go on from it, or part of the way back."""
        precision = precision_of_features(context.options.precision)
        rows = replace(self.rows, predictor=self.here.predictor(self.before, precision))
        moments = sum_features(context, features, rows)
        losses, facts = compute(delayed(_LOSSES, moments.folds, name="losses"))
        self.reports.append(moments.report)
        alpha = 0.0 if self.path is None else self.path.solved.solution.alpha
        points = [self.before.towards(self.here, step) for step in STEPS]
        each = losses + 0.5 * np.array([alpha * point.coef @ point.coef for point in points])
        if not each[-1] <= each[0] + _ROUNDING * abs(each[0]):
            step = STEPS[int(np.nanargmin(each[:-1]))] or _SHORTER
            self.here = self.before.towards(self.here, step)
            return
        if self.path is not None and not (self.choices and self.rows.loss.chooses):
            parameters = replace(parameters, alpha=alpha, alphas=None, one_standard_error=False)
        elif self.alphas is not None and isinstance(parameters.alpha, str):
            parameters = replace(parameters, alphas=self.alphas)
        with quiet():
            path = ridge_path(moments, parameters)
        if path.solved.size is not None:
            self.choices, self.curve = self.choices - 1, path.solved.size.curve
            self._keep_grid(self.curve.alphas, path.solved.solution.floor, parameters)
        solution, previous = path.solved.solution, self.path
        coef = solution.coef[:, 0]
        feature_map = path.moments.feature_map
        after = Point(feature_map, coef, float(solution.intercept[0]))
        penalty: Any = solution.alpha * (self.here.coef @ self.here.coef)
        self.objective = float(losses[-1] + 0.5 * penalty)
        self._expect(path, after)
        loss = self.rows.loss
        stays = previous is not None and previous.solved.solution.alpha == solution.alpha
        self.is_over = stays and loss.is_settled and self.left < loss.tolerance
        self.is_over |= self.objective < self.least
        self.rows = replace(self.rows, loss=loss.next(facts), judge=loss)
        self.path, self.before, self.here = path, self.here, after

    def _expect(self, path: RidgePath, after: Point) -> None:
        """Note by how much the objective is to fall, as the quadratic of the pass tells it."""
        equations, last = path.solved.equations, self.expected
        coef, level = after.coef - self.here.coef, after.intercept - self.here.intercept
        mean = level + equations.feature_mean @ coef
        curved = coef @ (equations.gram @ coef) + equations.weight * mean**2
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

    def on_sample(
        self, context: FitContext, features: Features, parameters: Parameters
    ) -> Parameters:
        """Go on with the rows of the sample, and return the penalty for the first pass over all.

        Penalties on the sample are less by as much as it has fewer rows.
        """
        sample, options = features.summary.sample, context.options
        source = as_source(sample.X, sample.y, sample.weights)
        share = float(sample.weights.sum() / features.summary.columns.weight.max())
        context = replace(context, source=source, checkpoint=None)
        context = context.planned_again(options, context.n_sample)
        if isinstance(context.fold_rule, PlacedFolds):
            rule = placed_folds(source, context.plan, options)
            context = replace(context, fold_rule=rule)
        given = parameters
        if not isinstance(parameters.alpha, str):
            parameters = replace(parameters, alpha=_times(share, parameters.alpha))
        elif parameters.alphas is not None:
            parameters = replace(parameters, alphas=_times(share, parameters.alphas))
        for _ in range(_ON_SAMPLE):
            self.read(context, features, parameters)
            if self.is_over or (self.rows.loss.is_settled and self.left < _ENOUGH):
                break
        path: Any = self.path
        self.alphas = None if self.alphas is None else _times(1.0 / share, self.alphas)
        self.before, self.path, self.reports, self.expected = self.here, None, [], np.inf
        self.ratio, self.is_over, self.choices = 1.0, False, _CHOICES
        rows, predictor = block_of(sample), self.here.predictor(self.here, "double")
        residuals = self.rows.targets(rows) - predictor.predict(rows.X)[:, 1]
        loss = self.rows.loss.begun(residuals, sample.weights)
        self.rows = replace(self.rows, loss=loss, judge=loss)
        if isinstance(given.alpha, str):
            parameters = replace(given, one_standard_error=False, alphas=None)
            return replace(parameters, alpha=path.solved.solution.alpha)
        return given

    def _keep_grid(self, alphas: Floats, floor: float, parameters: Parameters) -> None:
        """Keep the penalties of the first choice, where none are given, to the end.

        They follow from the sums, whose weights change.
        """
        if parameters.alphas is None and isinstance(parameters.alpha, str):
            self.alphas = alphas[alphas >= min(_RESOLVED * floor, alphas[-1])].tolist()


def _times(factor: float, alpha: Any) -> Any:
    return (factor * np.asarray(alpha)).tolist()


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out warnings of working residuals."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamkernWarning)
        yield
