"""A model of few features, made of one of many without reading a row."""

import time
from dataclasses import replace

import numpy as np

from streamkern._typing import Array, Floats
from streamkern.engine.scheduler import compute, delayed, scatter
from streamkern.errors import ParameterError, warn
from streamkern.estimators.base import estimator_of
from streamkern.estimators.random_feature_ridge import RandomFeatureRidge
from streamkern.extensions.sparse.selection import Sparsifier, checked_method, checked_size
from streamkern.features import trended
from streamkern.models.fitted_ridge import FittedRidge
from streamkern.models.report_facts import facts_of
from streamkern.solve import NormalEquations, RidgeSolution


def sparsify(
    model: RandomFeatureRidge, n_components: int, *, method: str = "forward"
) -> RandomFeatureRidge:
    """Return a model of the best K features of a fitted one, which stays as it is.

    Nothing is read but the model: its normal equations hold all that choosing features and solving
    for their coefficients needs.  The penalty stays the same.

    Parameters
    ----------
    model : RandomFeatureRidge
        Fitted, or loaded from a file that was not saved compact.
    n_components : int
        K, the number of features.
    method : {'forward', 'lasso'}
        How features are chosen: each the one that lowers the sum of squares most;
        or the path of the lasso, at its first point with K features.

    Returns
    -------
    RandomFeatureRidge
        Fitted.  Its `report_` has no cross-validated error; fit with `sparse` for one.

    Raises
    ------
    ParameterError
        If K is not a whole number from 1 to D, or there is no such method.
    ModelFileError
        If the model was saved without its normal equations.

    References
    ----------
    Chen, Chng and Alkadhimi (1996), "Regularized orthogonal least squares algorithm for
    constructing radial basis function networks".
    """
    if not isinstance(model, RandomFeatureRidge):
        raise ParameterError(
            f"sparse models are made of a RandomFeatureRidge, not of {type(model).__name__}; give "
            f"a fitted one."
        )
    return estimator_of(sparse_model(model.__streamkern_model__, n_components, method))


def sparse_model(model: FittedRidge, n_components: int, method: str = "forward") -> FittedRidge:
    """Return the fitted model of the best K features of another; parameters are as above."""
    begun, full = time.perf_counter(), model.predictor
    if (beside := trended(full.feature_map)) is not None:
        raise ParameterError(beside.no_choice)
    if model.outcome.by_gradients:
        raise ParameterError(
            "a model that conjugate gradients solved knows few directions of its features, of "
            "which none can be left out; fit with solver 'direct' (--solver direct)."
        )
    D, alpha = len(full.coef), model.alpha
    K, report = checked_size(n_components, D), model.report.copy()
    alpha = np.array(alpha) if isinstance(alpha, list) else alpha
    equations, predictor, outcome = model.normal_equations, full, model.outcome
    sparsifier = Sparsifier(checked_method(method), alpha, equations.floor)
    if K < D:
        arguments = scatter(equations), full.coef, full.intercept, sparsifier, K
        support, solution, equations = compute(delayed(_chosen, *arguments, name="sparsify"))
        if solution.note:
            warn(solution.note)
        part, coef, intercept = full.feature_map.subset(support), solution.coef, solution.intercept
        predictor = replace(full, feature_map=part, coef=coef, intercept=intercept)
        report |= facts_of(solution, equations, full.flat)
        report |= {"note": solution.note, "cv_rmse": None}
        outcome = replace(outcome, n_components=K, alpha=report["alpha"], cv_rmse=None)
    origin = outcome.sparse_of or D
    parameters = replace(model.parameters, sparse=K, sparse_method=method)
    if parameters.n_components == "auto":
        parameters = replace(parameters, n_components=origin)
    report |= {
        "seconds": report["seconds"] | {"sparsify": time.perf_counter() - begun},
        "sparse_of": origin,
        "sparse_method": method,
        "sparse_curve": None,
    }
    known = model.support_rows and model.support_rows.of_map(predictor.feature_map)
    outcome = replace(outcome, sparse_of=origin)
    how = report, model.columns, outcome, equations
    return FittedRidge(parameters, predictor, *how, support_rows=known)


def _chosen(
    equations: NormalEquations, coef: Floats, intercept: Floats, sparsifier: Sparsifier, K: int
) -> tuple[Array, RidgeSolution, NormalEquations]:
    moments = equations.moments(coef, intercept)
    return sparsifier.chosen(moments, K)
