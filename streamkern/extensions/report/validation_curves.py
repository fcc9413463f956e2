"""Validation curves: the criterion over penalties and over numbers of features.

All errors are roots of mean squares over the standard deviation of the target, so that 1 is what
predicting the mean costs; of several targets, the mean of the squares.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkern._typing import Floats
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.models.held_out_predictors import folds_of
from streamkern.solve.penalty_curve import PenaltyCurve, errors_of_roots
from streamkern.solvers.fold_solution import nested_sizes
from streamkern.solvers.penalty_search import solve_sizes


@dataclass(frozen=True)
class Curve:
    """A criterion over m values to choose from: an error to be least, or the evidence.

    `errors` (m,) are standard errors across folds, `folds` (K, m) the values of every fold, and
    `targets` (m, q) those of every target where each has its own choice in `chosen`.  `threshold`
    is what a value had to be within, by the rule of one standard error.
    """

    criterion: str
    x: Floats
    values: Floats
    chosen: list[int]
    errors: Floats | None = None
    folds: Floats | None = None
    targets: Floats | None = None
    threshold: float | None = None


def penalty_curve(model: FittedRidge) -> Curve | None:
    """Return the curve that the penalty was chosen from, or None where it is not known."""
    curve = _curve_of(model)
    if curve is None:
        return None
    alphas = np.atleast_1d(np.asarray(model.alpha, dtype=float))
    chosen = np.searchsorted(curve.alphas, alphas * (1.0 - 1e-12)).tolist()
    several = len(chosen) > 1
    if curve.criterion == "evidence":
        each = -curve.scores
        own = each if several else None
        return Curve("evidence", curve.alphas, each.mean(axis=1), chosen, targets=own)
    scores, errors = np.array([curve.combined(np.array([a])) for a in range(len(curve.alphas))]).T
    values, spread, folds, threshold = np.sqrt(scores), None, None, None
    if curve.fold_scores is not None:
        spread = errors_of_roots(values, errors)
        folds = np.sqrt((curve.fold_scores / curve.scale).mean(axis=2))
        if model.parameters.one_standard_error and not several:
            threshold = float(np.sqrt((scores + errors)[np.argmin(scores)]))
    own = np.sqrt(curve.scores / curve.scale) if several else None
    return Curve(curve.criterion, curve.alphas, values, chosen, spread, folds, own, threshold)


def _curve_of(model: FittedRidge) -> PenaltyCurve | None:
    """Return the curve of a fit, or what the card of a model that was loaded tells of it."""
    found: dict[str, Any] | None = model.report.get("alpha_curve")
    if model.penalty_curve is not None or found is None:
        return model.penalty_curve
    alphas, values = np.array(found["alphas"]), np.array(found["values"], dtype=float)
    values = np.where(np.isfinite(values), values, np.inf).reshape(len(alphas), -1)
    scale = np.ones(values.shape[1])
    if found["criterion"] == "evidence":
        return PenaltyCurve("evidence", alphas, -values, scale)
    if model.equations is None:  # which say how much the targets vary
        return None
    scale = np.square(model.target_spread[1])
    if found["criterion"] == "loo":
        return PenaltyCurve.of_rows(alphas, values**2, scale)
    return PenaltyCurve(found["criterion"], alphas, values**2, scale)


def components_curve(model: FittedRidge) -> Curve | None:
    """Return the cross-validated error over the number of features, or None where it is not known.

    Where only the penalty was chosen, but the moments of folds are kept, the smaller numbers are
    tried now, which reads no rows: each is a leading part of the same moments.
    """
    found, curve = model.report.get("components_curve"), model.penalty_curve
    if found is not None:
        return _sizes(found, model.outcome.sparse_of or model.outcome.n_components)
    if curve is None or curve.fold_scores is None or model.outcome.sparse_of:
        return None
    D, folds = len(model.predictor.coef), folds_of(model)
    sizes = [size for size in nested_sizes(D, model.feature_map.nesting) if size < D]
    if folds is None or not sizes or model.moments.options.is_identity:  # type: ignore[union-attr]
        return None
    penalty = model.parameters.penalty
    tried = solve_sizes(folds, penalty, intercept=model.parameters.fit_intercept, sizes=sizes)
    scores = [size.curve.combined(size.chosen) for size in tried]
    alphas = np.atleast_1d(np.asarray(model.alpha, dtype=float))
    scores.append(curve.combined(np.searchsorted(curve.alphas, alphas)))
    relative, errors = zip(*scores, strict=True)
    facts = {"n_components": [*sizes, D], "relative_mse": relative, "standard_errors": errors}
    return _sizes(facts, D)


def sparsity_curve(model: FittedRidge) -> Curve | None:
    found = model.report.get("sparse_curve")
    return None if found is None else _sizes(found, model.outcome.n_components)


def _sizes(found: dict[str, Any], chosen: int) -> Curve:
    values, sizes = np.sqrt(np.array(found["relative_mse"])), list(found["n_components"])
    errors = errors_of_roots(values, np.array(found["standard_errors"]))
    return Curve("cv", np.array(sizes, dtype=float), values, [sizes.index(chosen)], errors)
