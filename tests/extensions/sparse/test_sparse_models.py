"""Models of few features: made from fitted ones, or fitted, and normal in every way."""

from functools import cache

import naive
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from tolerances import assert_close

import streamkern
from streamkern import Gaussian, Linear, RandomFeatureRidge, sparsify
from streamkern.errors import DataError, ModelFileError, ParameterError
from streamkern.extensions.sparse.selection import METHODS

N, P, D, K = 400, 3, 48, 11
every_method = pytest.mark.parametrize("method", list(METHODS))


def rows(q=None, n=N):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, P))
    y = np.stack([np.sin(2 * X[:, 0]), 40 + X[:, 1] * X[:, 2]], axis=1)
    y += [0.1, 0.5] * rng.standard_normal(y.shape)
    return X, y[:, 0] if q is None else y[:, :q]


def ridge(q=None, **options) -> RandomFeatureRidge:
    """A fitted model; the same one wherever the same is asked for."""
    return _ridge(q, tuple(options.items()))


@cache
def _ridge(q, options):
    defaults = {"kernel": Gaussian(1.2), "n_components": D, "alpha": 0.01, "precision": "double"}
    return RandomFeatureRidge(**defaults | dict(options)).fit(*rows(q))


def same_bits(one, other) -> bool:
    return np.array_equal(one.coef_, other.coef_) and np.array_equal(
        one.predict(rows()[0]), other.predict(rows()[0])
    )


def explicit(model, q, *, intercept=True):
    """The coefficients of ridge on the features that the model has, from all rows."""
    X, y = rows(q)
    Phi = model.transform(X)
    y = y.reshape(N, -1)
    alphas = np.broadcast_to(model.alpha_, y.shape[1])
    found = [
        naive.weighted_ridge(Phi, y[:, [j]], np.ones(N), alpha, intercept=intercept)
        for j, alpha in enumerate(alphas)
    ]
    return Phi, np.hstack([w for w, _ in found]), np.hstack([mu for _, mu in found])


@pytest.mark.parametrize(
    ("method", "q", "intercept"),
    [("forward", None, True), ("forward", 2, False), ("lasso", 2, True)],
)
def test_a_sparse_model_is_ridge_on_its_features(method, q, intercept):
    sparse = sparsify(ridge(q, fit_intercept=intercept), K, method=method)
    Phi, w, mu = explicit(sparse, q, intercept=intercept)
    _, y = rows(q)
    fitted = Phi @ w + mu
    assert Phi.shape == (N, K)
    assert_close(sparse.coef_.reshape(K, -1), w, steps=1e7)
    assert_close(sparse.predict(rows()[0]).reshape(N, -1), fitted, steps=1e7)
    errors = np.sqrt(((fitted - y.reshape(N, -1)) ** 2).mean(axis=0))
    assert np.atleast_1d(sparse.report_["train_rmse"]) == pytest.approx(errors, rel=1e-6)
    whole = ridge(q, fit_intercept=intercept).transform(rows()[0])
    apart = np.abs(whole[:, :, None] - Phi[:, None, :]).max(axis=0).min(axis=0)
    assert (apart < 1e-13).all()


def test_the_full_model_stays_as_it_is():
    full = ridge()
    before, report = full.predict(rows()[0], return_std=True), dict(full.report_)
    sparsify(full, K)
    assert full.report_ == report
    assert np.array_equal(full.predict(rows()[0], return_std=True), before)
    assert full.get_params()["sparse"] is None


@pytest.mark.parametrize(("method", "q"), [("forward", 2), ("lasso", None)])
def test_fitting_a_sparse_model_is_fitting_the_full_one_and_choosing(method, q):
    fitted = ridge(q, sparse=K, sparse_method=method)
    chosen = sparsify(ridge(q), K, method=method)
    assert fitted.get_params() == chosen.get_params()
    assert chosen.report_["cv_rmse"] is None
    assert_close(fitted.predict(rows()[0]), chosen.predict(rows()[0]), steps=1e7)
    for name in ("n_components", "sparse_of", "sparse_method", "alpha", "kernel"):
        assert fitted.report_[name] == chosen.report_[name]


@every_method
def test_inputs_are_chosen_for_a_linear_model_and_the_others_are_not_read(method):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N, 9)) * np.logspace(0, 3, 9) + 5
    y = 2 * X[:, 4] - 3 * X[:, 7] + 0.1 * rng.standard_normal(N)
    full = RandomFeatureRidge(Linear(), alpha=1e-3, precision="double").fit(X, y)
    sparse = sparsify(full, 2, method=method)
    standardizer = sparse.feature_map_.standardizer
    assert standardizer.columns.tolist() == [4, 7]
    assert_close(sparse.coef_ / standardizer.deviation, [2.0, -3.0], steps=1e13)
    unread = X.copy()
    unread[:, [0, 1, 2, 3, 5, 6, 8]] = np.nan
    assert np.array_equal(sparse.predict(X), sparse.predictor_.predict(unread))


def test_a_sparse_model_is_made_sparser():
    sparse = sparsify(sparsify(ridge(), 20), 5)
    _, w, mu = explicit(sparse, None)
    assert_close(sparse.coef_, w[:, 0], steps=1e7)
    assert_close(sparse.intercept_, mu[0], steps=1e7)
    assert sparse.report_["sparse_of"] == D


# Chosen by the folds.


def auto(**options) -> RandomFeatureRidge:
    return ridge(**{"alpha": "cv", "sparse": "auto", "n_components": 64} | options)


def test_a_number_that_is_given_has_the_error_left_out_of_the_curve():
    full, curve = auto(sparse=None), auto().report_["sparse_curve"]
    assert curve["cv_rmse"][-1] == full.report_["cv_rmse"]
    assert full.report_["sparse_curve"] is None
    for size, error in list(zip(curve["n_components"], curve["cv_rmse"], strict=True))[3::4]:
        assert auto(sparse=size).report_["cv_rmse"] == pytest.approx(error, rel=1e-12)


# Refusals.


def test_a_bad_choice_is_refused(tmp_path):
    for size, method, sentence in (
        (D + 1, "forward", "no more features than the 48 .* not 49"),
        (0, "forward", "at least 1 feature, not 0"),
        ("auto", "forward", "must be a whole number, not 'auto'"),
        (3, "best", "must be one of forward, lasso, not 'best'"),
    ):
        with pytest.raises(ParameterError, match=sentence):
            sparsify(ridge(), size, method=method)
    with pytest.raises(NotFittedError):
        sparsify(RandomFeatureRidge(), 3)
    with pytest.raises(ParameterError, match="made of a RandomFeatureRidge, not of dict"):
        sparsify({}, 3)
    ridge().save(tmp_path / "small.h5", compact=True)
    with pytest.raises(ModelFileError, match=r"sparse models need .* save it with compact=False"):
        sparsify(streamkern.load(tmp_path / "small.h5"), 3)
    with pytest.raises(DataError, match="X has 4 features, but"):
        sparsify(ridge(), 3).predict(np.ones((2, 4)))
