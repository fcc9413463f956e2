"""Newton's steps of functions that are fitted together: of several classes, or of one loss alone.

One function after another takes a step, with the others where they are (Gauss and Seidel).  After
each cycle the mean of all is taken from each: shares of classes are the same without it, and the
penalties less.  The first cycles are of the sample, in memory.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from streamkern.extensions.losses.newton_steps import CHOICES, ON_SAMPLE, Point, Steps, times
from streamkern.fitting.draw_features import Features
from streamkern.parameters.parameters import Parameters
from streamkern.passes.column_summary import block_of
from streamkern.passes.fit_context import FitContext
from streamkern.passes.fold_rules import placed_folds
from streamkern.solve.penalty_curve import PenaltyCurve
from streamkern.sources import as_source
from streamkern.statistics.folds import PlacedFolds

# The part of the objective that may be left on the sample.
_ENOUGH = 1e-3


class JointSteps(tuple[Steps, ...]):
    """Functions that are fitted in turns: of all classes, or one alone."""

    __slots__ = ()

    @classmethod
    def of(cls, functions: list[Steps]) -> "JointSteps":
        for each in functions:
            each.others = tuple(other for other in functions if other is not each)
        return cls(functions)

    @property
    def left(self) -> float:
        """What the objective is to fall by after the last steps, as a part of it."""
        return sum(each.left for each in self)

    def is_over(self, tolerance: float) -> bool:
        is_left = self.left >= tolerance or not all(each.is_steady for each in self)
        return not is_left or all(each.objective < each.least for each in self)

    def read(
        self,
        context: FitContext,
        features: Features,
        each: list[Parameters],
        *,
        on_sample: bool = False,
    ) -> None:
        """Take a step of every function, in as many passes."""
        for steps, parameters in zip(self, each, strict=True):
            steps.read(context, features, parameters)
            if on_sample:
                steps.try_on(block_of(features.summary.sample))
            elif steps.others:
                steps.close(parameters)
            for other in steps.others:
                other.alphas = other.alphas or steps.alphas
        if len(self) > 1:
            self._choose(one_standard_error=each[0].one_standard_error)
            self._centre()

    def _choose(self, *, one_standard_error: bool) -> None:
        """Choose one penalty for all functions, by what folds lose of all of them.

        Each by itself would take one so large that it is a constant, or so small that it is not
        smoothed at all: the others make up for it.
        """
        curves = [(steps.weight, steps.curve) for steps in self if steps.curve is not None]
        if len(curves) < len(self):
            return
        alphas = self[0].alphas or curves[0][1].alphas
        scores, of_folds = [], []
        for weight, curve in curves:
            kept = np.isin(curve.alphas, alphas)
            scores.append(weight * curve.scores[kept])
            folds: Any = curve.fold_scores
            of_folds.append(weight * folds[:, kept])
        both = np.sum(scores, axis=0), np.ones(1), np.sum(of_folds, axis=0)
        whole = PenaltyCurve("cv", np.asarray(alphas), *both)
        (best,) = whole.choose(one_standard_error=one_standard_error)
        for steps in self:
            steps.next_alpha, steps.curve = float(whole.alphas[best]), None

    def _centre(self) -> None:
        """Take the mean of all functions from each, which makes penalties least."""
        mean = Point(
            self[0].here.feature_map,
            np.mean([steps.here.coef for steps in self], axis=0),
            float(np.mean([steps.here.intercept for steps in self])),
        )
        for steps in self:
            steps.here, steps.before = steps.here.less(mean), steps.before.less(mean)

    def on_sample(
        self, context: FitContext, features: Features, parameters: Parameters
    ) -> list[Parameters]:
        """Go on with the rows of the sample, and return the penalties of first passes over all.

        Penalties on the sample are less by as much as it has fewer rows.  Functions that began at a
        model are there again in the end.
        """
        sample, options = features.summary.sample, context.options
        source = as_source(sample.X, sample.y, sample.weights)
        share = float(sample.weights.sum() / features.summary.columns.weight.max())
        context = replace(context, source=source, checkpoint=None)
        context = context.planned_again(options, context.n_sample)
        if isinstance(context.fold_rule, PlacedFolds):
            rule = placed_folds(source, context.plan, options)
            context = replace(context, fold_rule=rule)
        own = parameters
        if not isinstance(parameters.alpha, str):
            own = replace(parameters, alpha=times(share, parameters.alpha))
        elif parameters.alphas is not None:
            own = replace(parameters, alphas=times(share, parameters.alphas))
        for steps in self:
            steps.choices = CHOICES if steps.others else ON_SAMPLE
        for _ in range(ON_SAMPLE):
            self.read(context, features, [own] * len(self), on_sample=True)
            settled = all(steps.rows.loss.is_settled for steps in self)
            if (settled and self.left < _ENOUGH) or self.is_over(self[0].rows.loss.tolerance):
                break
        chosen = [steps.next_alpha for steps in self]
        for steps in self:
            steps.begin_anew(features, share)
        if not isinstance(parameters.alpha, str):
            return [parameters] * len(self)
        first = replace(parameters, one_standard_error=False, alphas=None)
        return [replace(first, alpha=alpha) for alpha in chosen]
