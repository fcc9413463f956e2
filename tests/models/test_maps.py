"""Landmarks, from the rows of a file to predictions."""

import naive
import numpy as np
import pytest

from streamkern import RandomFeatureRidge
from streamkern.errors import ParameterError
from streamkern.kernels import Gaussian
from streamkern.parameters.parameters import Parameters
from streamkern.parameters.planning import plan_here
from streamkern.sources import ArraySource

N, P, D = 700, 3, 32


def rows(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P)) * [1.0, 5.0, 0.1] + [0.0, 20.0, -1.0]
    y = np.sin(X[:, 0]) + 0.2 * (X[:, 1] - 20) * (X[:, 2] + 1) + 0.1 * rng.standard_normal(n)
    return X, y


X, Y = rows()


def model(**options) -> RandomFeatureRidge:
    given = {"n_components": D, "alpha": 0.01, "precision": "double", "n_folds": 3} | options
    return RandomFeatureRidge(Gaussian("median"), feature_map="nystroem", **given)


def close(actual, expected, relative=1e-7):
    expected = np.asarray(expected)
    return np.abs(np.asarray(actual) - expected).max() <= relative * np.abs(expected).max()


def ridge_on(Phi, y, alpha, *, intercept=True):
    """Predictions of the rows of features by ridge regression on them."""
    w, mu = naive.weighted_ridge(Phi, y[:, None], np.ones(len(y)), alpha, intercept=intercept)
    return (Phi @ w + mu)[:, 0]


@pytest.mark.parametrize(("precision", "intercept"), [("double", True), ("single", False)])
def test_a_fit_is_ridge_on_the_features_of_the_map(intercept, precision):
    alpha = 0.01 if precision == "double" else 1.0
    fitted = model(alpha=alpha, fit_intercept=intercept, precision=precision).fit(X, Y)
    exact = ridge_on(fitted.transform(X), Y, alpha, intercept=intercept)
    assert close(fitted.predict(X), exact, 1e-7 if precision == "double" else 2e-3)
    assert fitted.report_["n_components"] <= D


def test_in_single_precision_whitened_sums_keep_the_small_eigenvalues():
    X, y = rows(4000)
    options = {"alpha": 1e-5 * len(X), "n_components": 256}
    models = (model(precision=each, **options) for each in ("single", "double"))
    single, double = (each.fit(X, y).predict(X) for each in models)
    assert np.std(single - double) < 0.01 * np.std(double)


# Fewer features.


def test_the_number_of_features_is_chosen_among_the_leading_ones():
    fitted = model(n_components="auto", alpha="cv").fit(X, Y)
    tried = fitted.report_["components_curve"]["n_components"]
    assert len(tried) > 1
    assert len(fitted.coef_) in tried
    assert fitted.evaluate(X, Y)["r2"] > 0.85


def test_landmarks_that_rows_do_not_make_are_not_missed():
    X, y = rows(40)
    X, y = np.repeat(X, 10, axis=0), np.repeat(y, 10)
    y = y + 0.01 * np.arange(len(y)) / len(y)
    options = {"n_components": 64, "alpha": 0.1, "fold_by": "rows"}
    moments = model(**options).moments(X, y)
    assert moments.feature_map.n_components <= 40
    solved = model(**options).solve(moments)
    assert close(solved.predict(X), model(**options).fit(X, y).predict(X))
    with pytest.raises(ParameterError, match="but n_components is 100"):
        model(n_components=100).solve(moments)


# Options.


def test_the_plan_knows_what_landmarks_take():
    source = ArraySource(np.zeros((200_000, P)), np.zeros(200_000))
    options = Parameters.of(model(n_components=1024, alpha=0.1)).pass_options()
    plan = plan_here(source, options)
    fourier = Parameters(
        "gaussian", n_components=1024, alpha=0.1, precision="double"
    ).pass_options()
    base = plan_here(source, fourier)
    assert not options.can_strip
    assert (options.sample_rows(source), fourier.sample_rows(source)) == (8 * 1024, 2048)
    assert plan.worker_bytes - base.worker_bytes > 3 * 8 * 1024**2
    assert plan.client_bytes - base.client_bytes > 5 * 8 * 1024**2
