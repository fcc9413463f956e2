"""The scale of inputs: quartiles and a smooth bound, normal scores, and the choice by errors."""

import naive
import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri
from sklearn.datasets import load_digits
from sklearn.preprocessing import QuantileTransformer, StandardScaler

import streamkern
from streamkern.errors import DataError, ParameterError, StreamkernWarning
from streamkern.features import RandomFourierFeatures, Standardized, Standardizer, gradients
from streamkern.kernels import Gaussian
from streamkern.registry import extension

N = 1200
KNOTS = np.array([[[-2.1, 0.1, 0.7, 5.0], [-1.0, 0.05, 0.2, 1.0]], [[-1.0, 0.0, 1.0, 2.0]] * 2])


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
    lower, middle, upper = np.quantile(X[:, :2], [0.25, 0.5, 0.75], axis=0, method="inverted_cdf")
    np.testing.assert_allclose(found.mean[:2], middle)
    np.testing.assert_allclose(found.deviation[:2], (upper - lower) / 1.349)
    assert (found.mean[2], found.deviation[2]) == pytest.approx((X[:, 2].mean(), X[:, 2].std()))
    z = found(X)
    assert np.abs(z).max() < found.bound == pytest.approx(3.0 * 1.349)
    u = (X - found.mean) / found.deviation
    np.testing.assert_allclose(z, u / np.sqrt(1.0 + (u / found.bound) ** 2))


def scores_of(X, y, **options):
    """What the scale 'quantile' makes of some rows, and its knots."""
    found = ridge(scale="quantile", alpha=1e-2).fit(X, y, **options).feature_map_.standardizer
    return found(X), found


def test_the_scale_quantile_is_that_of_a_quantile_transformer():
    X, y = rows()
    found, _ = scores_of(X, y)
    transformer = QuantileTransformer(output_distribution="normal", n_quantiles=N)
    expected = transformer.fit_transform(X[:, :2])
    inner = np.abs(expected) < 2.5
    np.testing.assert_allclose(found[:, :2][inner], expected[inner], atol=0.1)
    order = np.argsort(X[:, 1])
    assert (np.diff(found[order, 1]) > 0).all()  # the ends, too, which a transformer clips


def test_normal_scores_have_an_inverse_and_end_a_deviation_beyond_the_sample():
    X, y = rows()
    z, found = scores_of(X, y)
    u = [np.interp(z[:, j], found.knots[1, j], found.knots[0, j]) for j in range(2)]
    np.testing.assert_allclose(np.transpose(u) * found.deviation[:2] + found.mean[:2], X[:, :2])
    far = found(np.array([[-1e9, -1e9, -1e9], [1e9, 1e9, 1e9]]))
    ends = np.array([z[:, :2].min(axis=0) - 1.0, z[:, :2].max(axis=0) + 1.0])
    np.testing.assert_allclose(far[:, :2], ends, rtol=1e-4)


def test_rows_count_for_normal_scores_by_their_weights():
    X, y = rows()
    weights = np.random.default_rng(2).integers(0, 4, N)
    found, _ = scores_of(X, y, sample_weight=weights.astype(float))
    again = np.repeat(np.arange(N), weights)
    there = np.flatnonzero(weights)
    _, expected = scores_of(X[again], y[again])
    np.testing.assert_allclose(found[there, :2], expected(X[there])[:, :2], atol=1e-3)


def test_equal_values_share_the_score_in_their_middle_and_few_values_keep_their_distances():
    X, y = rows()
    X[:, 1] = np.maximum(X[:, 1] - 1.0, 0.0)  # half of them are 0
    z, found = scores_of(X, y)
    none = X[:, 1] == 0.0
    assert z[none, 1] == pytest.approx(ndtri(none.mean() / 2.0), abs=1e-3)
    plain = ridge(scale="robust").fit(X, y).feature_map_.standardizer
    assert (found.mean[2], found.deviation[2]) == pytest.approx((plain.mean[2], plain.deviation[2]))
    np.testing.assert_allclose(z[:, 2], (X[:, 2] - plain.mean[2]) / plain.deviation[2], rtol=1e-5)


@pytest.mark.parametrize("bent", [{"bound": 4.0}, {"knots": KNOTS}])
@pytest.mark.parametrize("linear", [None, np.array([2.0, 0.5]), np.array([[1.0, 1.0]])])
def test_gradients_in_a_bounded_scale_are_those_of_differences(linear, bent):
    X = rows()[0][:50, :2]
    deviation = np.array([1.0, 5.0])
    standardizer = Standardizer(np.arange(2), np.zeros(2), deviation, 2, linear, **bent)
    inner = RandomFourierFeatures(Gaussian(1.0), 6).draw(standardizer.n_outputs)
    feature_map = Standardized(standardizer, inner)
    coef = np.random.default_rng(1).standard_normal(6)
    expected = naive.differences(lambda rows: feature_map.transform(rows) @ coef, X, 1e-6)
    found = gradients(feature_map, X, coef)
    np.testing.assert_allclose(found, expected / feature_map.scale, atol=1e-7)


@pytest.mark.parametrize("scale", ["robust", "quantile"])
@pytest.mark.parametrize("precision", ["single", "int8"])
def test_files_metrics_and_sparse_rows_keep_the_scale(tmp_path, precision, scale):
    sparse = pytest.importorskip("scipy.sparse")
    X, y = (each[:600] for each in rows())
    options = {"metric": "diagonal:1"} if precision == "single" else {}
    model = ridge(scale=scale, precision=precision, **options).fit(X, y)
    model.save(tmp_path / "model.h5")
    loaded = streamkern.load(tmp_path / "model.h5")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.feature_map_.equals(model.feature_map_)
    assert loaded.scale == scale == loaded.report_["scale"]
    np.testing.assert_allclose(model.predict(sparse.csr_array(X)), model.predict(X), atol=1e-5)
    again = ridge(scale=scale, precision=precision, **options).fit(sparse.csr_array(X), y)
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


def test_pixels_and_spectra_are_of_one_unit():
    digits = load_digits()
    where = np.linspace(0.0, 1.0, 100)
    peaks = np.exp(-0.5 * np.square((where - np.array([[0.2], [0.5], [0.8]])) / 0.04))
    rng = np.random.default_rng(0)
    spectra = rng.gamma(2.0, size=(N, 3)) @ peaks + 0.3 * rng.standard_normal((N, 1)) * where
    for X, y in ((digits.data, digits.target), (spectra, np.sin(spectra[:, 50]))):
        varying = X[:, np.ptp(X, axis=0) > 0]
        assert "common" in ridge(scale="auto").fit(varying, y).report_["scale_errors"]


def test_a_standard_scaler_before_a_fit_of_other_inputs_changes_nothing():
    X, y = rows()
    day = 2.0 * np.pi * np.random.default_rng(1).random(N)
    clock = np.column_stack([day * 43_200 / np.pi, np.sin(day), np.cos(day), np.sin(2 * day)])
    # Where one deviation for all leaves the largest input alone, and that says most.
    for Z in (X * [1e3, 1.0, 1.0], clock):
        y = np.sin(Z[:, 0] / Z[:, 0].std()) + 0.1 * np.random.default_rng(2).standard_normal(N)
        scaled = StandardScaler().fit_transform(Z)
        plain, after = ridge(scale="auto").fit(Z, y), ridge(scale="auto").fit(scaled, y)
        assert plain.report_["scale"] == after.report_["scale"] != "common"
        close = 0.01 * y.std()
        np.testing.assert_allclose(plain.predict(Z), after.predict(scaled), atol=close)


def test_inputs_that_a_recipe_made_of_dates_and_text_are_not_of_one_unit():
    rng = np.random.default_rng(0)
    day = pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 8760, N), unit="h")
    frame = pd.DataFrame({"day": day, "name": rng.choice(list("abcdef"), N)})
    y = day.hour.to_numpy() / 24.0 + 0.1 * rng.standard_normal(N)
    assert "common" not in ridge(scale="auto").fit(frame, y).report_["scale_errors"]


def test_columns_that_are_constant_so_far_have_no_part_in_the_common_scale():
    X, y = rows()
    X = np.column_stack([X[:, :2], np.full(N, 2024.0)])
    with pytest.warns(StreamkernWarning, match="constant so far"):
        model = ridge(scale="common").partial_fit(X, y)
    deviation = model.feature_map_.standardizer.deviation
    np.testing.assert_allclose(deviation[:2], np.sqrt(X.var(axis=0)[:2].mean()))
    assert deviation[2] == 2024.0  # its unit


def test_a_linear_model_has_the_common_scale_and_reports_it():
    X, y = rows()
    model = ridge(kernel="linear", scale="common").fit(X, y)
    deviation = model.feature_map_.standardizer.deviation
    np.testing.assert_allclose(deviation, np.sqrt(X.var(axis=0).mean()))
    assert model.report_["scale"] == "common"


def test_what_is_like_a_model_has_the_scale_that_was_chosen():
    model = ridge(scale="auto", precision="double").fit(*rows())
    assert ridge().fit(*rows(1), like=model).report_["scale"] == model.report_["scale"] == "robust"


@pytest.mark.parametrize(
    ("scale", "words"), [("robust", "about other medians"), ("quantile", "by other means")]
)
def test_rows_about_other_medians_do_not_merge(scale, words):
    rng, model = np.random.default_rng(0), ridge(kernel=Gaussian(0.4), scale=scale, alpha=1e-3)
    shares = [0.1, 0.2, 0.4, 0.2, 0.1]
    made = [
        model.moments(X := rng.choice([0, 1, middle, 4, 9], (N, 2), p=shares) * 1.0, X[:, 0])
        for middle in (2, 3)
    ]
    with pytest.raises(DataError, match=words):
        made[0].merge(made[1], repeated_rows=True)


@pytest.mark.parametrize("scale", ["robust", "quantile"])
def test_columns_that_are_constant_but_for_rounding_keep_their_unit(scale):
    X, y = rows()
    X[:, 2] = 0.1 + np.spacing(0.1) * np.random.default_rng(0).integers(-3, 4, N)
    with pytest.warns(StreamkernWarning, match="constant so far"):
        model = ridge(scale=scale).partial_fit(X, y)
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
        ridge(scale="ranks").fit(*rows())
    with pytest.raises(ParameterError, match="a linear model has no scale"):
        ridge(kernel="linear", scale="robust").fit(*rows())
    with pytest.raises(ParameterError, match="inputs in their own units have no scale 'robust'"):
        ridge(scale="robust", standardize=False).fit(*rows())


@pytest.mark.parametrize("scale", ["robust", "quantile"])
def test_exported_models_have_the_scale(tmp_path, scale):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    X, y = rows()
    model = ridge(scale=scale, metric=np.diag([2.0, 1.0, 0.5]), feature_map="orthogonal").fit(X, y)
    streamkern.to_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    name, kind = session.get_inputs()[0].name, session.get_inputs()[0].type
    given = X.astype(np.float64 if "double" in kind else np.float32)
    found = session.run(None, {name: given})[0]
    np.testing.assert_allclose(np.ravel(found), model.predict(X), atol=1e-3)


def categorical(seed=0, levels=40):
    """Rows of two numbers, and of a category as indicators that say nothing, and a rare flag."""
    rng = np.random.default_rng(seed)
    numbers, which = rng.standard_normal((N, 2)), rng.integers(0, levels, N)
    X = np.column_stack(
        [numbers * [1.0, 99.0], which[:, None] == np.arange(levels), rng.random(N) < 0.02]
    )
    y = np.sin(2.0 * X[:, 0]) + np.abs(numbers[:, 1]) + 0.1 * rng.standard_normal(N)
    return X.astype(float), y


def test_the_indicators_of_a_category_together_are_one_input():
    X, y = categorical()
    plain, found = (
        ridge(scale=scale).fit(X, y).feature_map_.standardizer for scale in ("standard", "grouped")
    )
    together = np.sqrt(X[:, 2:42].var(axis=0).sum())
    np.testing.assert_allclose(found.deviation[2:42], together)
    kept = [0, 1, 42]
    np.testing.assert_allclose(found.deviation[kept], plain.deviation[kept])
    model = ridge(scale="robust-grouped").fit(X, y)
    found, robust = model.feature_map_.standardizer, ridge(scale="robust").fit(X, y)
    np.testing.assert_allclose(found.deviation[2:42], together)
    expected = robust.feature_map_.standardizer
    np.testing.assert_allclose(found.deviation[kept], expected.deviation[kept])
    assert found.bound == expected.bound
    assert model.report_["nearly_constant_columns"] == [42]
    assert robust.report_["nearly_constant_columns"] == [*range(2, 43)]
    X[7, 42] = 2.0  # no indicator, whatever a sample says
    X[:, 2:42] *= 1.0 + (np.arange(40) == 39)
    parts = ridge(scale="grouped").fit(X, y).feature_map_.standardizer.deviation[2:42]
    np.testing.assert_allclose(parts[:39], np.sqrt(X[:, 2:41].var(axis=0).sum()))
    rare = np.column_stack([X[:, 0], np.arange(N) % 50 == 0, np.arange(N) % 50 == 1])
    found = ridge(scale="grouped").fit(rare, y).feature_map_.standardizer
    variance = rare[:, 1:].var(axis=0).sum()
    np.testing.assert_allclose(found.deviation[1:], np.sqrt(variance * 0.1 / 0.04))


def towns(which):
    """Return a table of a number, a flag, and a town, which is missing where it is negative."""
    pandas = pytest.importorskip("pandas")
    names = np.array(["a", "b", "c", None], dtype=object)[which]
    size = np.random.default_rng(3).standard_normal(len(which))
    return pandas.DataFrame({"size": size, "flag": which == 0, "town": names, "y": size + which})


def test_of_a_table_categories_are_those_of_its_recipe(tmp_path):
    which = np.random.default_rng(3).integers(-1, 3, N)  # some are missing
    towns(which).to_csv(tmp_path / "towns.csv", index=False)
    model = ridge(scale="grouped", alpha=1.0).fit(tmp_path / "towns.csv", "y")
    deviation = model.feature_map_.standardizer.deviation
    together = sum((which == level).var() for level in range(-1, 3))
    np.testing.assert_allclose(deviation[2:], np.sqrt(together))
    assert deviation[1] == pytest.approx((which == 0).std())  # which is never beside a town


@pytest.mark.parametrize("scale", ["grouped", "auto"])
def test_a_category_that_does_not_vary_yet_is_as_it_was(tmp_path, scale):
    paths = [tmp_path / name for name in ("all.csv", "first.csv", "all.h5", "first.h5")]
    which = np.random.default_rng(3).integers(0, 3, N)
    for path, some in zip(paths, (which, np.zeros(N, int)), strict=False):
        towns(some).to_csv(path, index=False)
    streamkern.convert(paths[0], paths[2], targets=["y"])
    streamkern.convert(paths[1], paths[3], like=paths[2])
    with pytest.warns(StreamkernWarning, match="constant so far"):
        model = ridge(scale=scale, alpha=1.0).partial_fit(paths[3])
    np.testing.assert_array_equal(model.feature_map_.standardizer.deviation[1:], 1.0)
    assert np.isfinite(model.partial_fit(paths[2]).predict(paths[2])).all()


def test_numbers_of_a_table_have_the_same_categories_as_rows(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = categorical()
    frame = pandas.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(y=y)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    found, again = (
        ridge(scale="grouped").fit(*rows).feature_map_.standardizer.deviation
        for rows in ((X, y), (tmp_path / "rows.csv", "y"))
    )
    np.testing.assert_allclose(again, found, rtol=1e-5)


def test_a_category_has_one_weight_where_columns_are_left_out_too(monkeypatch):
    X, y = categorical(levels=4)
    metric_beginnings = extension("search", "metric_beginnings")
    seen, descend = [], metric_beginnings.weights_by_descent

    def watched(*given):
        seen.append(given[-1].tolist())
        return descend(*given)

    monkeypatch.setattr(metric_beginnings, "weights_by_descent", watched)
    with pytest.warns(StreamkernWarning, match="1 constant column"):
        ridge(n_components=64, metric="diagonal:1").fit(np.insert(X, 2, 1.0, axis=1), y)
    assert seen == [[0, 1, 2, 2, 2, 2, 3]]


def test_a_category_that_says_nothing_is_grouped_by_auto():
    X, y = categorical()
    model = ridge(scale="auto").fit(X, y)
    assert model.report_["scale"] in {"grouped", "robust-grouped"}
    errors = model.report_["scale_errors"]
    assert errors["grouped"] < 0.9 * min(errors["standard"], errors["robust"])
    assert "grouped" not in ridge(scale="auto").fit(*rows()).report_["scale_errors"]
