"""Landmarks, from the rows of a file to predictions."""

import naive
import numpy as np
import pytest

import streamkern
from streamkern import RandomFeatureRidge
from streamkern.errors import ParameterError
from streamkern.features import solve_map
from streamkern.kernels import Gaussian
from streamkern.parameters.parameters import Parameters
from streamkern.parameters.plan import plan_here
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


# Files.


@pytest.mark.parametrize("precision", ["double", "single"])
def test_forgetting_what_was_merged_is_never_having_read_it(precision):
    options = {"precision": precision, "alpha": 1.0}
    relative = 1e-7 if precision == "double" else 1e-3

    def solved(moments):
        return model(**options).solve(moments).predict(X)

    first = model(**options).moments(X[:500], Y[:500])
    merged = first.merge(model(**options).moments(X[500:], Y[500:], like=first))
    whole = model(**options).fit(X, Y, like=first)
    assert whole.feature_map_.equals(model().fit(X, Y, like=whole).feature_map_)
    assert close(solved(merged), whole.predict(X), relative)
    assert close(solved(merged.forget(X[500:], Y[500:])), solved(first), relative)


# Fewer features.


def test_the_number_of_features_is_chosen_among_the_leading_ones():
    fitted = model(n_components="auto", alpha="cv").fit(X, Y)
    tried = fitted.report_["components_curve"]["n_components"]
    assert len(tried) > 1
    assert len(fitted.coef_) in tried
    assert fitted.evaluate(X, Y)["r2"] > 0.85


def test_fewer_features_are_the_fit_of_the_first_landmarks():
    whole = model().moments(X, Y)
    few = model(n_components=10).solve(whole)
    Phi = solve_map(whole.feature_map)[0].transform(X)[:, :10]
    assert close(few.predict(X), ridge_on(Phi, Y, 0.01), 1e-6)


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


def test_a_sparse_model_predicts_from_the_features_it_kept(tmp_path):
    fitted = model(sparse=6).fit(X, Y)
    assert len(fitted.coef_) == 6
    assert fitted.evaluate(X, Y)["r2"] > 0.3
    fitted.save(tmp_path / "sparse.h5")
    back = streamkern.load(tmp_path / "sparse.h5")
    assert np.array_equal(back.predict(X), fitted.predict(X))


# Options.


def test_the_plan_knows_what_landmarks_take():
    source = ArraySource(np.zeros((200_000, P)), np.zeros(200_000))
    options = Parameters.of(model(n_components=1024, alpha=0.1)).passes()
    plan = plan_here(source, options)
    fourier = Parameters("gaussian", n_components=1024, alpha=0.1, precision="double").passes()
    base = plan_here(source, fourier)
    assert not options.can_strip
    assert (options.sample_rows(source), fourier.sample_rows(source)) == (8 * 1024, 2048)
    assert plan.worker_bytes - base.worker_bytes > 3 * 8 * 1024**2
    assert plan.client_bytes - base.client_bytes > 5 * 8 * 1024**2
