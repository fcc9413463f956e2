"""Maps as transformers: drawn when they are fitted, from arrays, Dask arrays and files alike."""

import dask.array as da
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import streamkern
from streamkern import Gaussian, Moments, accumulate
from streamkern.errors import DataError, ParameterError
from streamkern.sources import ArraySource

MAPS = {
    "fourier": (streamkern.RandomFourierFeatures, {"orthogonal": False}),
    "quasi": (streamkern.QuasiRandomFourierFeatures, {}),
    "structured": (streamkern.StructuredFourierFeatures, {"paired": False}),
    "grid": (streamkern.GridFourierFeatures, {}),
    "landmarks": (streamkern.Nystroem, {}),
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
    inner = type(fitted.feature_map_)
    options = fitted.get_params(deep=False) | {"kernel": fitted.kernel_}
    # Where a grid lies and landmarks are depends on rows, of which the sample is all in some order.
    drawn = inner(**options).draw(3, X)
    assert fitted.n_components_ == fitted.transform(X).shape[1] == 16
    if name == "landmarks":
        landmarks = fitted.feature_map_.similarities.landmarks
        assert ((X.min(axis=0) < landmarks) & (landmarks < X.max(axis=0))).all()
    else:
        assert fitted.transform(X) == pytest.approx(drawn.transform(X), abs=1e-12)


def weighted(n=200):
    return rows(n), np.random.default_rng(1).integers(0, 4, n)


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("of_dask", [False, True])
def test_rows_of_weight_zero_count_as_none_whatever_they_hold(name, of_dask):
    X, weights = weighted()
    weights = np.minimum(weights, 1)
    held, counted = np.where(weights[:, None] == 0, 1e6, X), weights > 0
    given = held, weights
    if of_dask:
        given = da.from_array(held, chunks=(60, 3)), da.from_array(weights, chunks=50)
    # Landmarks begin at the first rows of a sample, which are others where others are left out.
    n_components = 256 if name == "landmarks" else 16
    fitted = map_of(name, n_components=n_components).fit(given[0], sample_weight=given[1])
    expected = map_of(name, n_components=n_components).fit(X[counted])
    found, wanted = fitted.transform(X), expected.transform(X)
    assert found @ found.T == pytest.approx(wanted @ wanted.T, abs=1e-3)
    everywhere = map_of(name, n_components=n_components).fit(held)
    assert fitted.transform(X) != pytest.approx(everywhere.transform(X), abs=1e-3)


def test_a_map_that_no_row_decides_takes_no_weights():
    with pytest.raises(TypeError, match="sample_weight"):
        streamkern.Identity().fit(rows(), sample_weight=np.ones(300))


@pytest.mark.parametrize("name", ["fourier", "quasi", "structured"])
def test_rows_are_not_read_where_nothing_is_made_from_them(name):
    def fails(block):
        raise AssertionError(block)

    unreadable = da.zeros((9, 3), chunks=3).map_blocks(fails, dtype=float, meta=np.empty((0, 0)))
    fitted = map_of(name, kernel=Gaussian(2.0)).fit(unreadable)
    assert fitted.transform(rows()).shape == (300, 16)


def test_a_drawn_map_is_for_moments():
    X = rows()
    drawn = streamkern.RandomFourierFeatures(Gaussian(2.0), 16).draw(3)
    found = accumulate(ArraySource(X, X[:, 0]), Moments(drawn, 1, precision="double")).statistic
    assert found.weight == 300
    with pytest.raises(ParameterError, match="'median' must be resolved"):
        streamkern.RandomFourierFeatures(n_components=16).draw(3)


@every_map
def test_a_map_that_is_not_fitted_or_has_no_rows_in_memory_is_refused(name):
    with pytest.raises(NotFittedError):
        map_of(name).transform(rows())
    with pytest.raises(DataError, match="features of a source would not fit in memory"):
        map_of(name).fit(rows()).transform(ArraySource(rows()))


def test_options_that_cannot_be_are_refused_when_it_is_fitted():
    for refused, words in (
        (streamkern.RandomFourierFeatures(streamkern.Linear()), "need a shift-invariant kernel"),
        (streamkern.RandomFourierFeatures(Gaussian([1.0, 2.0])), "one per input, 5 here, not 2"),
        (streamkern.StructuredFourierFeatures("laplacian"), "kernels of the Euclidean distance"),
        (streamkern.GridFourierFeatures(n_components=16), "for 1 to 3 inputs, not 5"),
    ):
        with pytest.raises(ParameterError, match=words):
            refused.fit(rows(p=5))


def test_rows_that_are_not_finite_or_weigh_nothing_are_found_where_they_are_read():
    X = rows()
    with pytest.raises(DataError, match="none is left"):
        map_of("fourier").fit(X, sample_weight=np.zeros(300))
    X[7, 1] = np.nan
    with pytest.raises(DataError, match="Input X contains NaN"):
        streamkern.Nystroem(n_components=16).fit(X)
    with pytest.raises(DataError, match=r"1 of 300 rows hold NaN or infinite values, .* row 7"):
        streamkern.Nystroem(n_components=16).fit(da.from_array(X))


class Scaled(streamkern.Identity):
    """A map of one's own, whose `transform` takes more than rows."""

    def transform(self, X, by=1.0):
        return super().transform(X) * by


class Bare(Scaled, auto_wrap_output_keys=None):
    def transform(self, X, by=1.0):
        return super().transform(X, by)


@pytest.mark.parametrize("made", [Scaled, Bare])
def test_maps_of_ones_own_may_take_more_and_may_go_without_containers(made):
    X = np.arange(12.0).reshape(6, 2)
    scaled = made().fit(X)
    assert np.array_equal(scaled.transform(X, by=2.0), 2.0 * X)
    lazy = scaled.transform(da.from_array(X, chunks=(2, 2)), by=3.0)
    assert isinstance(lazy, da.Array)
    assert np.array_equal(lazy.compute(), 3.0 * X)
