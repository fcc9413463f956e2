"""A row of weight s counts as s equal rows, one of weight 0 as none, wherever rows come from."""

from contextlib import nullcontext

import dask.array as da
import h5py
import numpy as np
import pytest
from commandline import write

import streamkern
from streamkern import ExactKernelRidge, Gaussian, RandomFeatureRidge, open_hdf5
from streamkern.errors import CheckpointError, DataError
from streamkern.fitting.planned_fit import planned_fit
from streamkern.kernels import parsed_kernel
from streamkern.parameters.parameters import Parameters
from streamkern.passes.checkpoint_job import checkpointed
from streamkern.sources import ArraySource

N, P = 240, 3
PRECISION = 1e-9
pytestmark = pytest.mark.usefixtures("in_this_thread")


def table(n=N, q=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P))
    y = np.stack([np.sin(2 * X[:, 0]), 3 + X[:, 1] * X[:, 2]], axis=1)
    y += 0.1 * rng.standard_normal(y.shape)
    return X, y[:, 0] if q is None else y[:, :q], rng.integers(0, 4, n)


def repeated(X, y, s):
    return np.repeat(X, s, axis=0), np.repeat(y, s, axis=0)


def ridge(**options):
    kernel = options.pop("kernel", Gaussian(0.7))
    given = {"n_components": 32, "alpha": 0.3, "precision": "double"} | options
    return RandomFeatureRidge(kernel, **given)


def as_dask(folder, X, y, s):
    chunks = (70, 2), 50, 33
    return tuple(da.from_array(of, chunks=n) for of, n in zip((X, y, s), chunks, strict=True))


def as_hdf5(folder, X, y, s):
    half = len(X) // 2
    for name, rows in (("1.h5", slice(half)), ("2.h5", slice(half, None))):
        with h5py.File(folder / name, "w") as file:
            file.create_dataset("X", data=X[rows], chunks=(17, P))
            file["y"], file["w"] = y[rows], s[rows]
    return (open_hdf5(folder / "?.h5", weights="w"),)


SOURCES = {"NumPy": lambda _, *rows: rows, "Dask": as_dask, "HDF5": as_hdf5}


def assert_close(found, expected):
    scale = max(np.abs(expected).max(), 1e-300)
    assert np.abs(np.asarray(found) - expected).max() <= PRECISION * scale


def assert_same_model(found, expected):
    """Coefficients, intercept, and all that a report says of the rows but their number."""
    for name in ("coef_", "intercept_", "alpha_"):
        assert_close(getattr(found, name), getattr(expected, name))
    for name in ("train_rmse", "effective_dof", "noise", "weight"):
        assert_close(found.report_[name], expected.report_[name])
    mine, theirs = (model.feature_map_.standardizer for model in (found, expected))
    assert_close(mine.mean, theirs.mean)
    assert_close(mine.deviation, theirs.deviation)
    curves = found.report_["alpha_curve"], expected.report_["alpha_curve"]
    assert (curves[0] is None) == (curves[1] is None)
    if curves[0] is not None:
        for name in ("alphas", "values"):
            assert_close(curves[0][name], np.array(curves[1][name]))


@pytest.mark.parametrize(
    ("source", "alpha"), [("NumPy", 0.3), ("Dask", "gcv"), ("HDF5", "evidence")]
)
def test_weights_are_rows_repeated(tmp_path, source, alpha):
    X, y, s = table(q=2)
    weighted = ridge(alpha=alpha).fit(*SOURCES[source](tmp_path, X, y, s))
    expected = ridge(alpha=alpha).fit(*repeated(X, y, s))
    assert_same_model(weighted, expected)
    assert weighted.report_["weight"] == s.sum()
    assert weighted.report_["rows"] == (s > 0).sum()
    assert weighted.report_["weightless_rows"] == (s == 0).sum()


@pytest.mark.parametrize("p", [1, 2, 3])
def test_a_grid_is_laid_for_weights_as_for_rows_repeated(p):
    X, y, s = table(60)
    X, s, options = X[:, :p], 1 + s % 3, {"feature_map": "grid", "n_components": 64}
    found = ridge(**options).fit(X, y, s)
    assert_close(found.predict(X), ridge(**options).fit(*repeated(X, y, s)).predict(X))


@pytest.mark.parametrize("source", SOURCES)
def test_a_row_of_weight_0_is_absent_whatever_it_holds(tmp_path, source):
    X, y, s = table()
    X[s == 0], y[s == 0] = np.nan, np.inf
    weighted = ridge().fit(*SOURCES[source](tmp_path, X, y, s.astype(float)))
    there = s > 0
    assert_same_model(weighted, ridge().fit(X[there], y[there], s[there]))
    assert weighted.report_["skipped_rows"] == 0


@pytest.mark.parametrize("source", SOURCES)
def test_errors_and_gradients_count_weights(tmp_path, source):
    X, y, s = table()
    model, weighted = ridge().fit(X, y, s), SOURCES[source](tmp_path, X, y, s)
    found, expected = model.evaluate(*weighted), model.evaluate(*repeated(X, y, s))
    for name in ("rmse", "mae", "r2"):
        assert_close(found[name], expected[name])
    assert found["rows"] == (s > 0).sum()
    products = (model.gradient_outer_product(*rows) for rows in (weighted, repeated(X, y, s)))
    assert_close(*products)
    with pytest.raises(DataError, match="give the rows and weights of the fit"):
        model.diagnose(X, y)


def test_another_dataset_of_weights_is_another_job(tmp_path):
    X, y, _ = table()
    write(tmp_path / "a.h5", X, y, w=np.ones(N), v=np.ones(N))
    options = Parameters.of(ridge()).pass_options()
    for name, refused in (("w", nullcontext()), ("v", pytest.raises(CheckpointError))):
        source = open_hdf5(tmp_path / "a.h5", weights=name)
        context = planned_fit(source, options, folder=tmp_path / "kept")
        with refused, checkpointed(context):
            pass


# What is chosen on a sample.


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
def test_the_median_length_scale_is_that_of_rows_repeated(kernel):
    X, y, s = table()
    kernel = parsed_kernel(kernel, "median")
    found = ridge(kernel=kernel).fit(X, y, s)
    expected = ridge(kernel=kernel).fit(*repeated(X, y, s))
    assert_close(found.report_["length_scale"], np.array(expected.report_["length_scale"]))
    assert_close(found.coef_, expected.coef_)


def test_a_search_counts_the_weights_of_its_sample():
    X, y, _ = table()
    # Rows that count for next to nothing are another function's.
    y[::2] = np.random.default_rng(1).standard_normal(N // 2) * 5
    weights = np.where(np.arange(N) % 2, 1.0, 1e-9)
    smooth = {"kernel": Gaussian(1.3), "n_components": 64}
    found = ridge(**smooth).tune(X, y, weights).report_["tuning"]
    expected = ridge(**smooth).tune(X, y).report_["tuning"]
    assert min(a["relative_mse"] for a in found) < 0.2 < min(a["relative_mse"] for a in expected)


def test_a_metric_is_learnt_of_the_rows_that_count():
    X, y, _ = table()
    other = np.arange(N) % 2 == 0
    y = np.sin(2 * np.where(other, X[:, 2], X[:, 0]))
    for counting, column in ((other, 2), (~other, 0)):
        metric = ridge(metric="diagonal:1").fit(X, y, np.where(counting, 1.0, 1e-9)).metric_
        assert np.diagonal(metric).argmax() == column


# The exact model.


exact = pytest.mark.parametrize(
    ("alpha", "intercept"), [(0.3, True), (0.3, False), ([0.3], True), ([0.3], False)]
)


@exact
def test_the_exact_model_of_weighted_rows_is_that_of_rows_repeated(intercept, alpha):
    X, y, s = table(40, q=2)
    options = {"alpha": alpha, "fit_intercept": intercept}
    found = ExactKernelRidge(**options).fit(X, y, s)
    expected = ExactKernelRidge(alpha=0.3, fit_intercept=intercept).fit(*repeated(X, y, s))
    assert_close(found.predict(X), expected.predict(X))
    assert_close(found.intercept_, expected.intercept_)
    assert len(found.X_fit_) == (s > 0).sum()


@exact
def test_exact_errors_left_out_are_those_of_fitting_again_with_weights(intercept, alpha):
    X, y, s = table(25)
    alike = {"kernel": Gaussian(1.0), "standardize": False, "fit_intercept": intercept}
    found = ExactKernelRidge(alpha=alpha, leave_one_out=True, **alike).fit(X, y, s)
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        again = ExactKernelRidge(alpha=0.3, **alike)
        error = y[i] - again.fit(X[others], y[others], s[others]).predict(X[[i]])[0]
        assert found.loo_residuals_[i] == pytest.approx(error, rel=1e-7, abs=1e-9)


# What is wrong with weights.


@pytest.mark.parametrize("source", SOURCES)
def test_a_negative_weight_is_told_with_its_place(tmp_path, source):
    X, y, s = table()
    s[135] = -3
    place = "2.h5, row 15" if source == "HDF5" else "row 135"
    with pytest.raises(DataError, match=f"{place} has the weight -3, but a weight is how often"):
        ridge().fit(*SOURCES[source](tmp_path, X, y, s))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_told_or_skipped(tmp_path, source, value):
    X, y, s = table()
    weights = s.astype(float)
    weights[[135, 200]] = value
    rows = SOURCES[source](tmp_path, X, y, weights)
    place = "2.h5, row 15" if source == "HDF5" else "row 135"
    said = f"2 of {N} rows hold NaN or infinite values or weights, the first at .*{place}"
    fitted = ridge().fit(X, y)
    for method in (ridge().fit, fitted.evaluate, fitted.gradient_outer_product):
        with pytest.raises(DataError, match=said):
            method(*rows)
    kept = np.isfinite(weights)
    found = ridge(on_bad_rows="skip").fit(*rows)
    assert_same_model(found, ridge().fit(X[kept], y[kept], s[kept]))
    assert found.report_["skipped_rows"] == 2


@pytest.mark.parametrize("source", SOURCES)
def test_weights_that_are_all_0_are_told(tmp_path, source):
    X, y, _ = table()
    rows = SOURCES[source](tmp_path, X, y, np.zeros(N))
    name = "w" if source == "HDF5" else "sample_weight"
    said = f"of 240 rows, 240 have the weight zero in {name}, so none"
    for method in (ridge().fit, ridge().fit(X, y).evaluate):
        with pytest.raises(DataError, match=said):
            method(*rows)


@pytest.mark.parametrize(
    ("stored", "why"),
    [
        (np.ones((N, 1)), r"w must hold one weight a row, with shape \(240,\), but has \(240, 1\)"),
        (np.ones(N - 1), r"but has \(239,\); store one number per row of X"),
        (np.ones(N, dtype="S3"), "w must hold floats or integers"),
        (None, r"has no dataset 'w'; it holds: X, y. Name the datasets with x, y and weights \("),
    ],
)
def test_datasets_that_are_no_weights_are_refused_from_their_header(tmp_path, stored, why):
    X, y, _ = table()
    write(tmp_path / "a.h5", X, y, w=stored)
    with pytest.raises(DataError, match=why):
        open_hdf5(tmp_path / "a.h5", weights="w")


# Landmarks.


def test_the_landmark_of_a_fit_is_the_weighted_mean_of_its_rows():
    X, y, s = table()
    model = ridge(feature_map="nystroem", n_components=1).fit(X, y, s)
    (centre,) = model.feature_map_.inner.similarities.landmarks
    assert np.abs(centre).max() < 1e-12  # of standardised rows
    stored = streamkern.Nystroem(Gaussian(0.7), 1).fit(ArraySource(X, None, sample_weight=s))
    (centre,) = stored.feature_map_.similarities.landmarks
    assert np.allclose(centre, np.average(X, axis=0, weights=s), rtol=1e-12)


@pytest.mark.parametrize(
    ("calibration", "class_weight"),
    [("spline", {0: 0.3, 1: 0.7}), ("sigmoid", None), ("isotonic", "balanced")],
)
def test_a_calibration_counts_weights_as_rows_whatever_classes_weigh(class_weight, calibration):
    X, y, s = table()
    labels = (y > 0.5).astype(int)
    options = {"kernel": Gaussian(0.7), "n_components": 32, "alpha": 0.3, "precision": "double"}
    options |= {"class_weight": class_weight, "calibration": None}
    found, expected = (
        streamkern.RandomFeatureClassifier(**options)
        .fit(*rows)
        .calibrate(*rows, calibration=calibration)
        for rows in ((X, labels, s), repeated(X, labels, s))
    )
    assert_close(found.predict_proba(X), expected.predict_proba(X))
