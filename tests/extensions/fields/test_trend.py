"""A trend beside a field: universal kriging, by waves with the terms of the trend before them."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

import streamkern
from streamkern import Matern, RandomFeatureClassifier, RandomFeatureRidge
from streamkern.errors import ParameterError
from streamkern.extensions.fields import toeplitz

pytestmark = pytest.mark.filterwarnings("ignore:the error still falls", "ignore:weights are below")

N = 900
LENGTH, NOISE, PLACES = 0.4, 0.2, ["east", "north"]
USUAL = {"feature_map": "grid", "n_components": 301, "trend": ["height", "linear"]}


def kernel(A, B):
    d = np.sqrt(3.0 * ((A[:, None] - B) ** 2).sum(axis=-1)) / LENGTH
    return (1.0 + d) * np.exp(-d)


@cache
def field(n=N, seed=0):
    """Return rows whose height is rough, and targets: a Matern 3/2 field and straight lines."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(0.0, 2.0, (n, 2)), columns=PLACES)
    X.insert(1, "height", 500.0 + 100.0 * rng.standard_normal(n) + 80.0 * np.sin(9.0 * X["east"]))
    covariance = kernel(*[X[PLACES].to_numpy()] * 2) + 1e-9 * np.eye(n)
    f = np.linalg.cholesky(covariance) @ rng.standard_normal(n)
    y = f + 0.03 * X["height"] - 2.0 * X["east"] + NOISE * rng.standard_normal(n)
    return X, y.to_numpy()


def fitted(q=None, weights=None, waves=None, **options):
    X, y = field()
    y = y if q is None else np.column_stack([y, X["height"] / 50.0 - 2.0 * y])
    model = RandomFeatureRidge(**{"kernel": Matern(0.7, nu=1.5), "alpha": 0.1} | USUAL | options)
    with pytest.MonkeyPatch.context() as patched:
        if waves is not None:
            patched.setattr(toeplitz, "is_summed_by_waves", lambda *_: waves)
        return model.fit(X, y, weights)


def assert_alike(one, other, digits=1e-6, std=1e-6):
    X, models = field(300, 1)[0], (one, other)
    (mine, my_std), (theirs, their_std) = (m.predict(X, return_std=True) for m in models)
    np.testing.assert_allclose(mine, theirs, atol=digits * np.std(theirs))
    np.testing.assert_allclose(my_std, their_std, rtol=std)


def test_predictions_and_slopes_are_those_of_universal_kriging():
    (X, y), (Z, _) = field(), field(300, 1)
    scale = tuple(LENGTH / X[PLACES].to_numpy().std(axis=0))
    model = fitted(kernel=Matern(scale, nu=1.5), alpha=NOISE**2, n_components=2000)
    T, at = (np.column_stack([np.ones(len(A)), A[["height", *PLACES]]]) for A in (X, Z))
    P, Q = X[PLACES].to_numpy(), Z[PLACES].to_numpy()
    inverse = np.linalg.inv(kernel(P, P) + NOISE**2 * np.eye(N))
    covariance = np.linalg.inv(T.T @ inverse @ T)
    slopes = covariance @ T.T @ inverse @ y
    between = kernel(Q, P) @ inverse
    mean, rest = at @ slopes + between @ (y - T @ slopes), at - between @ T
    variance = 1.0 - (between * kernel(Q, P)).sum(axis=1) + NOISE**2
    variance += (rest @ covariance * rest).sum(axis=1)
    found, std = model.predict(Z, return_std=True)
    np.testing.assert_allclose(found, mean, atol=0.1 * NOISE)
    unit = NOISE / model.report_["noise"]  # which is estimated
    np.testing.assert_allclose(std * unit, np.sqrt(variance), rtol=0.02)
    told, errors = model.report_["trend"], np.sqrt(np.diagonal(covariance))[1:]
    assert [each["term"] for each in told] == ["height", *PLACES]
    assert np.allclose([each["coefficient"] for each in told], slopes[1:], atol=0.05 * errors)
    assert np.allclose([each["deviation"] * unit for each in told], errors, rtol=0.02)


@pytest.mark.parametrize(
    ("q", "weighted", "trend"), [(None, False, "1,linear"), (2, True, "height,quadratic")]
)
def test_waves_products_and_gradients_solve_the_same(q, weighted, trend):
    weights = np.random.default_rng(5).uniform(0.5, 2.0, N) if weighted else None
    options = {"q": q, "weights": weights, "trend": trend}
    waves, products = (fitted(waves=each, **options, precision="double") for each in (True, False))
    assert_alike(waves, products, 1e-8)
    assert_alike(waves, fitted(waves=False, **options), 1e-4, 1e-3)
    gradients = fitted(solver="cg", **options, precision="double")
    assert_alike(waves, gradients, 1e-5, 0.1)  # which samples of the field tell
    for one, other in zip(waves.report_["trend"], gradients.report_["trend"], strict=True):
        relative = (
            each["deviation"] / np.array(report["noise"])
            for each, report in ((one, waves.report_), (other, gradients.report_))
        )
        np.testing.assert_allclose(*relative, rtol=1e-4)


@pytest.mark.parametrize("precision", ["single", "double"])
def test_conjugate_gradients_choose_the_same_penalty(precision):
    direct, gradients = (
        fitted(alpha="cv", precision=precision, solver=each) for each in ("direct", "cg")
    )
    assert gradients.alpha_ == pytest.approx(direct.alpha_, rel=1e-3)
    assert gradients.report_["cv_rmse"] == pytest.approx(direct.report_["cv_rmse"], rel=1e-3)


def test_rows_that_come_and_go_leave_the_moments_of_the_others():
    X, y = field()
    options = {"kernel": Matern(0.7, nu=1.5), "alpha": 0.1, "precision": "double"} | USUAL
    grown = RandomFeatureRidge(**options).partial_fit(X[:400], y[:400])
    whole = RandomFeatureRidge(**options).fit(X, y, like=grown)
    for rows in (slice(400, 700), slice(700, N)):
        grown.partial_fit(X[rows], y[rows])
    assert_alike(grown, whole, 1e-9)
    grown.forget(X[600:], y[600:])
    assert_alike(grown, RandomFeatureRidge(**options).fit(X[:600], y[:600], like=whole), 1e-9)


@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_a_model_comes_back_from_its_file_and_has_a_report(tmp_path, solver):
    model, X = fitted(solver=solver, trend="height,quadratic"), field()[0]
    model.save(tmp_path / "model.h5")
    again = streamkern.load(tmp_path / "model.h5")
    assert again.report_["trend"] == model.report_["trend"]
    assert np.array_equal(again.predict(X), model.predict(X))
    streamkern.write_report(again, tmp_path / "report.html")
    assert "trend: (east - mean) * (north - mean)" in (tmp_path / "report.html").read_text()


def test_gradients_are_those_of_the_predictions():
    model, X = fitted(trend="height,quadratic", precision="double"), field()[0][:50]
    steps = 1e-4 * model.model_.feature_map.standardizer.deviation * np.eye(3)
    slopes = [(model.predict(X + s) - model.predict(X - s)) / 2e-4 for s in steps]
    expected = np.array(slopes) @ np.transpose(slopes) / len(X)
    np.testing.assert_allclose(model.gradient_outer_product(X), expected, rtol=1e-5, atol=1e-6)


def test_a_kernel_is_chosen_for_what_the_trend_leaves():
    X, y = field()
    model = RandomFeatureRidge(**USUAL).fit(X, y)
    plain = y - 0.03 * X["height"] + 2.0 * X["east"]
    known = RandomFeatureRidge(**USUAL | {"trend": "linear"}).fit(X[PLACES], plain)
    assert model.report_["kernel"] == known.report_["kernel"]
    assert np.allclose(*(each.report_["length_scale"] for each in (model, known)), rtol=0.1)


def test_a_polynomial_has_grids_and_covariates_have_none():
    X, y = field()
    model = RandomFeatureRidge(**USUAL | {"trend": "quadratic", "alpha": 1.0}).fit(X[PLACES], y)
    found = model.predict_grid((4, 5))
    points = np.stack(np.meshgrid(*found.axes.values(), indexing="ij"), axis=-1).reshape(-1, 2)
    expected = model.predict(pd.DataFrame(points, columns=PLACES))
    np.testing.assert_allclose(found.y_pred.ravel(), expected, atol=1e-6)
    with pytest.raises(ParameterError, match="a grid has coordinates alone, but the model"):
        fitted().predict_grid((3, 3, 3))


def test_what_is_not_of_a_field_has_no_trend():
    moments = RandomFeatureRidge(**USUAL).moments(*field())
    with pytest.raises(ParameterError, match="the first components of moments with a trend"):
        streamkern.RandomFeaturePCA(3).solve(moments)
    with pytest.raises(ParameterError, match="features are not chosen beside a trend"):
        streamkern.sparsify(fitted(), 20)


def test_names_of_columns_are_texts():
    X, y = field()
    numbered = X.set_axis(["2", "0", "1"], axis=1)
    for trend, column in ((["2"], "2"), ([1], "0")):
        model = RandomFeatureRidge(**USUAL | {"trend": trend}).fit(numbered, y)
        assert [each["term"] for each in model.report_["trend"]] == [column]
    with pytest.raises(ParameterError, match="'linear' is a word of a trend, and a column"):
        RandomFeatureRidge(**USUAL).fit(X.set_axis(["linear", "height", "north"], axis=1), y)


def test_a_constant_covariate_is_left_out_and_classes_have_trends():
    X, y = field()
    with pytest.warns(UserWarning, match="1 constant column of X left out: height"):
        model = RandomFeatureRidge(**USUAL | {"trend": "height"}).fit(X.assign(height=7.0), y)
    assert "trend" not in model.report_
    assert len(RandomFeatureClassifier(**USUAL).fit(X, y > y.mean()).report_["trend"]) == 3


REFUSED = {
    "a trend must be of columns of X, east, height, north, not 'hight'; name": {"trend": "hight"},
    "the trend has 1 twice; name every column once": {"trend": ["height", 1]},
    "not []; give some, or leave the trend out": {"trend": []},
    "a trend of 3 columns leaves no coordinates": {"trend": "0,1,2"},
    "not of 'orthogonal' and 'matern32'; take these (--map grid)": {"feature_map": "orthogonal"},
    "scale 'quantile' may bend; take scale 'standard'": {"scale": "quantile"},
    "features are not chosen beside a trend": {"sparse": 20},
    "which a trend beside 'laplacian' needs unless precision is 'double'; take": {
        "kernel": "laplacian",
        "solver": "cg",
    },
    "n_components counts 3 terms of the trend and waves": {"n_components": 3},
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_is_no_trend_is_refused(sentence):
    with pytest.raises(ParameterError) as refused:
        fitted(**REFUSED[sentence])
    assert sentence in str(refused.value)


@pytest.mark.parametrize("alpha", ["gcv", "loo"])
def test_a_penalty_is_chosen_for_the_field_alone(alpha):
    plain, finer = (fitted(alpha=alpha, precision=each) for each in ("single", "double"))
    assert plain.report_["precision_floor"] < 1e-3 < plain.alpha_
    assert plain.alpha_ == pytest.approx(finer.alpha_, rel=1e-6)
    assert plain.report_["trend"][0]["coefficient"] == pytest.approx(0.03, abs=2e-3)
