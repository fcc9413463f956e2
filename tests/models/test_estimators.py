"""Random-feature ridge regression, as a user of scikit-learn and Dask meets it."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings

import dask
import dask.array as da
import h5py
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

import streamkern
from streamkern import Gaussian, Laplacian, Linear, Matern, RandomFeatureRidge, open_hdf5
from streamkern.errors import DataError, OutputError, ParameterError, StreamkernWarning
from streamkern.sources.arrays import ArraySource

P = 3


def rows(n=400, q=None, seed=0):
    """A smooth regression problem with inputs in three different units."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P)) * [1.0, 10.0, 0.1] + [0.0, 5.0, -1.0]
    smooth = [np.sin(X[:, 0]) + X[:, 1] / 10, 50 + 7 * X[:, 0] * X[:, 2], np.cos(X[:, 1] / 5)]
    y = np.stack(smooth, axis=1) + 0.1 * rng.standard_normal((n, 3))
    return X, y[:, 0] if q is None else y[:, :q]


def ridge(**options):
    options = {"n_components": 64, "precision": "double", "alpha": 0.1} | options
    return RandomFeatureRidge(options.pop("kernel", Gaussian(1.5)), **options)


def normal_equations(Phi, y, alpha, *, intercept=True):
    """The weights and mu that solve (Phi^T Phi + alpha I) w = Phi^T y about the means."""
    mean = Phi.mean(axis=0) if intercept else 0.0
    level = y.mean(axis=0) if intercept else np.zeros(y.shape[1:])
    about, D = Phi - mean, Phi.shape[1]
    w = np.linalg.solve(about.T @ about + alpha * np.eye(D), about.T @ (y - level))
    return w, level - (Phi.mean(axis=0) @ w if intercept else 0.0)


def same_bits(one, other):
    return np.array_equal(one.coef_, other.coef_) and np.array_equal(
        one.intercept_, other.intercept_
    )


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("q", [None, 1, 3])
def test_a_fit_solves_the_normal_equations_of_its_features(intercept, standardize, paired, q):
    X, y = rows(q=q)
    model = ridge(fit_intercept=intercept, standardize=standardize, paired=paired).fit(X, y)
    Phi, new = model.transform(X), rows(seed=1)[0]
    w, mu = normal_equations(Phi, y, model.alpha, intercept=intercept)
    assert model.coef_.shape == w.shape
    assert np.shape(model.intercept_) == np.shape(mu)
    assert np.abs(model.coef_ - w).max() < 1e-8 * np.abs(w).max()
    expected = model.transform(new) @ w + mu
    assert np.abs(model.predict(new) - expected).max() < 1e-9 * np.abs(expected).max()


@pytest.mark.parametrize(
    "kernel", [Gaussian("median"), Laplacian(4.0), Matern(2.0, nu=0.5), Matern((1.0, 2.0, 3.0))]
)
@pytest.mark.parametrize("feature_map", ["orthogonal", "iid"])
def test_features_are_those_of_standardised_inputs(kernel, feature_map):
    X, y = rows()
    model = ridge(kernel=kernel, feature_map=feature_map, n_components=512).fit(X, y)
    inputs = StandardScaler().fit_transform(X)[:40]
    Phi = model.transform(X[:40])
    assert Phi.shape == (40, 512)
    # Monte Carlo: 256 frequencies have a standard error of 1 / sqrt(512) at most.
    assert np.abs(Phi @ Phi.T - model.kernel_(inputs, inputs)).max() < 5 / np.sqrt(512)


def test_training_rmse_and_degrees_of_freedom_are_those_of_the_naive_solution():
    X, y = rows(q=3)
    model = ridge(alpha=0.5).fit(X, y)
    residual = model.predict(X) - y
    assert model.report_["train_rmse"] == pytest.approx(
        np.sqrt((residual**2).mean(axis=0)).tolist(), rel=1e-9
    )
    about = model.transform(X) - model.transform(X).mean(axis=0)
    G = about.T @ about
    hat = np.trace(np.linalg.solve(G + 0.5 * np.eye(64), G))
    assert model.report_["effective_dof"] == pytest.approx(hat + 1, rel=1e-9)


# More than one shard.
N = 40_000


@pytest.fixture(scope="module")
def table():
    X, y = rows(N, q=2)
    return X, y, ridge(n_components=32, precision="single").fit(X, y)


def test_the_rows_are_more_than_one_shard(table):
    X, y, _ = table
    assert len(ArraySource(X, y).shards(16384)) == 3


@pytest.mark.parametrize("storage", [{}, {"chunks": (1024, P)}, {"compression": "gzip"}])
def test_files_give_the_bits_that_arrays_give(table, storage, tmp_path):
    X, y, model = table
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        chunks = {"chunks": (2048, P)} if storage == {"compression": "gzip"} else {}
        file.create_dataset("X", data=X, **storage, **chunks)
        file["y"] = y
    assert same_bits(clone(model).fit(open_hdf5(tmp_path / "rows.h5")), model)


@pytest.mark.parametrize("chunk", [2048, 8192])
def test_dask_arrays_give_the_bits_that_arrays_give(table, chunk):
    X, y, model = table
    lazy = da.from_array(X, chunks=(chunk, 2)), da.from_array(y, chunks=(chunk, 1))
    assert same_bits(clone(model).fit(*lazy), model)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_give_the_bits_that_one_gives(table, threads):
    X, y, model = table
    scheduler = "threads" if threads > 1 else "synchronous"
    with dask.config.set(scheduler=scheduler, num_workers=threads):
        assert same_bits(clone(model).fit(X, y), model)


def test_other_cuts_give_the_same_model_up_to_rounding(table):
    X, y, model = table
    other = clone(model).fit(da.from_array(X, chunks=(7777, P)), y)
    difference = np.abs(other.predict(X) - model.predict(X)).max(axis=0)
    assert (difference < 1e-3 * y.std(axis=0)).all()


def test_several_files_are_the_rows_of_one_data_set(table, tmp_path):
    X, y, model = table
    for i, part in enumerate((slice(0, 16384), slice(16384, None))):
        with h5py.File(tmp_path / f"part-{i}.h5", "w") as file:
            file["X"], file["y"] = X[part], y[part]
    assert same_bits(clone(model).fit(open_hdf5(tmp_path / "part-*.h5")), model)


@pytest.mark.parametrize(("q", "shape"), [(None, (7,)), (1, (7, 1)), (3, (7, 3))])
def test_predictions_have_the_shape_of_the_targets(q, shape):
    X, y = rows(q=q)
    model = ridge().fit(X, y)
    assert model.predict(X[:7]).shape == shape
    assert model.predict(X[:7]).dtype == np.float64
    assert isinstance(model.intercept_, float) == (q is None)


def test_several_targets_are_fitted_as_if_one_at_a_time():
    X, y = rows(q=3)
    together = ridge().fit(X, y).predict(X)
    for j in range(3):
        alone = ridge().fit(X, y[:, j]).predict(X)
        assert np.abs(together[:, j] - alone).max() < 1e-8 * np.abs(alone).max()


def no_scheduler(*arguments, **options):
    pytest.fail(f"computed {arguments} {options}")


@pytest.mark.parametrize("q", [None, 1, 3])
def test_predictions_of_a_dask_array_are_lazy_and_the_same(q):
    X, y = rows(q=q)
    model = ridge().fit(X, y)
    lazy = da.from_array(X, chunks=((100, 250, 50), 2))
    with dask.config.set(scheduler=no_scheduler):
        predicted = model.predict(lazy)
    assert isinstance(predicted, da.Array)
    assert predicted.shape == y.shape
    assert predicted.chunks[0] == (100, 250, 50)
    assert predicted.chunks[1:] == (() if q is None else ((q,),))
    assert predicted.dtype == np.float64
    computed = predicted.compute()
    assert computed.shape == y.shape
    assert np.abs(computed - model.predict(X)).max() < 1e-12 * np.abs(y).max()


def test_features_of_a_dask_array_are_lazy_and_the_same():
    X, y = rows()
    model = ridge().fit(X, y)
    lazy = da.from_array(X, chunks=((100, 250, 50), 2))
    with dask.config.set(scheduler=no_scheduler):
        features = model.transform(lazy)
    assert isinstance(features, da.Array)
    assert features.chunks == ((100, 250, 50), (64,))
    assert features.dtype == np.float64
    assert np.abs(features.compute() - model.transform(X)).max() < 1e-14


@pytest.mark.parametrize("method", ["predict", "transform"])
@pytest.mark.parametrize("kind", [np.asarray, da.asarray], ids=["NumPy", "Dask"])
def test_rows_of_another_width_are_refused(method, kind):
    model = ridge().fit(*rows())
    with pytest.raises(DataError, match=r"X has 4 features, but .* expecting 3 features"):
        getattr(model, method)(kind(np.ones((5, 4))))


@pytest.mark.parametrize("q", [None, 1, 3])
def test_the_score_is_that_of_scikit_learn(q):
    model, (X, y) = ridge().fit(*rows(q=q)), rows(q=q, seed=1)
    expected = r2_score(y, model.predict(X))
    assert model.score(X, y) == pytest.approx(expected, rel=1e-10)
    lazy = da.from_array(X, chunks=(100, P)), da.from_array(y, chunks=100)
    assert model.score(*lazy) == pytest.approx(expected, rel=1e-10)


def test_the_score_counts_weights_as_that_of_scikit_learn_does():
    model, (X, y) = ridge().fit(*rows()), rows(seed=1)
    weights = np.random.default_rng(2).random(len(X))
    expected = r2_score(y, model.predict(X), sample_weight=weights)
    assert model.score(X, y, weights) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("intercept", [True, False])
def test_a_weight_counts_as_that_many_equal_rows(intercept):
    X, y = rows(q=2)
    weights = np.random.default_rng(5).integers(0, 4, len(X))
    weighted = ridge(fit_intercept=intercept).fit(X, y, sample_weight=weights)
    repeated = ridge(fit_intercept=intercept).fit(
        np.repeat(X, weights, axis=0), np.repeat(y, weights, axis=0)
    )
    expected = repeated.predict(X)
    assert np.abs(weighted.predict(X) - expected).max() < 1e-9 * np.abs(expected).max()
    assert weighted.report_["train_rmse"] == pytest.approx(repeated.report_["train_rmse"], rel=1e-9)


def with_constant(value=7.0):
    X, y = rows()
    return np.insert(X, 1, value, axis=1), X, y


def test_a_constant_column_is_left_out_with_a_warning():
    constant, X, y = with_constant()
    with pytest.warns(StreamkernWarning, match=r"1 constant column of X left out: 1\."):
        model = ridge().fit(constant, y)
    assert model.report_["dropped_columns"] == [1]
    assert model.n_features_in_ == 4
    assert np.array_equal(model.predict(constant), ridge().fit(X, y).predict(X))


def test_length_scales_stay_with_their_inputs_when_a_column_is_left_out():
    constant, X, y = with_constant()
    with pytest.warns(StreamkernWarning, match="constant column"):
        model = ridge(kernel=Gaussian((1.0, 99.0, 2.0, 3.0))).fit(constant, y)
    kept = ridge(kernel=Gaussian((1.0, 2.0, 3.0))).fit(X, y)
    assert model.kernel_ == Gaussian((1.0, 2.0, 3.0))
    assert np.array_equal(model.predict(constant), kept.predict(X))


def test_the_value_of_a_constant_column_does_not_matter_later():
    constant, _, y = with_constant()
    with pytest.warns(StreamkernWarning, match="constant column"):
        model = ridge().fit(constant, y)
    other = constant.copy()
    other[:, 1] = np.arange(len(other))
    assert np.array_equal(model.predict(other), model.predict(constant))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [np.pi, -1e-8, 1e20])
def test_a_column_constant_up_to_rounding_is_left_out(dtype, value):
    noise = np.random.default_rng(0).integers(-2, 3, 400) * np.finfo(dtype).eps
    constant, X, y = with_constant(value * (1 + noise))
    assert len(np.unique(constant.astype(dtype)[:, 1])) > 1
    with pytest.warns(StreamkernWarning, match="left out: 1"):
        model = ridge().fit(constant.astype(dtype), y)
    kept = ridge().fit(X.astype(dtype), y)
    assert np.array_equal(model.predict(constant.astype(dtype)), kept.predict(X.astype(dtype)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_column_that_varies_by_more_than_rounding_is_kept(dtype):
    X, y = rows()
    X[:, 1] = 1 + 64 * np.finfo(dtype).eps * np.random.default_rng(0).integers(0, 9, len(X))
    assert ridge().fit(X.astype(dtype), y).report_["dropped_columns"] == []


CODE = """
import sys
import numpy as np
import streamkern
folder = sys.argv[1]
model = streamkern.load(f"{folder}/model.h5")
np.save(f"{folder}/elsewhere.npy", model.predict(np.load(f"{folder}/X.npy")))
"""


@pytest.mark.parametrize(("precision", "q"), [("single", None), ("double", 2)])
def test_a_loaded_model_predicts_the_same_bits_here_and_in_a_fresh_process(tmp_path, precision, q):
    X, y = rows(q=q)
    model = ridge(precision=precision, kernel=Matern("median", nu=2.5)).fit(X, y)
    model.save(tmp_path / "model.h5")
    expected = model.predict(X)
    loaded = streamkern.load(tmp_path / "model.h5")
    assert np.array_equal(loaded.predict(X), expected)
    assert same_bits(loaded, model)
    np.save(tmp_path / "X.npy", X)
    subprocess.run([sys.executable, "-c", CODE, tmp_path], check=True)
    assert np.array_equal(np.load(tmp_path / "elsewhere.npy"), expected)


def test_a_loaded_model_knows_its_options_kernel_and_report(tmp_path):
    model = ridge(kernel=Gaussian((1.0, 2.0, 3.0)), alpha=0.25, random_state=9).fit(*rows())
    model.save(tmp_path / "model.h5")
    loaded = streamkern.load(tmp_path / "model.h5")
    assert loaded.get_params() == model.get_params()
    assert loaded.kernel_ == model.kernel_
    assert loaded.report_ == model.report_
    assert loaded.n_features_in_ == P
    assert same_bits(clone(loaded).fit(*rows()), model)


def test_saving_over_a_file_needs_force(tmp_path):
    model = ridge().fit(*rows())
    (tmp_path / "model.h5").write_text("precious")
    with pytest.raises(OutputError, match="exists already"):
        model.save(tmp_path / "model.h5")
    assert (tmp_path / "model.h5").read_text() == "precious"
    model.save(tmp_path / "model.h5", force=True)
    assert same_bits(streamkern.load(tmp_path / "model.h5"), model)


@pytest.mark.parametrize("method", ["predict", "transform", "score"])
def test_a_model_must_be_fitted_first(method):
    with pytest.raises(NotFittedError):
        getattr(ridge(), method)(rows()[0])


def test_an_unfitted_model_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        ridge().save(tmp_path / "model.h5")
    assert list(tmp_path.iterdir()) == []


PARAMETERS = {
    "kernel": Laplacian(2.0),
    "n_components": 32,
    "alpha": 0.7,
    "alphas": (0.1, 1.0),
    "n_folds": 3,
    "fold_by": "blocks",
    "per_target": True,
    "one_standard_error": True,
    "sparse": 8,
    "sparse_method": "lasso",
    "feature_map": "iid",
    "paired": False,
    "metric": "diagonal:2",
    "standardize": False,
    "fit_intercept": False,
    "precision": "double",
    "on_bad_rows": "skip",
    "random_state": 5,
}


# Of a penalty that is chosen.
CHOICES = {"alphas", "n_folds", "fold_by", "per_target", "one_standard_error"}


def test_parameters_are_got_as_they_were_given():
    assert RandomFeatureRidge(**PARAMETERS).get_params(deep=False) == PARAMETERS


@pytest.mark.parametrize("name", list(PARAMETERS))
def test_no_parameter_is_ignored(name):
    X, y = rows()
    X[3] = np.nan
    good = slice(4, None) if name != "on_bad_rows" else slice(None)
    model = RandomFeatureRidge(n_components=16, alpha=0.1)
    if name == "on_bad_rows":
        with pytest.raises(DataError, match="1 of 400 rows"):
            model.fit(X, y)
        assert model.set_params(on_bad_rows="skip").fit(X, y).report_["skipped_rows"] == 1
        return
    if name in CHOICES:
        model.set_params(alpha="cv")
        y = rows(q=2)[1]
    if name == "sparse_method":
        model.set_params(sparse=5)
    if name == "metric":  # a learnt one is taken where that predicts better
        y = np.sin(6.0 * X[:, 0])
        model.set_params(n_components=64)

    def made():
        model.fit(X[good], y[good])
        return model.predict(X[good]).tolist(), model.report_["alpha_curve"]

    before = made()
    model.set_params(**{name: PARAMETERS[name]})
    assert made() != before


def test_a_clone_has_the_parameters_and_is_not_fitted():
    model = RandomFeatureRidge(**PARAMETERS | {"alpha": [0.1, 0.7], "alphas": None}).fit(*rows())
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(rows()[0])
    assert same_bits(copy.fit(*rows()), model)


def test_a_fit_leaves_the_parameters_as_they_were():
    model = ridge(kernel=Gaussian("median"))
    before = model.get_params(deep=False)
    model.fit(*rows())
    assert model.get_params(deep=False) == before
    assert isinstance(model.kernel_.length_scale, float)


def test_scikit_learn_can_search_over_parameters():
    grid = {"alpha": [0.01, 1000.0], "kernel": [Gaussian(1.5), Gaussian(0.01)]}
    search = GridSearchCV(ridge(), grid, cv=3).fit(*rows())
    assert search.best_params_ == {"alpha": 0.01, "kernel": Gaussian(1.5)}
    assert search.best_score_ > 0.9


@pytest.mark.parametrize("model_class", [RandomFeatureRidge, streamkern.RandomFeatureClassifier])
def test_a_kernel_by_its_name_is_that_kernel(model_class, tmp_path):
    (X, y), path = rows(), tmp_path / "model.h5"
    for name, kernel in (("matern32", Matern()), ("RBF[0-1]", Gaussian().on([0, 1]))):
        models = [model_class(each, n_components=16, alpha=0.1) for each in (name, kernel)]
        found, expected = (each.fit(X, y > 0) for each in models)
        assert found.get_params()["kernel"] == clone(found).kernel == name
        assert found.kernel_ == expected.kernel_
        assert np.array_equal(found.coef_, expected.coef_)
        found.save(path, force=True)
        assert streamkern.load(path).kernel == kernel
        streamkern.write_report(found, path.with_suffix(".html"), force=True)
    assert clone(found).set_params(kernel="matern", kernel__nu=0.5).kernel == Matern(nu=0.5)


@pytest.mark.parametrize("n_components", [1, 3])
def test_a_few_features_are_searched_as_many_are(n_components):
    model = ridge(n_components=n_components, kernel=Gaussian(), alpha="cv").tune(*rows())
    assert model.report_["n_components"] == len(model.coef_) == n_components


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"kernel": 3.0}, r"kernel must be a kernel .*, or its name .*, not 3\.0"),
        ({"kernel": "gausian"}, r"did you mean 'gaussian'\?"),
        ({"feature_map": "orthogonol"}, r"did you mean 'orthogonal'\?"),
        ({"n_components": 0}, "n_components must be at least 1"),
        ({"n_components": 64.0}, "n_components must be a whole number"),
        ({"alpha": -1.0}, "alpha must be"),
        ({"alpha": "much"}, "alpha must be"),
        ({"feature_map": "random"}, "feature_map must be one of orthogonal, iid, sorf, "),
        ({"precision": "half"}, "precision must be one of single, double"),
        ({"on_bad_rows": "ignore"}, "on_bad_rows must be one of error, skip"),
        ({"kernel": Gaussian((1.0, 2.0))}, "one per input, 3 here, not 2"),
    ],
)
def test_impossible_parameters_are_refused_when_fitting(changes, match):
    with pytest.raises(ParameterError, match=match):
        ridge(**changes).fit(*rows())


CONTRACT = {
    "rows", "n_features", "n_targets", "n_components", "kernel", "length_scale", "alpha",
    "train_rmse", "cv_rmse", "effective_dof", "seconds", "rows_per_second", "peak_worker_bytes",
    "projected_worker_bytes", "skipped_rows", "retried_shards", "resumed_shards", "precision",
    "solver", "alpha_curve", "n_folds", "fold_by",
}  # fmt: skip


@pytest.mark.parametrize("q", [None, 2])
def test_the_report_has_every_key_of_the_contract(q):
    report = ridge().fit(*rows(q=q)).report_
    assert set(report) >= CONTRACT
    assert set(report["seconds"]) >= {"total", "pass", "solve"}
    assert (report["rows"], report["n_features"], report["n_targets"]) == (400, P, q or 1)
    assert (report["n_components"], report["kernel"], report["length_scale"]) == (
        64,
        "gaussian",
        1.5,
    )
    assert (report["alpha"], report["cv_rmse"], report["precision"]) == (0.1, None, "double")
    assert (report["alpha_curve"], report["n_folds"], report["fold_by"]) == (None, 0, None)
    assert report["skipped_rows"] == report["retried_shards"] == report["resumed_shards"] == 0
    assert isinstance(report["train_rmse"], float if q is None else list)
    assert report["seconds"]["total"] >= report["seconds"]["pass"] + report["seconds"]["solve"]


@pytest.mark.parametrize(
    "kernel", [Gaussian((1.0, 2.0, 3.0, 4.0)), Matern("median"), Linear()], ids=repr
)
def test_the_report_is_json(kernel):
    constant, _, y = with_constant()
    with pytest.warns(StreamkernWarning, match="constant column"):
        report = ridge(kernel=kernel).fit(constant, y).report_
    assert json.loads(json.dumps(report)) == report


def test_a_penalty_below_the_precision_floor_warns_and_still_predicts():
    X, y = rows()
    with pytest.warns(StreamkernWarning, match="below the precision floor"):
        model = ridge(kernel=Gaussian(5.0), precision="single", alpha=1e-10).fit(X, y)
    assert model.report_["alpha"] < model.report_["precision_floor"]
    assert model.report_["solver"] == "eigen"
    assert model.score(X, y) > 0.95


def test_a_penalty_above_the_precision_floor_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = ridge(kernel=Gaussian(5.0), precision="single", alpha=0.1).fit(*rows()).report_
    assert report["alpha"] > report["precision_floor"]


def test_a_fit_without_targets_is_refused():
    with pytest.raises(DataError, match="a fit needs targets"):
        ridge().fit(rows()[0])


def test_a_source_with_targets_beside_it_is_refused():
    X, y = rows()
    with pytest.raises(DataError, match="a source brings its own targets"):
        ridge().fit(ArraySource(X, y), y)


def test_single_precision_is_good_enough_for_a_smooth_problem():
    X, y = rows(4000)
    single, double = (
        ridge(n_components=256, precision=name).fit(X, y) for name in ("single", "double")
    )
    apart = np.abs(single.predict(X) - double.predict(X)).max()
    assert 0 < apart < 1e-3 * y.std()


def test_two_fits_give_the_same_bits_and_another_seed_gives_others():
    X, y = rows()
    model = ridge(precision="single").fit(X, y)
    assert same_bits(ridge(precision="single").fit(X, y), model)
    assert not same_bits(ridge(precision="single", random_state=1).fit(X, y), model)


def test_a_fit_does_not_touch_the_global_random_state():
    np.random.seed(3)  # noqa: NPY002  the state that must stay
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    ridge().fit(*rows())
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


@pytest.mark.parametrize("precision", ["single", "double"])
def test_inputs_and_targets_far_from_zero_are_fitted_as_well_as_centred_ones(precision):
    X, y = rows(2000)
    centred = ridge(kernel=Gaussian("median"), precision=precision).fit(X, y)
    far = ridge(kernel=Gaussian("median"), precision=precision).fit(X + 1e6, y + 1e6)
    apart = np.abs(far.predict(X + 1e6) - 1e6 - centred.predict(X)).max()
    assert apart < 1e-3 * y.std()
    assert far.report_["train_rmse"] == pytest.approx(centred.report_["train_rmse"], rel=1e-4)


def test_inputs_far_from_zero_are_fitted_as_well_without_standardising():
    X, y = rows(2000)
    X = StandardScaler().fit_transform(X)
    centred = ridge(standardize=False, precision="single").fit(X, y)
    far = ridge(standardize=False, precision="single").fit(X + 1e6, y)
    assert far.report_["train_rmse"] == pytest.approx(centred.report_["train_rmse"], rel=0.05)


@pytest.mark.parametrize("q", [None, 2])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 3.0])
@pytest.mark.parametrize("standardize", [True, False])
def test_the_linear_kernel_is_linear_ridge(q, intercept, alpha, standardize):
    X, y = rows(q=q)
    model = ridge(
        kernel=Linear(), alpha=alpha, fit_intercept=intercept, standardize=standardize
    ).fit(X, y)
    inputs = StandardScaler().fit_transform(X) if standardize else X
    linear = Ridge(alpha=alpha, fit_intercept=intercept) if alpha else None
    linear = linear or LinearRegression(fit_intercept=intercept)
    expected = linear.fit(inputs, y).predict(inputs)
    assert np.abs(model.predict(X) - expected).max() < 1e-9 * np.abs(expected).max()
    assert model.report_["n_components"] == P
    assert model.report_["length_scale"] is None
    # scikit-learn puts targets first.
    assert pytest.approx(linear.coef_, rel=1e-8) == model.coef_.T


def test_the_estimator_works_inside_dask_mls_wrapper():
    from dask_ml.wrappers import ParallelPostFit

    X, y = rows()
    wrapped = ParallelPostFit(ridge()).fit(X, y)
    lazy = wrapped.predict(da.from_array(X, chunks=(50, -1)))
    assert isinstance(lazy, da.Array)
    assert lazy.compute() == pytest.approx(ridge().fit(X, y).predict(X), rel=1e-9)


def test_the_identity_map_takes_inputs_as_features():
    X, y = rows()
    options = {"feature_map": "identity", "standardize": False, "alpha": 2.0}
    model = ridge(kernel=Linear(), **options).fit(X, y)
    assert np.array_equal(model.transform(X), X)
    with pytest.raises(ParameterError, match="no kernel but the linear one"):
        ridge(kernel=Gaussian(1.5), **options).fit(X, y)
    assert model.coef_ == pytest.approx(Ridge(alpha=2.0).fit(X, y).coef_, rel=1e-8)
