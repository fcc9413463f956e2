"""The scale of inputs: medians and quartiles, a smooth bound, and the choice by held-out rows."""

import numpy as np
import pytest

import streamkern
from streamkern.errors import DataError, ParameterError, StreamkernWarning
from streamkern.features import RandomFourierFeatures, Standardized, Standardizer
from streamkern.kernels import Gaussian

N = 1200


def rows(seed=0):
    """Rows of a normal input, one of heavy tails, and an indicator."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.standard_normal(N), np.exp(2.0 * rng.standard_normal(N)), rng.random(N) < 0.15]
    )
    y = np.sin(2.0 * X[:, 0]) + np.log(X[:, 1]) / 2.0 + X[:, 2] + 0.1 * rng.standard_normal(N)
    return X, y


def ridge(**options):
    usual = {"n_components": 256, "kernel": "matern52"}
    return streamkern.RandomFeatureRidge(**(usual | options))


def test_the_robust_scale_is_that_of_medians_and_quartiles_with_a_bound():
    X, y = rows()
    found = ridge(scale="robust").fit(X, y).feature_map_.standardizer
    lower, middle, upper = np.quantile(X[:, :2], [0.25, 0.5, 0.75], axis=0)
    np.testing.assert_allclose(found.mean[:2], middle)
    np.testing.assert_allclose(found.deviation[:2], (upper - lower) / 1.349)
    assert (found.mean[2], found.deviation[2]) == pytest.approx((X[:, 2].mean(), X[:, 2].std()))
    z = found(X)
    assert np.abs(z).max() < found.bound == pytest.approx(3.0 * 1.349)
    u = (X - found.mean) / found.deviation
    np.testing.assert_allclose(z, u / np.sqrt(1.0 + (u / found.bound) ** 2))


@pytest.mark.parametrize("linear", [None, np.array([2.0, 0.5]), np.array([[1.0, 1.0]])])
def test_gradients_in_a_bounded_scale_are_those_of_differences(linear):
    X = rows()[0][:50, :2]
    standardizer = Standardizer(np.arange(2), np.zeros(2), np.array([1.0, 5.0]), 2, linear, 4.0)
    inner = RandomFourierFeatures(Gaussian(1.0), 6).draw(standardizer.n_outputs)
    feature_map = Standardized(standardizer, inner)
    coef, step = np.random.default_rng(1).standard_normal(6), 1e-6
    found = feature_map.gradients(X, coef)
    for j in range(2):
        more, less = X.copy(), X.copy()
        more[:, j] += step
        less[:, j] -= step
        ends = [feature_map.transform(each) @ coef / feature_map.scale for each in (more, less)]
        np.testing.assert_allclose(found[:, j], (ends[0] - ends[1]) / (2 * step), atol=1e-7)


@pytest.mark.parametrize("precision", ["single", "int8"])
def test_files_metrics_and_sparse_rows_keep_the_scale(tmp_path, precision):
    sparse = pytest.importorskip("scipy.sparse")
    X, y = rows()
    options = {"metric": "diagonal:1"} if precision == "single" else {}
    model = ridge(scale="robust", precision=precision, **options).fit(X, y)
    model.save(tmp_path / "model.h5")
    loaded = streamkern.load(tmp_path / "model.h5")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.feature_map_.standardizer.bound == model.feature_map_.standardizer.bound
    assert loaded.scale == "robust" == loaded.report_["scale"]
    np.testing.assert_allclose(model.predict(sparse.csr_array(X)), model.predict(X), atol=1e-5)
    again = ridge(scale="robust", precision=precision, **options).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(again.predict(X), model.predict(X), atol=1e-3)


def test_the_scale_is_chosen_by_errors_of_held_out_rows():
    X, y = rows()
    model = ridge(scale="auto").fit(X, y)
    errors = model.report_["scale_errors"]
    assert model.report_["scale"] == "robust" == min(errors, key=errors.get)
    same = ridge(scale="robust").fit(X, y)
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    plain = ridge().fit(X, y)
    assert model.report_["cv_rmse"] < 0.8 * plain.report_["cv_rmse"]
    X = np.random.default_rng(3).standard_normal((N, 2))
    assert ridge(scale="auto").fit(X, X[:, 0] ** 2 + y).report_["scale"] == "standard"
    assert ridge(scale="auto").tune(*rows()).report_["scale"] == "robust"


def test_inputs_of_one_unit_have_one_deviation_where_that_predicts_better():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 20)) * np.where(np.arange(20) < 3, 1.0, 0.05) + 7.0
    y = np.sin(X[:, :3].sum(axis=1))
    model = ridge(scale="auto").fit(X, y)
    errors = model.report_["scale_errors"]
    assert model.report_["scale"] == "common" == min(errors, key=errors.get)
    found = model.feature_map_.standardizer
    np.testing.assert_allclose(found.deviation, np.sqrt(X.var(axis=0).mean()))
    np.testing.assert_allclose(found.mean, X.mean(axis=0))
    np.testing.assert_array_equal(ridge(scale="common").fit(X, y).predict(X), model.predict(X))
    assert model.report_["cv_rmse"] < 0.5 * ridge().fit(X, y).report_["cv_rmse"]


def test_columns_that_are_constant_so_far_have_no_part_in_the_common_scale():
    X, y = rows()
    X = np.column_stack([X[:, :2], np.full(N, 2024.0)])
    with pytest.warns(StreamkernWarning, match="constant so far"):
        model = ridge(scale="common").partial_fit(X, y)
    expected = np.sqrt(X.var(axis=0)[:2].mean())
    np.testing.assert_allclose(model.feature_map_.standardizer.deviation[:2], expected)


def test_a_linear_model_has_the_common_scale_and_reports_it():
    X, y = rows()
    model = ridge(kernel="linear", scale="common").fit(X, y)
    deviation = model.feature_map_.standardizer.deviation
    np.testing.assert_allclose(deviation, np.sqrt(X.var(axis=0).mean()))
    assert model.report_["scale"] == "common"


def test_what_is_like_a_model_has_the_scale_that_was_chosen():
    model = ridge(scale="auto", precision="double").fit(*rows())
    assert ridge().fit(*rows(1), like=model).report_["scale"] == model.report_["scale"] == "robust"


def test_rows_about_other_medians_do_not_merge():
    rng, model = np.random.default_rng(0), ridge(kernel=Gaussian(0.4), scale="robust", alpha=1e-3)
    shares = [0.1, 0.2, 0.4, 0.2, 0.1]
    made = [
        model.moments(X := rng.choice([0, 1, middle, 4, 9], (N, 2), p=shares) * 1.0, X[:, 0])
        for middle in (2, 3)
    ]
    with pytest.raises(DataError, match="about other medians"):
        made[0].merge(made[1], repeated_rows=True)


def test_columns_that_are_constant_but_for_rounding_keep_their_unit():
    X, y = rows()
    X[:, 2] = 0.1 + np.spacing(0.1) * np.random.default_rng(0).integers(-3, 4, N)
    with pytest.warns(StreamkernWarning, match="constant so far"):
        model = ridge(scale="robust").partial_fit(X, y)
    assert model.feature_map_.standardizer.deviation[2] == 1.0


def test_a_chosen_scale_is_rounded_like_a_given_one():
    found = [ridge(scale=name, precision="int8").fit(*rows()) for name in ("auto", "robust")]
    np.testing.assert_array_equal(*(each.predict(rows()[0]) for each in found))


def test_inputs_in_their_own_units_have_no_scale():
    X, y = rows()
    found = [
        ridge(**each).fit(X, y).predict(X) for each in ({"scale": "none"}, {"standardize": False})
    ]
    np.testing.assert_array_equal(*found)


def test_scales_that_there_are_not_are_refused():
    with pytest.raises(ParameterError, match="scale must be one of auto, standard, robust, common"):
        ridge(scale="quantile").fit(*rows())
    with pytest.raises(ParameterError, match="a linear model has no bounded scale"):
        ridge(kernel="linear", scale="robust").fit(*rows())
    with pytest.raises(ParameterError, match="inputs in their own units have no scale 'robust'"):
        ridge(scale="robust", standardize=False).fit(*rows())


def test_exported_models_have_the_scale(tmp_path):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    X, y = rows()
    model = ridge(scale="robust", metric="diagonal:1", feature_map="orthogonal").fit(X, y)
    streamkern.to_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    name, kind = session.get_inputs()[0].name, session.get_inputs()[0].type
    given = X.astype(np.float64 if "double" in kind else np.float32)
    found = session.run(None, {name: given})[0]
    np.testing.assert_allclose(np.ravel(found), model.predict(X), atol=1e-3)
