"""Random-feature ridge regression, as a user of scikit-learn and Dask meets it."""

import dask.array as da
import naive
import numpy as np
import pytest
from harvests import ridge, same_bits
from harvests import smooth_rows as rows
from rows_read import store
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.preprocessing import StandardScaler

import streamkern
from streamkern import Gaussian, Laplacian, Linear, RandomFeatureRidge, open_hdf5
from streamkern.errors import DataError, ParameterError, StreamkernWarning
from streamkern.sources.arrays import ArraySource

P = 3


@pytest.mark.parametrize(
    ("q", "intercept", "standardize", "paired"),
    [(None, True, True, False), (1, False, True, True), (3, True, False, True)],
)
def test_a_fit_solves_the_normal_equations_of_its_features(q, intercept, standardize, paired):
    X, y = rows(q=q)
    model = ridge(fit_intercept=intercept, standardize=standardize, paired=paired).fit(X, y)
    Phi, new = model.transform(X), rows(seed=1)[0]
    targets, ones = y.reshape(len(y), -1), np.ones(len(y))
    w, mu = naive.weighted_ridge(Phi, targets, ones, model.alpha, intercept=intercept)
    w, mu = w.reshape(48, *y.shape[1:]), mu.reshape(y.shape[1:])
    assert model.coef_.shape == w.shape
    assert np.shape(model.intercept_) == np.shape(mu)
    assert np.abs(model.coef_ - w).max() < 1e-8 * np.abs(w).max()
    residual = model.predict(X) - y
    rmse = pytest.approx(np.sqrt((residual**2).mean(axis=0)), rel=1e-9)
    assert np.array(model.report_["train_rmse"]) == rmse
    about = Phi - Phi.mean(axis=0) if intercept else Phi
    G = about.T @ about
    dof = np.trace(np.linalg.solve(G + model.alpha * np.eye(48), G)) + intercept
    assert model.report_["effective_dof"] == pytest.approx(dof, rel=1e-9)
    expected = model.transform(new) @ w + mu
    assert model.predict(new).shape == expected.shape
    assert isinstance(model.intercept_, float) == (q is None)
    assert np.abs(model.predict(new) - expected).max() < 1e-9 * np.abs(expected).max()


# More than one shard.
N = 40_000


@pytest.fixture(scope="module")
def table():
    X, y = rows(N, q=2)
    assert len(ArraySource(X, y).shards(16384)) == 3
    return X, y, ridge(n_components=32, precision="single").fit(X, y)


def test_files_and_dask_arrays_give_the_bits_that_arrays_give(table, tmp_path):
    X, y, model = table
    for storage in ({}, {"chunks": (2048, P), "compression": "gzip"}):
        for i, part in enumerate((slice(0, 16384), slice(16384, None))):
            store(tmp_path / f"part-{i}.h5", X[part], y[part], **storage)
        assert same_bits(clone(model).fit(open_hdf5(tmp_path / "part-*.h5")), model)
    lazy = da.from_array(X, chunks=(2048, 2)), da.from_array(y, chunks=(2048, 1))
    assert same_bits(clone(model).fit(*lazy), model)
    other = clone(model).fit(da.from_array(X, chunks=(7777, P)), y)  # up to rounding
    difference = np.abs(other.predict(X) - model.predict(X)).max(axis=0)
    assert (difference < 1e-3 * y.std(axis=0)).all()


def test_a_constant_column_is_left_out_with_a_warning_whatever_it_is_later():
    X, y = rows()
    constant = np.insert(X, 1, 7.0, axis=1)
    with pytest.warns(StreamkernWarning, match=r"1 constant column of X left out: 1\."):
        model = ridge(kernel=Gaussian((1.0, 99.0, 2.0, 3.0))).fit(constant, y)
    assert model.report_["dropped_columns"] == [1]
    assert model.n_features_in_ == 4
    # Length scales stay with their inputs.
    kept = ridge(kernel=Gaussian((1.0, 2.0, 3.0))).fit(X, y)
    assert model.kernel_ == Gaussian((1.0, 2.0, 3.0))
    for values in (7.0, np.arange(len(X))):
        constant[:, 1] = values
        assert np.array_equal(model.predict(constant), kept.predict(X))


def test_what_is_done_about_bad_rows_can_be_set_after_the_fit_and_counts_in_files(tmp_path):
    X, y = rows()
    model, bad = ridge().fit(X, y), ArraySource(np.where(X[3] == X, np.nan, X), y)
    for use in (model.evaluate, lambda source: model.predict_to_hdf5(source, tmp_path / "p.h5")):
        with pytest.raises(DataError, match="1 of 400 rows"):
            use(bad)
    model.set_params(on_bad_rows="skip", alpha=7.0)
    assert model.evaluate(bad)["skipped_rows"] == 1
    assert model.predict_to_hdf5(bad, tmp_path / "p.h5") == 1
    model.save(tmp_path / "model.h5")
    loaded = streamkern.load(tmp_path / "model.h5")
    assert loaded.evaluate(bad)["skipped_rows"] == 1
    assert loaded.get_params() == ridge(on_bad_rows="skip").get_params()
    assert model.set_params(on_bad_rows="error").report_ == loaded.report_
    streamkern.write_report(model, tmp_path / "report.html", ArraySource(X, y))
    with pytest.raises(DataError, match="1 of 400 rows"):
        streamkern.write_report(model, tmp_path / "bad.html", bad)


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
    "solver": "cg",
    "feature_map": "iid",
    "paired": False,
    "metric": "diagonal:2",
    "trend": "0",
    "scale": "none",
    "standardize": False,
    "fit_intercept": False,
    "precision": "double",
    "on_bad_rows": "skip",
    "random_state": 5,
}


# Of a penalty that is chosen.
CHOICES = {"alphas", "n_folds", "fold_by", "per_target", "one_standard_error"}


@pytest.mark.parametrize("name", list(PARAMETERS))
def test_no_parameter_is_ignored(name):
    X, y = rows()
    model = RandomFeatureRidge("gaussian", n_components=16, alpha=0.1)
    if name == "on_bad_rows":
        X[3] = np.nan
        with pytest.raises(DataError, match="1 of 400 rows"):
            model.fit(X, y)
        assert model.set_params(on_bad_rows="skip").fit(X, y).report_["skipped_rows"] == 1
        return
    if name in CHOICES:
        model.set_params(alpha="cv")
        y = rows(q=2)[1]
    if name == "trend":
        model.set_params(feature_map="grid")
    if name == "sparse_method":
        model.set_params(sparse=5)
    if name == "metric":  # a learnt one is taken where that predicts better
        y = np.sin(6.0 * X[:, 0])
        model.set_params(n_components=64)

    def made():
        model.fit(X, y)
        return model.predict(X).tolist(), model.report_["alpha_curve"]

    before = made()
    model.set_params(**{name: PARAMETERS[name]})
    assert made() != before


def test_a_fit_leaves_the_parameters_as_they_were_given_and_a_clone_has_them():
    given = PARAMETERS | {"kernel": Gaussian("median"), "alpha": [0.1, 0.7], "alphas": None}
    given |= {"solver": "direct", "trend": None}  # as sparse models, of such maps, have
    given |= {"gap": 0, "target_range": (-100.0, None)}  # times are beside rows
    model, state = RandomFeatureRidge(**given), np.random.get_state()[1].tolist()  # noqa: NPY002
    copy = clone(model.fit(*rows()))
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002
    assert copy.get_params(deep=False) == model.get_params(deep=False) == given
    assert isinstance(model.kernel_.length_scale, float)
    with pytest.raises(NotFittedError):
        copy.predict(rows()[0])
    assert same_bits(copy.fit(*rows()), model)


REFUSED = {
    "n_components must be at least 1": {"n_components": 0},
    "n_components must be a whole number": {"n_components": 64.0},
    r"kernel must be a kernel .*, or its name .*, not 3\.0": {"kernel": 3.0},
    r"did you mean 'gaussian'\?": {"kernel": "gausian"},
    r"did you mean 'orthogonal'\?": {"feature_map": "orthogonol"},
    "feature_map must be one of orthogonal, iid, sorf, ": {"feature_map": "random"},
    "alpha must be a finite": {"alpha": -1.0},
    "alpha must be 'cv'": {"alpha": "much"},
    "precision must be one of single, double": {"precision": "half"},
    "on_bad_rows must be one of error, skip": {"on_bad_rows": "ignore"},
    "one per input, 3 here, not 2": {"kernel": Gaussian((1.0, 2.0))},
}


def test_impossible_parameters_are_refused_when_fitting_and_targets_that_are_none_or_two():
    X, y = rows()
    for words, changes in REFUSED.items():
        with pytest.raises(ParameterError, match=words):
            ridge(**changes).fit(X, y)
    with pytest.raises(DataError, match="a fit needs targets"):
        ridge().fit(X)
    with pytest.raises(DataError, match="a source brings its own targets"):
        ridge().fit(ArraySource(X, y), y)


@pytest.mark.parametrize(
    ("q", "intercept", "alpha", "standardize"),
    [(None, True, 0.0, True), (2, False, 0.0, False), (2, True, 3.0, True)],
)
def test_the_linear_kernel_is_linear_ridge_as_is_the_identity_map(q, intercept, alpha, standardize):
    X, y = rows(q=q)
    options = {"kernel": Linear(), "fit_intercept": intercept, "standardize": standardize}
    inputs = StandardScaler().fit_transform(X) if standardize else X
    linear = Ridge(alpha=alpha, fit_intercept=intercept) if alpha else None
    linear = linear or LinearRegression(fit_intercept=intercept)
    expected = linear.fit(inputs, y).predict(inputs)
    for feature_map in ("orthogonal", "identity"):
        model = ridge(alpha=alpha, feature_map=feature_map, **options).fit(X, y)
        assert np.abs(model.predict(X) - expected).max() < 1e-9 * np.abs(expected).max()
        assert (model.report_["n_components"], model.report_["length_scale"]) == (P, None)
        # scikit-learn puts targets first.
        assert pytest.approx(linear.coef_, rel=1e-8) == model.coef_.T
        assert np.allclose(model.transform(X), inputs, rtol=1e-12, atol=1e-12)
    with pytest.raises(ParameterError, match="no kernel but the linear one"):
        ridge(kernel=Gaussian(1.5), feature_map="identity").fit(X, y)
