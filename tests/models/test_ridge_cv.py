"""Features that are there already: scikit-learn's RidgeCV, out of core."""

import naive
import numpy as np
import pytest
from sklearn.linear_model import Ridge, RidgeCV

from streamkern import Gaussian, RandomFeatureRidge
from streamkern.errors import DataError

ALPHAS = np.geomspace(1e-2, 1e5, 15)


def rows(n=403, p=20, q=3):
    """Features that are correlated, and targets of which each has more noise than the last."""
    rng = np.random.default_rng(0)
    X = 5 + rng.standard_normal((n, p)) @ rng.standard_normal((p, p))
    y = X @ rng.standard_normal((p, q)) + [1, 30, 300][:q] * rng.standard_normal((n, q))
    return X, y, rng.choice([0.5, 1.0, 3.0], n)


def identity(**options):
    given = {"feature_map": "identity", "standardize": False, "precision": "double"}
    return RandomFeatureRidge(**given | options)


def assert_same(model, theirs):
    assert np.array_equal(np.array(model.alpha_), theirs.alpha_)
    scale = np.abs(theirs.coef_).max()  # those of scikit-learn 1.6 are off by 4e-10
    assert np.abs(np.transpose(model.coef_) - theirs.coef_).max() < 1e-9 * scale
    assert model.intercept_ == pytest.approx(theirs.intercept_, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize(
    ("intercept", "mode", "weighted", "per_target"),
    [(True, "svd", True, True), (False, "eigen", True, False), (True, "eigen", False, False)],
)
def test_leave_one_out_is_that_of_ridge_cv(intercept, mode, weighted, per_target):
    X, y, s = rows()
    s = s if weighted else None
    options = {"alpha": "loo", "alphas": ALPHAS, "per_target": per_target}
    model = identity(**options, fit_intercept=intercept).fit(X, y, s)
    theirs = RidgeCV(
        ALPHAS,
        fit_intercept=intercept,
        gcv_mode=mode,
        alpha_per_target=per_target,
        store_cv_results=True,
    ).fit(X, y, sample_weight=s)
    assert_same(model, theirs)
    scores = model.penalty_curve_.scores.T * (1 if s is None else s.mean())
    assert scores == pytest.approx(theirs.cv_results_.mean(axis=0), rel=1e-9)
    best = np.sqrt(model.penalty_curve_.at(np.searchsorted(ALPHAS, np.atleast_1d(model.alpha_))))
    assert model.report_["cv_rmse"] == pytest.approx(best.tolist())
    if per_target:
        assert len(set(model.alpha_)) == 3


@pytest.mark.parametrize("n", [400, 403])
def test_contiguous_folds_are_those_of_ridge_cv(n):
    X, y, _ = rows(n)
    options = {"alpha": ALPHAS, "n_folds": 5, "fold_by": "blocks"}
    model = identity(**options).fit(X, y[:, 1])
    theirs = RidgeCV(ALPHAS, cv=5, scoring="neg_mean_squared_error").fit(X, y[:, 1])
    assert_same(model, theirs)
    at = list(model.penalty_curve_.alphas).index(model.alpha_)
    folds = model.penalty_curve_.fold_scores[:, at, 0]
    assert folds.mean() == pytest.approx(-theirs.best_score_, rel=1e-9)


@pytest.mark.parametrize(
    ("feature_map", "precision"), [("orthogonal", "single"), ("nystroem", "double")]
)
def test_every_map_leaves_rows_out(feature_map, precision):
    X, y, s = rows(120, 3, 2)
    model = RandomFeatureRidge(
        Gaussian(1.0), n_components=24, feature_map=feature_map, alpha="loo", precision=precision
    ).fit(X, y, s)
    Phi = model.transform(X)
    at = list(model.penalty_curve_.alphas).index(model.alpha_)
    errors = naive.left_out_errors(Phi, y, s, model.alpha_, intercept=True)
    expected = np.average(errors**2, axis=0, weights=s)
    rel = 1e-3 if precision == "single" else 1e-6
    assert model.penalty_curve_.scores[at] == pytest.approx(expected, rel=rel)
    assert len(model.penalty_curve_.alphas) == 30


def test_bad_rows_are_left_out_of_the_third_reading_too():
    X, y, _ = rows()
    clean = identity(alpha="loo").fit(X, y)
    worse = np.vstack([X, np.full((1, X.shape[1]), np.nan)])
    model = identity(alpha="loo", on_bad_rows="skip").fit(worse, np.vstack([y, y[:1]]))
    assert model.alpha_ == pytest.approx(clean.alpha_)
    assert model.penalty_curve_.scores == pytest.approx(clean.penalty_curve_.scores)


def test_penalties_at_which_rows_predict_themselves_are_not_chosen():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 40)), rng.standard_normal(30)
    model = identity(alpha="loo", alphas=[1e-12, 1e-11, 10.0]).fit(X, y)
    assert model.alpha_ == 10.0
    assert model.report_["alpha_curve"]["values"][:2] == [None, None]
    with pytest.raises(DataError, match="some row has a leverage of 1 in double precision; give"):
        identity(alpha="loo", alphas=[1e-12, 1e-11]).fit(X, y)


def test_a_grid_can_be_given_for_every_criterion():
    X, y, _ = rows(q=1)
    for alpha in ("cv", "gcv", "evidence", "loo"):
        model = identity(alpha=alpha, alphas=[10.0, 1.0]).fit(X, y[:, 0])
        curve, report = model.penalty_curve_, model.report_
        assert (curve.criterion, curve.alphas.tolist()) == (alpha, [1.0, 10.0])
        folds = (5, "rows") if alpha == "cv" else (0, None)
        assert (report["n_folds"], report["fold_by"]) == folds
        assert (report["cv_rmse"] is None) == (alpha in {"gcv", "evidence"})
    listed, named = identity(alpha=[1.0, 10.0]), identity(alpha="cv", alphas=[1.0, 10.0])
    assert np.array_equal(listed.fit(X, y).coef_, named.fit(X, y).coef_)


def test_the_error_of_all_features_is_not_said_of_a_few():
    X, y, _ = rows()
    model = identity(alpha="loo", sparse=5).fit(X, y[:, 0])
    assert len(model.coef_) == 5
    assert model.report_["cv_rmse"] is None
    assert model.report_["alpha_curve"]["criterion"] == "loo"


def test_without_an_intercept_a_constant_column_counts():
    rng = np.random.default_rng(0)
    X = np.c_[rng.standard_normal((200, 3)), np.ones(200)]
    y = X @ [1.0, -2.0, 0.5, 5.0]
    model = identity(fit_intercept=False, alpha=1.0).fit(X, y)
    expected = Ridge(1.0, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
