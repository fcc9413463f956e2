"""A fit of other losses: the calls of `fit.py`, with Newton's steps for one solution."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.errors import warn
from streamkern.extensions.losses.exponential_families import Multinomial
from streamkern.extensions.losses.exposed_rows import ExposedRows
from streamkern.extensions.losses.joint_steps import JointSteps
from streamkern.extensions.losses.loss import Loss
from streamkern.extensions.losses.loss_errors import LossErrors
from streamkern.extensions.losses.loss_names import LOG_LOSSES, name_of
from streamkern.extensions.losses.newton_steps import Point, Steps
from streamkern.fitting.draw_features import draw_features
from streamkern.fitting.ridge_result import tell_of_solution
from streamkern.fitting.summarize import summarize
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.parameters.fit_options import large_sample
from streamkern.parameters.fit_report import with_seconds
from streamkern.parameters.parameters import Parameters
from streamkern.passes.checkpoint_job import checkpointed
from streamkern.passes.fit_context import FitContext
from streamkern.predict.evaluation import Evaluation, FoldPredictors
from streamkern.predict.predictor import Predictor
from streamkern.statistics import Composite

# Steps of a function over all rows, at the most.
_CYCLES = 12
# What is said of losses; of a report, what is counted in every pass, and what is of one function.
FIGURES = ("deviance", "log_loss", "huber_loss", "pinball", "d2", "coverage")
_COUNTED = ("retried_shards", "resumed_shards")
_OF_ONE = ("objective", "objective_left", "alpha", "effective_dof", "train_rmse", "cv_rmse")


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
    names = LOG_LOSSES if are_signs else (name_of(losses),)
    start = None if like is None or like.loss not in names else like.start
    n_functions = source.n_targets if are_signs else len(losses)
    start = start if start is not None and start.n_targets == n_functions else None
    n_sample = max(context.n_sample, large_sample(source.n_features + source.n_targets))
    context = replace(context, searched=[{"losses": [loss.words for loss in losses]}])
    columns = range(source.n_targets) if are_signs else [0] * len(losses)
    with checkpointed(context.planned_again(context.options, n_sample)) as planned:
        rows, summary = summarize(planned)
        if not are_signs:
            p, known = source.n_features, summary.columns
            losses[0].check_some(float(known.minimum[p]), float(known.maximum[p]))
        chosen, features = draw_features(rows, summary)
        every = []
        for k, column in enumerate(columns):
            begin = None
            if start is not None:
                begin = Point(start.feature_map, start.coef[:, k], float(start.intercept[k]))
            loss = losses[k % len(losses)]
            every.append(Steps.begun(loss, features, column, begin, are_signs=are_signs))
        groups = [every] if are_signs else [[each] for each in every]
        ridges = []
        for functions in map(JointSteps.of, groups):
            first = [parameters] * len(functions)
            if not source.sparse_row_bytes:
                first = functions.on_sample(chosen, features, parameters)
            for cycle in range(_CYCLES):
                each = [parameters] * len(functions) if cycle else first
                functions.read(chosen, features, each)
                if functions.is_over(functions[0].rows.loss.tolerance):
                    break
            ridges.append(_result(functions, chosen, parameters))
    found = tuple(steps.rows.loss for steps in every), tuple(steps.constant for steps in every)
    return (ridges[0] if len(ridges) == 1 else _joined(ridges), *found)


def _result(functions: JointSteps, context: FitContext, parameters: Parameters) -> FittedRidge:
    """Return the regression of the last steps.

    One more light pass says what it loses, and what is lost without the fold of each row.
    """
    first, reports = functions[0], [each for steps in functions for each in steps.reports]
    loss: Loss = Multinomial() if len(functions) > 1 else first.rows.loss.plain
    if not functions.is_over(first.rows.loss.tolerance) and functions.left > loss.tolerance:
        warn(
            f"the loss {loss.words} may fall by {functions.left:.1e} of itself yet, after "
            f"{len(reports)} passes; a larger alpha, or inputs without outliers, needs fewer."
        )
    begun = time.perf_counter()
    ridges = [steps.close(parameters) for steps in functions]
    ridge = ridges[0] if len(ridges) == 1 else _joined(ridges)
    link, q = loss.link, len(functions)
    empty = LossErrors(
        q,
        losses=(loss,) * q,
        link=link,
        constants=tuple(steps.constant for steps in functions),
        columns=tuple(steps.rows.column for steps in functions),
        are_signs=first.rows.are_signs,
    )
    measured = [Evaluation(replace(ridge.predictor, link=link), empty)]
    if first.unseen is not None:
        unseen: Any = [steps.unseen for steps in functions]
        without = {fold: _together([each.predictors[fold] for each in unseen])
                   for fold in first.unseen.predictors}  # fmt: skip
        held_out = {fold: replace(each, link=link) for fold, each in without.items()}
        measured.append(Evaluation(FoldPredictors(first.unseen.rule, held_out), empty))
    passed = context.read(Composite(*measured), "losses")
    own, *held = (part.measures[0] for part in passed.statistic.parts)
    before = sum(each["seconds"]["pass"] for each in reports) - ridge.report["seconds"]["pass"]
    spent = {"pass": before, "losses": time.perf_counter() - begun}
    report = with_seconds(ridge.report, **spent)
    report |= own.figures() | {"train_rmse": _plain(own.rmse), "cv_rmse": None}
    if held:
        report |= {f"cv_{name}": value for name, value in held[0].figures().items()}
        report["cv_rmse"] = _plain(held[0].rmse)
    report |= {name: sum(each[name] for each in reports) for name in _COUNTED}
    curve = first.curve if q == 1 else None
    dof, rates = ridge.report["effective_dof"], isinstance(context.source, ExposedRows)
    coef, alphas = ridge.predictor.coef, np.array([steps.alpha for steps in functions])
    report |= {
        "alpha_curve": None if curve is None else curve.as_dict(),
        "passes": 2 + len(reports),  # that of columns, and that of losses
        "weight": own.weight,
        "loss": loss.words,
        "dispersion": None if q > 1 else _dispersion(loss, own, dof, rates=rates),
        "objective": float(own.lost.sum() + 0.5 * np.sum(alphas * np.square(coef).sum(axis=0))),
        "objective_left": float(functions.left),
        "note": "" if context.crowding is None else context.crowding.note(),
    }
    if q > 1:
        report["alpha"] = float(alphas[0])
    tell_of_solution(report)
    outcome = replace(ridge.outcome, alpha=report["alpha"], cv_rmse=report["cv_rmse"])
    return replace(ridge, report=report, outcome=outcome, penalty_curve=curve, moments=None)


def _dispersion(
    loss: Loss, errors: LossErrors, effective_dof: float, *, rates: bool
) -> float | None:
    """Return what variances are in units of the family's, None where there is no such.

    It is Pearson's statistic over the degrees of freedom that are left; 1 of yes and no.  Weights
    count rows, but not where they are less than 1 on average, or those of rates.
    """
    mean, variance = float(errors.targets.mean[0]), float(errors.targets.variance[0])
    if loss.name == "logistic" and np.isclose(variance, mean * (1.0 - mean), rtol=1e-9, atol=0.0):
        return 1.0
    if not np.isfinite(errors.pearson[0]):
        return None
    count = max(errors.weight * (not rates), float(errors.n_rows))
    return float(errors.pearson[0] / max(count - effective_dof, 1.0))


def _plain(values: Floats) -> Any:
    return values[0].item() if len(values) == 1 else values.tolist()


def _together(predictors: Sequence[Predictor]) -> Predictor:
    """Return functions of the same features as one predictor."""
    coef = np.column_stack([each.coef for each in predictors])
    intercept = np.concatenate([each.intercept for each in predictors])
    return replace(predictors[0], coef=coef, intercept=intercept, flat=False)


def _joined(ridges: Sequence[FittedRidge]) -> FittedRidge:
    """Return several functions of the same features as one model, without their equations."""
    first, reports = ridges[0], [each.report for each in ridges]
    predictor = _together([each.predictor for each in ridges])
    of_each = [name for name in first.report if name in _OF_ONE or name.endswith(FIGURES)]
    report = first.report | {name: [each[name] for each in reports] for name in of_each}
    report |= {name: sum(each[name] for each in reports) for name in _COUNTED}
    report["passes"] = 1 + sum(each["passes"] - 1 for each in reports)  # columns are read once
    spent = ("pass", "solve", "losses")
    more = {n: sum(each["seconds"].get(n, 0.0) for each in reports[1:]) for n in spent}
    report = with_seconds(report, **more)
    outcome: Any = replace(first.outcome, alpha=report["alpha"], cv_rmse=report["cv_rmse"])
    return replace(
        first, predictor=predictor, report=report, outcome=outcome,
        equations=None, moments=None, penalty_curve=None, support_rows=None,
    )  # fmt: skip
