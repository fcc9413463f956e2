"""Newton's steps of functions that are fitted together: of several classes, or of one loss alone.

One function after another takes a step, with the others where they are (Gauss and Seidel).  After
each cycle the mean of all is taken from each: shares of classes are the same without it, and the
penalties less.  The first cycles are of the sample, in memory.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from streamkern.errors import warn
from streamkern.extensions.losses.newton_steps import Penalty, Steps, share_of_sample
from streamkern.fitting.draw_features import Features
from streamkern.parameters.parameters import Parameters
from streamkern.passes.fit_context import FitContext
from streamkern.passes.fold_rules import placed_folds
from streamkern.solve.penalty_curve import PenaltyCurve
from streamkern.sources import as_source
from streamkern.statistics.folds import PlacedFolds

# Cycles at the most, of all rows and of the sample.
_CYCLES = 12
# The part of the objective that may be left on the sample.
_ENOUGH = 1e-3


class JointSteps(tuple[Steps, ...]):
    """Functions that are fitted in turns: of all classes, or one alone."""

    __slots__ = ()

    def fit(self, context: FitContext, features: Features, parameters: Parameters) -> None:
        """Take steps over the sample and then over all rows, until hardly anything is left."""
        for each in self:
            each.others = tuple(other for other in self if other is not each)
        if not context.source.sparse_row_bytes:
            self._fit_sample(context, features, parameters)
        is_over = any(self._is_over(context, features, parameters) for _ in range(_CYCLES))
        for each in self:
            each.close(parameters)
        loss, left = self[0].rows.loss, sum(each.left for each in self)
        if not is_over and left > loss.tolerance:
            n_passes = sum(len(each.reports) for each in self)
            warn(
                f"the loss {'multinomial' if len(self) > 1 else loss.words} may fall by "
                f"{left:.1e} of itself yet, after {n_passes} passes; a larger alpha, or inputs "
                f"without outliers, needs fewer."
            )

    def _is_over(
        self,
        context: FitContext,
        features: Features,
        parameters: Parameters,
        *,
        on_sample: bool = False,
    ) -> bool:
        """Take a step of every function, in as many passes, and say whether that was enough."""
        for steps in self:
            steps.read(context, features, parameters)
            if on_sample:
                steps.try_on(features)
            elif steps.others:
                steps.close(parameters)
            for other in steps.others:
                other.feature_map = steps.feature_map
                other.penalty.grid = other.penalty.grid or steps.penalty.grid
        if len(self) > 1:
            self._choose(one_standard_error=parameters.one_standard_error)
            mean = np.mean([steps.here for steps in self], axis=0)
            for steps in self:
                steps.here, steps.before = steps.here - mean, steps.before - mean
        if all(steps.objective < steps.least for steps in self):
            return True
        left = sum(steps.left for steps in self)
        if on_sample:
            return left < _ENOUGH and all(steps.rows.loss.is_settled for steps in self)
        return left < self[0].rows.loss.tolerance and all(steps.is_steady for steps in self)

    def _choose(self, *, one_standard_error: bool) -> None:
        """Choose one penalty for all functions, by what folds lose of all of them.

        Each by itself would take one so large that it is a constant, or so small that it is not
        smoothed at all: the others make up for it.
        """
        curves: list[Any] = [steps.penalty.curve for steps in self]
        if None in curves:
            return
        alphas = self[0].penalty.grid or curves[0].alphas
        scores, of_folds = [], []
        for steps, curve in zip(self, curves, strict=True):
            kept = np.isin(curve.alphas, alphas)
            scores.append(steps.weight * curve.scores[kept])
            of_folds.append(steps.weight * curve.fold_scores[:, kept])
        both = np.sum(scores, axis=0), np.ones(1), np.sum(of_folds, axis=0)
        whole = PenaltyCurve("cv", np.asarray(alphas), *both)
        (best,) = whole.choose(one_standard_error=one_standard_error)
        for steps in self:
            steps.penalty.next, steps.penalty.curve = float(whole.alphas[best]), None

    def _fit_sample(self, context: FitContext, features: Features, parameters: Parameters) -> None:
        """Take steps over the sample, for what all rows begin with.

        Penalties on the sample are less by as much as it has fewer rows.  Functions that began at a
        model are there again in the end.
        """
        sample, options = features.summary.sample, context.options
        source, share = as_source(sample.X, sample.y, sample.weights), share_of_sample(features)
        context = replace(context, source=source, checkpoint=None)
        context = context.planned_again(options, context.n_sample)
        if isinstance(context.fold_rule, PlacedFolds):
            rule = placed_folds(source, context.plan, options)
            context = replace(context, fold_rule=rule)
        is_open = isinstance(parameters.alpha, str)
        name = "alphas" if is_open else "alpha"
        own = replace(parameters, **{name: _times(share, getattr(parameters, name))})
        for steps in self:
            steps.penalty = Penalty(2 if steps.others else _CYCLES)
        for _ in range(_CYCLES):
            if self._is_over(context, features, own, on_sample=True):
                break
        for steps in self:
            grid = _times(1.0 / share, steps.penalty.grid)
            first = steps.penalty.next if is_open else np.nan
            steps.begin(features, Penalty(1 if steps.others else 2, grid, first))


def _times(factor: float, alpha: Any) -> Any:
    return None if alpha is None else (factor * np.asarray(alpha)).tolist()
