import numpy as np
import pytest

from streamkern import Gaussian, Linear, RandomFeatureRidge, load
from streamkern.errors import StreamkernWarning

IDENTITY = {"kernel": Linear(), "feature_map": "identity"}
SMOOTH = {"kernel": Gaussian(8.0), "n_components": 128}
LANDMARKS = SMOOTH | {"feature_map": "nystroem"}


def rows(noise, n=1500, seed=0, curve=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = X @ np.arange(1.0, 6.0) + curve * np.sin(X[:, 0])
    return X, y + noise * 7.4 * rng.normal(size=n)


def cover(model, X, y):
    mean, deviation = model.predict(X, return_std=True)
    return float((np.abs(y - mean) < 1.645 * deviation).mean())


@pytest.mark.parametrize(
    ("alpha", "noise"), [("cv", 1e-3), ("cv", 1e-5), ("loo", 3e-4), ("gcv", 1e-5), (1e-3, 3e-4)]
)
def test_errors_and_intervals_are_right_where_residuals_are_below_the_rounding_of_sums(
    noise, alpha
):
    X, y = rows(noise)
    model = RandomFeatureRidge(**IDENTITY, alpha=alpha).fit(X, y)
    new, truth = rows(noise, seed=1)
    rmse = model.evaluate(X, y)["rmse"]
    assert model.report_["train_rmse"] == pytest.approx(rmse, rel=0.03)
    if alpha in {"cv", "loo"}:
        assert model.report_["cv_rmse"] == pytest.approx(7.4 * noise, rel=0.1)
    assert 0.86 < cover(model, new, truth) < 0.94
    assert model.diagnose(X, y)["loo_rmse"] == pytest.approx(rmse, rel=0.03)


@pytest.mark.filterwarnings("ignore:the error still falls:streamkern.errors.StreamkernWarning")
@pytest.mark.parametrize("options", [SMOOTH | {"kernel": Gaussian(20.0)}, LANDMARKS])
def test_the_rows_of_a_fit_are_known_again_whatever_the_length_scale(options):
    X, y = rows(1e-4, curve=30.0)
    model = RandomFeatureRidge(**options).fit(X, y)
    assert model.diagnose(X, y)["rows"] == len(X)
    assert model.report_["train_rmse"] == pytest.approx(model.evaluate(X, y)["rmse"], rel=0.05)


def test_rows_are_read_once_more_for_the_targets_that_need_it_and_that_is_said(tmp_path):
    X, y = rows(1e-4)
    model = RandomFeatureRidge(**IDENTITY, alpha=1e-3).fit(X, np.column_stack([y, X[:, 0] ** 2]))
    assert model.report_["errors_from"] == "rows"
    assert "taken from the rows" in model.report_["note"]
    assert model.report_["seconds"]["residuals"] > 0
    exact = [7.4e-4, model.evaluate(X, np.column_stack([y, X[:, 0] ** 2]))["rmse"][1]]
    assert model.report_["train_rmse"] == pytest.approx(exact, rel=0.05)
    model.save(tmp_path / "model.h5")
    again = load(tmp_path / "model.h5").predict(X[:9], return_std=True)[1]
    assert np.array_equal(again, model.predict(X[:9], return_std=True)[1])


def test_residuals_that_sums_can_tell_are_not_read_for():
    X, y = rows(0.05)
    model = RandomFeatureRidge(**IDENTITY).fit(X, y)
    assert model.report_["errors_from"] == "moments"
    assert "residuals" not in model.report_["seconds"]


@pytest.mark.parametrize("sparse", [2, "auto"])
def test_sparse_models_are_told_by_rows_too(sparse):
    X, _ = rows(0.0)
    y = X[:, 0] - 2.0 * X[:, 3]
    model = RandomFeatureRidge(**IDENTITY, sparse=sparse).fit(X, y)
    assert len(model.coef_) == 2
    assert 0 < model.report_["train_rmse"] < 1e-5
    assert 0 < model.report_["cv_rmse"] < 1e-5


def test_moments_without_rows_give_upper_bounds_and_say_so():
    X, y = rows(1e-5)
    model = RandomFeatureRidge(**IDENTITY)
    moments = model.moments(X, y)
    with pytest.warns(StreamkernWarning, match="upper bounds; fit the rows instead"):
        model.solve(moments)
    rmse = model.evaluate(X, y)["rmse"]
    assert rmse < model.report_["train_rmse"] < 1e-2
    assert rmse < model.report_["cv_rmse"] < 1e-2
    assert cover(model, X, y) == 1.0
    assert model.diagnose(X, y)["rows"] == len(X)


def test_errors_of_weighted_rows_are_weighted():
    X, y = rows(1e-4)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, size=len(X))
    model = RandomFeatureRidge(**IDENTITY).fit(X, y, sample_weight=weights)
    rmse = model.evaluate(X, y, sample_weight=weights)["rmse"]
    assert model.report_["train_rmse"] == pytest.approx(rmse, rel=1e-9)
