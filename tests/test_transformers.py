"""Maps as transformers: drawn when they are fitted, from arrays, Dask arrays and files alike."""

from __future__ import annotations

import dask.array as da
import h5py
import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import streamkern
from streamkern import Gaussian, Laplacian, Matern, Moments, accumulate, features, open_hdf5
from streamkern.errors import DataError, ParameterError
from streamkern.sources import ArraySource

MAPS = {
    "fourier": (streamkern.RandomFourierFeatures, {"orthogonal": False}),
    "quasi": (streamkern.QuasiRandomFourierFeatures, {"sequence": "halton"}),
    "structured": (streamkern.StructuredFourierFeatures, {"paired": False}),
    "grid": (streamkern.GridFourierFeatures, {}),
    "landmarks": (streamkern.Nystroem, {"landmarks": "uniform"}),
    "binning": (streamkern.RandomBinning, {"n_entries": 4}),
    "sketch": (streamkern.TensorSketch, {"random_state": 3}),
}
every_map = pytest.mark.parametrize("name", list(MAPS))


def map_of(name, **options):
    made, others = MAPS[name]
    return made(**{"n_components": 16} | others | options)


def rows(n=300, p=3):
    return np.random.default_rng(0).standard_normal((n, p)) * np.arange(1, p + 1)


@every_map
def test_features_are_those_of_the_map_that_is_drawn_with_the_same_options(name):
    X = rows()
    fitted = map_of(name).fit(X)
    inner = getattr(features, type(fitted).__name__)
    options = fitted.get_params(deep=False) | {"kernel": fitted.kernel_}
    # Where a grid lies and landmarks are depends on rows, of which the sample is all in some order.
    drawn = inner(**options).draw(3, X)
    assert fitted.n_components_ == fitted.transform(X).shape[1] == 16
    if name == "landmarks":
        assert {*map(tuple, fitted.feature_map_.similarities.landmarks)} < {*map(tuple, X)}
    else:
        assert fitted.transform(X) == pytest.approx(drawn.transform(X), abs=1e-12)


@every_map
def test_arrays_dask_arrays_and_files_give_the_same_features(name, tmp_path):
    X = rows(3000)
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["X"] = X
    first = map_of(name).fit(X).transform(X)
    lazy = map_of(name).fit(da.from_array(X, chunks=(700, 2)))
    assert np.array_equal(lazy.transform(X), first)
    stored = map_of(name).fit(open_hdf5(tmp_path / "rows.h5", y=None))
    assert np.array_equal(stored.transform(X), first)
    assert stored.n_features_in_ == lazy.n_features_in_ == 3


@every_map
def test_features_of_a_dask_array_are_lazy_and_the_same(name):
    X = rows()
    fitted = map_of(name).fit(X)
    for dtype in (np.float64, np.float32):
        part = X.astype(dtype)
        found = fitted.transform(da.from_array(part, chunks=(70, 2)))
        assert isinstance(found, da.Array)
        assert found.chunks == ((70, 70, 70, 70, 20), (16,))
        assert found.dtype == dtype
        assert found.compute().dtype == dtype
        assert found.compute() == pytest.approx(fitted.transform(part), abs=1e-6)


@pytest.mark.parametrize("kernel", [Gaussian("median"), Laplacian("median")])
def test_a_median_length_scale_is_that_of_the_rows(kernel):
    X = rows()
    fitted = streamkern.RandomFourierFeatures(kernel, 16).fit(X)
    metric = "euclidean" if isinstance(kernel, Gaussian) else "cityblock"
    assert fitted.kernel_.length_scale == pytest.approx(np.median(pdist(X, metric)), rel=1e-12)
    assert fitted.kernel is kernel


@pytest.mark.parametrize("name", ["fourier", "quasi", "structured", "binning", "sketch"])
def test_rows_are_not_read_where_nothing_is_made_from_them(name):
    def fails(block):
        raise AssertionError(block)

    unreadable = da.zeros((9, 3), chunks=3).map_blocks(fails, dtype=float, meta=np.empty((0, 0)))
    kernel = {"binning": Laplacian(), "sketch": streamkern.Polynomial()}.get(name, Gaussian(2.0))
    fitted = map_of(name, kernel=kernel).fit(unreadable)
    assert fitted.transform(rows()).shape == (300, 16)


def test_parameters_stay_what_they_are_and_more_rows_make_more_landmarks():
    landmarks = streamkern.Nystroem(Gaussian(0.5), 50)
    assert landmarks.fit(rows(20)).n_components_ == 20
    assert landmarks.n_components == clone(landmarks).n_components == 50
    assert landmarks.fit(rows(300)).n_components_ == 50
    drawn = features.Nystroem(Gaussian(0.5), 50)
    assert [drawn.draw(3, rows(n)).n_components for n in (20, 300)] == [20, 50]


def test_a_kernel_on_columns_is_one_of_those_columns():
    X = rows()
    kernel = Gaussian("median").on([0]) * Matern("median").on([1, 2])
    fitted = streamkern.RandomFourierFeatures(kernel, 8).fit(X)
    scales = fitted.kernel_.length_scale
    assert scales == pytest.approx((np.median(pdist(X[:, :1])), np.median(pdist(X[:, 1:]))))


def test_a_drawn_map_is_for_moments():
    X = rows()
    drawn = streamkern.RandomFourierFeatures(Gaussian(2.0), 16).draw(3)
    found = accumulate(ArraySource(X, X[:, 0]), Moments(drawn, 1, precision="double")).statistic
    assert found.weight == 300
    with pytest.raises(ParameterError, match="'median' must be resolved"):
        streamkern.RandomFourierFeatures(n_components=16).draw(3)


def test_the_inputs_are_the_features_of_the_identity():
    X = rows()
    fitted = streamkern.Identity().fit(X)
    assert np.array_equal(fitted.transform(X), X)
    assert fitted.get_feature_names_out(["a", "b", "c"]).tolist() == ["a", "b", "c"]


@every_map
def test_a_map_that_is_not_fitted_or_has_no_rows_in_memory_is_refused(name):
    with pytest.raises(NotFittedError):
        map_of(name).transform(rows())
    with pytest.raises(DataError, match="features of a source would not fit in memory"):
        map_of(name).fit(rows()).transform(ArraySource(rows()))


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (streamkern.RandomFourierFeatures(n_components=7), "n_components must be even"),
        (streamkern.RandomFourierFeatures(streamkern.Linear()), "need a shift-invariant kernel"),
        (streamkern.RandomFourierFeatures(Gaussian([1.0, 2.0])), "one per input, 3 here, not 2"),
        (streamkern.Nystroem(landmarks="best"), "landmarks must be one of"),
        (streamkern.RandomBinning(Gaussian()), "is for the Laplacian kernel"),
        (streamkern.TensorSketch(Gaussian()), "of the polynomial kernel"),
    ],
)
def test_options_that_cannot_be_are_refused_when_it_is_fitted(refused, words):
    with pytest.raises(ParameterError, match=words):
        refused.fit(rows())


def test_a_grid_for_many_inputs_is_refused():
    with pytest.raises(ParameterError, match="for 1 to 3 inputs, not 5"):
        streamkern.GridFourierFeatures(n_components=16).fit(rows(p=5))


def test_rows_that_are_not_finite_are_found_where_they_are_read():
    X = rows()
    X[7, 1] = np.nan
    with pytest.raises(DataError, match="Input X contains NaN"):
        streamkern.Nystroem(n_components=16).fit(X)
    with pytest.raises(DataError, match=r"1 of 300 rows hold NaN or infinite values, .* row 7"):
        streamkern.Nystroem(n_components=16).fit(da.from_array(X))
