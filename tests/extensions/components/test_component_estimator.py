"""Principal components of random features, against scikit-learn's and Dask-ML's of the same."""

import h5py
import numpy as np
import pandas as pd
import pytest
from rows_read import store
from sklearn.decomposition import PCA

import streamkern
from streamkern import Gaussian, Linear, RandomFeaturePCA, RandomFeatureRidge, open_hdf5
from streamkern.errors import DataError, ParameterError, StreamkernWarning
from streamkern.sources import ArraySource

P = 4
ATTRIBUTES = (
    *("components_", "explained_variance_", "explained_variance_ratio_", "singular_values_"),
    "mean_",
)


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P)) @ rng.standard_normal((P, P))
    return X * [1, 10, 0.1, 3] + [0, 5, 1, 9]


def pca(**options):
    options = {"n_components": 6, "n_random_features": 64, "precision": "double"} | options
    kernel = Linear() if options.get("feature_map") == "identity" else Gaussian(1.5)
    return RandomFeaturePCA(options.pop("kernel", kernel), **options)


def assert_same(found, expected, apart=1e-9):
    for name in ATTRIBUTES:
        mine, theirs = getattr(found, name), getattr(expected, name)
        assert mine.shape == theirs.shape
        assert np.abs(mine - theirs).max() < apart * max(np.abs(theirs).max(), 1.0), name


@pytest.mark.parametrize(
    "options",
    [
        {"paired": False},
        {"feature_map": "sorf"},
        {"feature_map": "nystroem"},
        {"n_random_features": 400},  # more than rows
        {"standardize": False, "kernel": Gaussian(20.0), "precision": "single"},
    ],
)
def test_components_are_those_of_the_features(options):
    X, new = rows(), rows(seed=1)
    found = pca(**options).fit(X)
    features, apart = found.feature_map_.transform, 1e-4 if "precision" in options else 1e-9
    expected = PCA(6, svd_solver="full").fit(features(X))
    assert_same(found, expected, apart)
    assert np.abs(found.transform(new) - expected.transform(features(new))).max() < apart
    assert np.abs(found.components_ @ found.components_.T - np.eye(6)).max() < 1e-12
    assert found.n_samples_ == len(X)


@pytest.mark.parametrize("wanted", [0.5, 0.9, 3, None])
def test_as_many_are_kept_as_are_asked_for(wanted):
    X = rows()
    found = pca(n_components=wanted).fit(X)
    expected = PCA(wanted).fit(found.feature_map_.transform(X))
    assert found.n_components_ == len(found.components_) == expected.n_components_
    assert_same(found, expected, 1e-7)


def test_components_of_no_variance_are_left_out_with_a_warning():
    X = rows(40)
    assert pca(n_components=None).fit(X).n_components_ == 39
    with pytest.warns(StreamkernWarning, match="only 39 of the 40"):
        assert pca(n_components=40).fit(X).n_components_ == 39


def test_numbers_of_components_and_weights_that_cannot_be_are_refused():
    for wanted in (0, -1, True, 1.5, 0.0, "mle"):
        with pytest.raises(ParameterError, match="n_components must be"):
            pca(n_components=wanted).fit("nothing to read")
    with pytest.raises(ParameterError, match="64 components at most"):
        pca(n_components=65).fit(rows())
    with pytest.raises(DataError, match="all 4 columns of X are constant"):
        pca(n_components=1).fit(rows(2), sample_weight=[1.0, 0.0])


def test_equal_weights_below_one_say_nothing_and_one_row_has_no_components():
    X = rows(40)
    ridge = RandomFeatureRidge("gaussian", n_components=16, alpha=1.0)
    one = ridge.moments(X[:1], X[:1, 0], like=ridge.fit(X, X[:, 0]))
    with pytest.raises(DataError, match="2 rows at least, but there is 1"):
        pca(n_components=1).solve(one)
    assert_same(pca().fit(X, sample_weight=np.full(40, 0.01)), pca().fit(X))


def test_targets_do_not_matter(tmp_path):
    X = rows()
    store(tmp_path / "rows.h5", X, X[:, 0] ** 2)
    found = pca().fit(X)
    assert_same(pca().fit(X, np.full(len(X), np.nan)), found, 1e-15)
    assert_same(pca().fit(open_hdf5(tmp_path / "rows.h5", y=None)), found, 1e-15)
    assert_same(pca().fit(open_hdf5(tmp_path / "rows.h5")), found, 1e-12)


@pytest.mark.parametrize("feature_map", ["orthogonal", "nystroem"])
def test_moments_give_the_components_without_reading_again(feature_map, tmp_path):
    X, options = rows(), {"n_components": 64, "precision": "double"}
    ridge = RandomFeatureRidge(Gaussian(1.5), feature_map=feature_map, **options)
    ridge.moments(X, X[:, 0]).save(tmp_path / "m.h5")
    found = pca(n_components=3).solve(streamkern.load_moments(tmp_path / "m.h5"))
    assert_same(found, pca(n_components=3, feature_map=feature_map).fit(X))


def test_files_are_transformed_in_pieces(tmp_path):
    X = rows(3000)
    source = open_hdf5(store(tmp_path / "rows.h5", X, chunks=(500, P)), y=None)
    found = pca().fit(source)
    scores = found.transform(X)
    assert scores.shape == (3000, 6)
    assert np.array_equal(found.transform(source), scores)
    assert found.transform_to_hdf5(source, tmp_path / "scores.h5") == 0
    with h5py.File(tmp_path / "scores.h5") as file:
        assert np.array_equal(file["X"][:], scores)
    # What was written is the X of a data set.
    assert open_hdf5(tmp_path / "scores.h5", y=None).n_features == 6


def test_a_file_brings_the_same_components_back(tmp_path):
    frame = pd.DataFrame(rows(), columns=list("abcd"))
    found = pca(n_components=0.9, feature_map="nystroem").fit(frame)
    found.save(tmp_path / "pca.h5")
    again = streamkern.load(tmp_path / "pca.h5")
    assert_same(again, found, 1e-300)
    for model in (found, again):
        assert model.feature_names_in_.tolist() == list("abcd")
        for use in (
            model.transform,
            lambda X, m=model: m.transform_to_hdf5(X, tmp_path / "s.h5", force=True),
        ):
            use(frame[list("bacd")])
        np.testing.assert_array_equal(model.transform(frame[list("bacd")]), model.transform(frame))


def test_bad_rows_become_nan_where_they_are_skipped(tmp_path):
    X = rows()
    X[7, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        pca().fit(X)
    found = pca(on_bad_rows="skip").fit(X)
    assert found.n_samples_ == len(X) - 1
    assert np.flatnonzero(np.isnan(found.transform(X)).any(axis=1)).tolist() == [7]
    assert found.transform_to_hdf5(ArraySource(X), tmp_path / "scores.h5") == 1
    with pytest.raises(DataError, match="1 of 300 rows have no finite prediction"):
        found.set_params(on_bad_rows="error").transform_to_hdf5(ArraySource(X), tmp_path / "t.h5")
    found.save(tmp_path / "pca.h5")
    assert streamkern.load(tmp_path / "pca.h5").on_bad_rows == "error"
