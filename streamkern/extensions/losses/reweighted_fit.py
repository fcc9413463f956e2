"""A fit of other losses: the calls of `fit.py`, with Newton's steps for one solution."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from streamkern.errors import warn
from streamkern.extensions.losses.loss_errors import LossErrors
from streamkern.extensions.losses.losses import Loss
from streamkern.extensions.losses.newton_steps import Point, Steps, quiet
from streamkern.fitting.draw_features import draw_features
from streamkern.fitting.ridge_result import ridge_result, tell_of_solution
from streamkern.fitting.summarize import summarize
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.models.held_out_predictors import folds_of, unseen_by
from streamkern.parameters.fit_options import large_sample
from streamkern.parameters.fit_report import with_seconds
from streamkern.parameters.parameters import Parameters
from streamkern.passes.checkpoint_job import checkpointed
from streamkern.passes.fit_context import FitContext
from streamkern.predict.evaluation import Evaluation
from streamkern.predict.predictor import Predictor
from streamkern.statistics import Composite

# Passes over the rows, at the most.
_PASSES = 12
# What is said of losses; of a report, what is counted in every pass, and what is of one function.
FIGURES = ("deviance", "log_loss", "huber_loss", "pinball", "d2", "coverage")
_COUNTED = ("retried_shards", "resumed_shards")
_OF_ONE = ("objective", "objective_left", "alpha", "effective_dof", "train_rmse", "cv_rmse")


def reweighted_fit(
    context: FitContext,
    parameters: Parameters,
    losses: Sequence[Loss],
    *,
    are_signs: bool = False,
    start: Predictor | None = None,
) -> tuple[FittedRidge, tuple[Loss, ...], tuple[float, ...]]:
    """Return the regression of losses on targets of rows, linear in the features.

    With it come the losses, which have found their scales, and the constants that suit them best.
    One loss is of every target that is a sign; several are of one target.  `start` is a linear
    function of the same features to begin at.
    """
    source = context.source
    n_sample = max(context.n_sample, large_sample(source.n_features + source.n_targets))
    context = replace(context, searched=[{"losses": [loss.words for loss in losses]}])
    columns = range(source.n_targets) if are_signs else [0] * len(losses)
    with checkpointed(context.planned_again(context.options, n_sample)) as planned:
        rows, summary = summarize(planned)
        if not are_signs:
            p, known = source.n_features, summary.columns
            losses[0].check_some(float(known.minimum[p]), float(known.maximum[p]))
        chosen, features = draw_features(rows, summary)
        ridges, every = [], []
        for k, column in enumerate(columns):
            begin = None
            if start is not None:
                begin = Point(start.feature_map, start.coef[:, k], float(start.intercept[k]))
            steps = Steps.begun(
                losses[k % len(losses)], features, column, begin, are_signs=are_signs
            )
            first = parameters
            if begin is None and not source.sparse_row_bytes:
                first = steps.on_sample(chosen, features, parameters)
            while not steps.is_over and len(steps.reports) < _PASSES:
                steps.read(chosen, features, parameters if steps.reports else first)
            ridges.append(_result(steps, chosen, parameters))
            every.append(steps)
    found = tuple(steps.rows.loss for steps in every), tuple(steps.constant for steps in every)
    return (ridges[0] if len(ridges) == 1 else _joined(ridges), *found)


def _result(steps: Steps, context: FitContext, parameters: Parameters) -> FittedRidge:
    """Return the regression of the last step.

    One more light pass says what it loses, and what is lost without the fold of each row.
    """
    rows, loss, path, reports = steps.rows, steps.rows.loss, steps.path, steps.reports
    if not steps.is_over and steps.left > loss.tolerance:
        warn(
            f"the loss {loss.words} may fall by {steps.left:.1e} of itself yet, after "
            f"{len(reports)} passes; a larger alpha, or inputs without outliers, needs fewer."
        )
    with quiet():
        ridge = ridge_result(path, parameters)
    begun = time.perf_counter()
    of_rows: Any = {"column": rows.column, "are_signs": rows.are_signs}
    of_rows |= {"link": loss.link, "constants": (steps.constant,)}
    empty = LossErrors(1, losses=(loss.plain,), **of_rows)
    means = replace(ridge, predictor=replace(ridge.predictor, link=loss.link))
    folds, measured = folds_of(means), [Evaluation(means.predictor, empty)]
    if folds is not None:
        measured.append(Evaluation(unseen_by(means, folds).held_out, empty))
    passed = context.read(Composite(*measured), "losses")
    own, *unseen = (part.measures[0] for part in passed.statistic.parts)
    before = sum(each["seconds"]["pass"] for each in reports[:-1])
    spent = {"pass": before, "losses": time.perf_counter() - begun}
    report = with_seconds(ridge.report, **spent)
    report |= own.figures() | {"train_rmse": float(own.rmse[0]), "cv_rmse": None}
    if unseen:
        report |= {f"cv_{name}": value for name, value in unseen[0].figures().items()}
        report["cv_rmse"] = float(unseen[0].rmse[0])
    report |= {name: sum(each[name] for each in reports) for name in _COUNTED}
    curve = steps.curve
    report |= {
        "alpha_curve": None if curve is None else curve.as_dict(),
        "passes": 2 + len(reports),  # that of columns, and that of losses
        "loss": loss.words,
        "dispersion": _dispersion(loss, own, ridge.report["effective_dof"]),
        "objective": float(steps.objective - steps.expected),
        "objective_left": float(steps.left),
        "note": path.given.crowding_note,
    }
    tell_of_solution(report)
    outcome = replace(ridge.outcome, cv_rmse=report["cv_rmse"])
    return replace(ridge, report=report, outcome=outcome, penalty_curve=curve, moments=None)


def _dispersion(loss: Loss, errors: LossErrors, effective_dof: float) -> float | None:
    """Return what variances are in units of the family's, None where there is no such.

    It is Pearson's statistic over the degrees of freedom that are left; 1 of yes and no.  Weights
    count rows, but not where they are less than 1 on average.
    """
    mean, variance = float(errors.targets.mean[0]), float(errors.targets.variance[0])
    if loss.name == "logistic" and np.isclose(variance, mean * (1.0 - mean), rtol=1e-9, atol=0.0):
        return 1.0
    if not np.isfinite(errors.pearson[0]):
        return None
    count = max(errors.weight, float(errors.n_rows))
    return float(errors.pearson[0] / max(count - effective_dof, 1.0))


def _joined(ridges: Sequence[FittedRidge]) -> FittedRidge:
    """Return several functions of the same features as one model, without their equations."""
    first, reports = ridges[0], [each.report for each in ridges]
    predictor = replace(
        first.predictor,
        coef=np.column_stack([each.predictor.coef for each in ridges]),
        intercept=np.concatenate([each.predictor.intercept for each in ridges]),
        flat=False,
    )
    of_each = [name for name in first.report if name in _OF_ONE or name.endswith(FIGURES)]
    report = first.report | {name: [each[name] for each in reports] for name in of_each}
    report |= {name: sum(each[name] for each in reports) for name in _COUNTED}
    report["passes"] = 1 + sum(each["passes"] - 1 for each in reports)  # columns are read once
    spent = ("pass", "solve", "losses")
    more = {name: sum(each["seconds"][name] for each in reports[1:]) for name in spent}
    report = with_seconds(report, **more)
    outcome: Any = replace(first.outcome, alpha=report["alpha"], cv_rmse=report["cv_rmse"])
    return replace(
        first, predictor=predictor, report=report, outcome=outcome,
        equations=None, moments=None, penalty_curve=None, support_rows=None,
    )  # fmt: skip
