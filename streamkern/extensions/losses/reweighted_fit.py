"""A fit of other losses: the calls of `fit.py`, with Newton's steps for one solution.

Functions of several classes take steps in turns, with the others where they are (Gauss and Seidel).
After each cycle the mean of all is taken from each: shares of classes are the same without it, and
the penalties less.  The first cycles are of the sample, in memory.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from streamkern.errors import warn
from streamkern.extensions.losses.exponential_families import Multinomial
from streamkern.extensions.losses.exposed_rows import ExposedRows
from streamkern.extensions.losses.loss import Loss
from streamkern.extensions.losses.loss_errors import LossErrors, as_told
from streamkern.extensions.losses.loss_names import LOG_LOSSES, link_of, name_of
from streamkern.extensions.losses.newton_steps import Penalty, Steps, share_of_sample
from streamkern.extensions.losses.working_rows import WorkingRows
from streamkern.fitting.draw_features import draw_features
from streamkern.fitting.ridge_result import tell_of_solution
from streamkern.fitting.summarize import summarize
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.parameters.fit_options import large_sample
from streamkern.parameters.fit_report import with_seconds
from streamkern.parameters.parameters import Parameters
from streamkern.passes.checkpoint_job import checkpointed
from streamkern.passes.fit_context import FitContext
from streamkern.passes.fold_rules import placed_folds
from streamkern.predict.evaluation import Evaluation, FoldPredictors
from streamkern.predict.predictor import Predictor
from streamkern.solve.penalty_curve import PenaltyCurve
from streamkern.sources import as_source
from streamkern.statistics import Composite
from streamkern.statistics.folds import PlacedFolds

# Cycles at the most, of all rows and of the sample.
_CYCLES = 12
# The part of the objective that may be left on the sample.
_ENOUGH = 1e-3
# What of a report is counted in every pass, and what of a model is of one function.
_COUNTED = ("retried_shards", "resumed_shards")
_OF_ONE = ("equations", "penalty_curve", "support_rows")


def reweighted_fit(
    context: FitContext,
    parameters: Parameters,
    losses: tuple[Loss, ...],
    *,
    are_signs: bool = False,
) -> tuple[FittedRidge, tuple[Loss, ...], tuple[float, ...]]:
    """Return the regression of losses on targets of rows, linear in the features.

    With it come the losses, which have found their scales, and the constants that suit them best.
    One loss is of every target that is a sign, with classes that share the rows where there are
    several; several losses are of one target.  A model of the same losses that the
    fit is like is where it begins.
    """
    source, like = context.source, context.like
    columns = range(source.n_targets) if are_signs else [0] * len(losses)
    names = LOG_LOSSES if are_signs else (name_of(losses),)
    start = like.start if like is not None and like.loss in names else None
    n_sample = max(context.n_sample, large_sample(source.n_features + source.n_targets))
    context = replace(context, searched=[{"losses": [loss.words for loss in losses]}])
    with checkpointed(context.planned_again(context.options, n_sample)) as planned:
        rows, summary = summarize(planned)
        if not are_signs:
            p, known = source.n_features, summary.columns
            of_target = known.minimum[p], known.maximum[p], known.mean[p]
            losses[0].check_some(*map(float, of_target))
        chosen, features = draw_features(rows, summary)
        every = []
        for k, column in enumerate(columns):
            loss, begin = losses[k % len(losses)], None
            if start is not None and start.n_targets == len(columns):
                begin = start.feature_map, np.append(start.coef[:, k], start.intercept[k])
            working = WorkingRows(loss, loss, column, are_signs)
            every.append(Steps.begun(working, features, begin))
        begun, on_sample = time.perf_counter(), 0.0
        for together in [every] if are_signs else [[each] for each in every]:
            on_sample += _take_steps(together, chosen, parameters)
        spent = {"sample": on_sample, "solve": time.perf_counter() - begun - on_sample}
        ridge = _result(every, chosen, parameters, spent)
    return ridge, tuple(each.rows.loss for each in every), tuple(each.constant for each in every)


def _take_steps(functions: list[Steps], context: FitContext, parameters: Parameters) -> float:
    """Take steps over the sample and then over all rows, until hardly anything is left.

    The seconds of those over the sample are returned.
    """
    begun = time.perf_counter()
    for each in functions:
        each.others = tuple(other for other in functions if other is not each)
    if not context.source.sparse_row_bytes:
        _begin_by_sample(functions, context, parameters)
    on_sample = time.perf_counter() - begun
    is_over = any(_cycle(functions, context, parameters) for _ in range(_CYCLES))
    for each in functions:
        each.close(parameters)
    loss, left = functions[0].rows.loss, sum(each.left for each in functions)
    if not is_over and left > loss.tolerance:
        n_passes = sum(len(each.reports) for each in functions)
        warn(
            f"the loss {'multinomial' if len(functions) > 1 else loss.words} may fall by "
            f"{left:.1e} of itself yet, after {n_passes} passes; a larger alpha, or inputs "
            f"without outliers, needs fewer."
        )
    return on_sample


def _cycle(
    functions: list[Steps], context: FitContext, parameters: Parameters, *, on_sample: bool = False
) -> bool:
    """Take a step of every function, in as many passes, and say whether that was enough."""
    for steps in functions:
        steps.read(context, parameters)
        if on_sample:
            steps.try_on()
        elif steps.others:
            steps.close(parameters)
        for other in steps.others:
            other.feature_map = steps.feature_map
            other.penalty.grid = other.penalty.grid or steps.penalty.grid
    if len(functions) > 1:
        _choose_together(functions, one_standard_error=parameters.one_standard_error)
        mean = np.mean([steps.here for steps in functions], axis=0)
        for steps in functions:
            steps.here, steps.before = steps.here - mean, steps.before - mean
    left, loss = sum(steps.left for steps in functions), functions[0].rows.loss
    if on_sample:
        is_over = left < _ENOUGH and all(steps.rows.loss.is_settled for steps in functions)
    else:
        is_over = left < loss.tolerance and all(steps.is_steady for steps in functions)
    return is_over or all(steps.objective < steps.least for steps in functions)


def _choose_together(functions: list[Steps], *, one_standard_error: bool) -> None:
    """Choose one penalty for all functions, by what folds lose of all of them.

    Each by itself would take one so large that it is a constant, or so small that it is not
    smoothed at all: the others make up for it.
    """
    curves: list[Any] = [steps.penalty.curve for steps in functions]
    if None in curves:
        return
    alphas = np.asarray(functions[0].penalty.grid or curves[0].alphas)
    kept = [(curve, np.isin(curve.alphas, alphas)) for curve in curves]
    scores = np.concatenate([curve.scores[own] for curve, own in kept], axis=1)
    of_folds = np.concatenate([curve.fold_scores[:, own] for curve, own in kept], axis=2)
    shares = 1.0 / np.array([steps.weight for steps in functions])
    whole = PenaltyCurve("cv", alphas, scores, shares, of_folds)
    (best,) = whole.choose(one_standard_error=one_standard_error)
    for steps in functions:
        steps.penalty.next, steps.penalty.curve = float(alphas[best]), None


def _begin_by_sample(functions: list[Steps], context: FitContext, parameters: Parameters) -> None:
    """Take steps over the sample, for what all rows begin with.

    Penalties on the sample are less by as much as it has fewer rows.  Functions that began at a
    model are there again in the end.
    """
    features, options = functions[0].features, context.options
    sample = features.summary.sample
    source, share = as_source(sample.X, sample.y, sample.weights), share_of_sample(features)
    context = replace(context, source=source, checkpoint=None)
    context = context.planned_again(options, context.n_sample)
    if isinstance(context.fold_rule, PlacedFolds):
        rule = placed_folds(source, context.plan, options)
        context = replace(context, fold_rule=rule)
    is_open, alone = isinstance(parameters.alpha, str), len(functions) == 1
    name = "alphas" if is_open else "alpha"
    own = replace(parameters, **{name: _times(share, getattr(parameters, name))})
    for steps in functions:
        steps.penalty = Penalty(_CYCLES if alone else 2)
    any(_cycle(functions, context, own, on_sample=True) for _ in range(_CYCLES))
    for steps in functions:
        grid = _times(1.0 / share, steps.penalty.grid)
        first = steps.penalty.next if is_open else np.nan
        steps.begin(Penalty(2 if alone else 1, grid, first))


def _times(factor: float, alpha: Any) -> Any:
    return None if alpha is None else (factor * np.asarray(alpha)).tolist()


def _result(
    every: list[Steps], context: FitContext, parameters: Parameters, spent: dict[str, float]
) -> FittedRidge:
    """Return the regression of the last steps; `solve` counts the seconds of all, with passes.

    One more light pass says what it loses, and what is lost without the fold of each row.
    """
    begun, first, q = time.perf_counter(), every[0], len(every)
    ridges = [steps.close(parameters) for steps in every]
    are_classes = q > 1 and first.rows.are_signs
    losses = [Multinomial() if are_classes else steps.rows.loss.plain for steps in every]
    link = link_of(losses)
    linear = _together([ridge.predictor for ridge in ridges], link)
    empty = LossErrors(
        q,
        losses=tuple(losses),
        link=link,
        constants=tuple(steps.constant for steps in every),
        columns=tuple(steps.rows.column for steps in every),
        are_signs=first.rows.are_signs,
    )
    measured, unseen = [Evaluation(linear, empty)], None
    if first.unseen is not None:
        of_folds = [steps.unseen.predictors for steps in every]
        without = {k: _together([each[k] for each in of_folds], "identity") for k in of_folds[0]}
        unseen = FoldPredictors(first.unseen.rule, without)
        measured.append(Evaluation(unseen.with_link(link), empty))
    passed = context.read(Composite(*measured), "losses")
    own, *held = (part.measures[0] for part in passed.statistic.parts)
    alphas = np.array([steps.penalty.last for steps in every])
    penalties = 0.5 * alphas * np.square(linear.coef).sum(axis=0)
    report, reports = ridges[0].report, [each for steps in every for each in steps.reports]
    last, passes = report["seconds"], sum(each["seconds"]["pass"] for each in reports)
    spent |= {"pass": passes - last["pass"], "losses": time.perf_counter() - begun}
    spent["solve"] -= passes + last["solve"]
    report = with_seconds(report, **spent) | own.figures()
    for without_fold in held:
        report |= {f"cv_{name}": value for name, value in without_fold.figures().items()}
    curve, rates = first.penalty.curve, isinstance(context.source, ExposedRows)
    report |= {
        **{name: sum(each[name] for each in reports) for name in _COUNTED},
        "alpha_curve": None if curve is None or are_classes else curve.as_dict(),
        "dispersion": None if q > 1 else _dispersion(own, report["effective_dof"], rates=rates),
        "alpha": float(alphas[0]) if are_classes else as_told(alphas),
        "effective_dof": as_told([each.report["effective_dof"] for each in ridges]),
        "train_rmse": as_told(own.rmse),
        "cv_rmse": as_told(held[0].rmse) if held else None,
        "passes": 2 + len(reports),  # that of columns, and that of losses
        "weight": own.weight,
        "loss": name_of(losses[:1] if are_classes else losses),
        "objective": as_told(own.each(own.lost + penalties)),
        "objective_left": as_told(own.each([steps.left for steps in every])),
        "note": "" if context.crowding is None else context.crowding.note(),
    }
    tell_of_solution(report)
    outcome = replace(ridges[0].outcome, alpha=report["alpha"], cv_rmse=report["cv_rmse"])
    known: Any = {"penalty_curve": curve} if q == 1 else dict.fromkeys(_OF_ONE)
    how: Any = {"predictor": replace(linear, link="identity"), "report": report, "outcome": outcome}
    return replace(ridges[0], moments=None, unseen=unseen, **how, **known)


def _dispersion(errors: LossErrors, effective_dof: Any, *, rates: bool) -> float | None:
    """Return what variances are in units of the family's, None where there is no such.

    It is Pearson's statistic over the degrees of freedom that are left; 1 of yes and no.  Weights
    count rows, but not where they are less than 1 on average, or those of rates.
    """
    mean, variance = float(errors.targets.mean[0]), float(errors.targets.variance[0])
    are_signs = np.isclose(variance, mean * (1.0 - mean), rtol=1e-9, atol=0.0)
    if errors.losses[0].name == "logistic" and are_signs:
        return 1.0
    if not np.isfinite(errors.pearson[0]):
        return None
    count = max(errors.weight * (not rates), float(errors.n_rows))
    return float(errors.pearson[0] / max(count - effective_dof, 1.0))


def _together(predictors: Sequence[Predictor], link: str) -> Predictor:
    """Return functions of the same features as one predictor, with a link."""
    coef = np.column_stack([each.coef for each in predictors])
    intercept = np.concatenate([each.intercept for each in predictors])
    flat = len(predictors) == 1
    return replace(predictors[0], coef=coef, intercept=intercept, flat=flat, link=link)
