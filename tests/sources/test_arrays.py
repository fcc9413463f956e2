"""Rows of NumPy and Dask arrays."""

import pickle

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows_read import together

from streamkern import RandomFeatureRidge
from streamkern.errors import DataError
from streamkern.sources import ArraySource, as_source
from streamkern.sources.arrays import DaskSource


def rows(n=50, p=3):
    return np.random.default_rng(0).standard_normal((n, p))


@given(
    n=st.integers(1, 60),
    shard_rows=st.integers(1, 70),
    block_rows=st.integers(1, 70),
    q=st.sampled_from([None, 0, 1, 3]),
)
def test_blocks_put_together_are_the_data(n, shard_rows, block_rows, q):
    X = rows(n)
    y = None if q is None else np.arange(n * max(q, 1)).reshape((n, q) if q else (n,))
    weights = np.arange(n) / 7
    source = as_source(X, y, weights)
    assert source.n_targets == (0 if q is None else max(q, 1))
    assert source.target_ndim == (2 if q else 1)
    read = together(source, shard_rows, block_rows)
    np.testing.assert_array_equal(read[0], X)
    np.testing.assert_array_equal(read[1], np.empty((n, 0)) if y is None else y.reshape(n, -1))
    np.testing.assert_array_equal(read[2], weights)


@pytest.mark.parametrize(
    "dtype", ["f2", "f4", ">f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
)
def test_arrays_keep_their_type(dtype):
    X = np.arange(12).reshape(4, 3).astype(dtype)
    source = as_source(X, X[:, 0])
    read, y, _ = together(source)
    assert source.dtype == X.dtype
    np.testing.assert_array_equal(read, X)
    np.testing.assert_array_equal(y[:, 0], X[:, 0].astype(float))


@pytest.mark.parametrize("order", ["C", "F"])
def test_numpy_rows_are_not_copied(order):
    X = np.asarray(rows(), order=order)
    source = as_source(X)
    block = next(source.reader(source.shards(20)[1]).blocks(5))
    assert np.shares_memory(block.X, X)


def test_a_source_is_taken_as_it_is():
    source = ArraySource(rows())
    assert as_source(source) is source
    with pytest.raises(DataError, match="brings its own targets"):
        as_source(source, np.zeros(50))


def test_readers_of_arrays_hold_their_shard_alone():
    source = as_source(rows(10_000), np.zeros(10_000))
    sent = pickle.dumps(source.reader(source.shards(100)[3]))
    assert len(sent) < 100 * 4 * 8 + 1000
    (block,) = pickle.loads(sent).blocks(100)  # noqa: S301
    np.testing.assert_array_equal(block.X, rows(10_000)[300:400])


ROWS = np.random.default_rng(0).standard_normal((50, 3))


@pytest.mark.parametrize("kind", ["numpy", "dask"])
@pytest.mark.parametrize(
    ("X", "y", "weights", "why"),
    [
        (np.zeros(5), None, None, "X must have 2 dimensions"),
        (np.zeros((5, 2, 2)), None, None, "X must have 2 dimensions"),
        (np.zeros((0, 2)), None, None, "at least one row and one column"),
        (np.zeros((5, 0)), None, None, "at least one row and one column"),
        (np.zeros((5, 2), complex), None, None, "type is complex128"),
        (np.zeros((5, 2), object), None, None, "type is object"),
        (np.full((5, 2), "a"), None, None, "type is text"),
        (np.zeros((5, 2), "M8[s]"), None, None, r"type is datetime64\[s\]"),
        (ROWS, np.zeros(49), None, "X has 50 rows but y has 49"),
        (ROWS, np.zeros((50, 2, 2)), None, "y must have 1 or 2 dimensions"),
        (ROWS, np.full(50, "a"), None, "y must hold floats or integers"),
        (ROWS, np.zeros((50, 0)), None, "y .*at least one"),
        (ROWS, None, np.ones((50, 1)), r"sample_weight must have 1 dim.*has shape \(50, 1\)"),
        (ROWS, None, 1.0, "sample_weight must have 1 dimensions"),
        (ROWS, None, ["many"] * 50, "sample_weight must hold floats or integers"),
        (ROWS, None, np.ones(49), "X has 50 rows but sample_weight has 49"),
    ],
)
def test_what_is_no_table_of_numbers_of_equal_length_is_refused(X, y, weights, why, kind):
    if kind == "dask":
        X = da.from_array(X, chunks=20)
    with pytest.raises(DataError, match=why):
        as_source(X, y, weights)


def test_a_negative_weight_is_named_before_any_pass():
    weights = np.ones(50)
    weights[[7, 9]] = -2.0
    with pytest.raises(DataError, match="row 7 has the weight -2, but a weight is how often"):
        as_source(rows(), sample_weight=weights)


# Dask arrays.


@settings(max_examples=25)
@given(
    chunks=st.lists(st.integers(1, 20), min_size=1, max_size=6),
    y_chunk=st.integers(1, 60),
    weight_chunk=st.integers(1, 60),
    shard_rows=st.integers(1, 70),
    block_rows=st.integers(1, 70),
)
def test_dask_blocks_put_together_are_the_data_in_whole_chunks(
    chunks, y_chunk, weight_chunk, shard_rows, block_rows
):
    X = rows(sum(chunks))
    y, weights = np.arange(2.0 * len(X)).reshape(-1, 2), np.arange(len(X))
    source = as_source(
        da.from_array(X, chunks=(tuple(chunks), 2)),
        da.from_array(y, chunks=(y_chunk, 1)),
        da.from_array(weights, chunks=weight_chunk),
    )
    assert (source.n_targets, source.target_ndim) == (2, 2)
    read = together(source, shard_rows, block_rows)
    for found, expected in zip(read, (X, y, weights), strict=True):
        np.testing.assert_array_equal(found, expected)
    boundaries = set(np.cumsum(chunks).tolist())
    assert {shard.stop for shard in source.shards(shard_rows)} <= boundaries


def test_dask_arrays_stay_lazy():
    def never(_):
        raise AssertionError("computed too early")

    X = da.zeros((50, 3), chunks=(10, 3)).map_blocks(never, dtype=float, meta=np.empty((0, 0)))
    source = as_source(X, X[:, 0], X[:, 1])
    assert isinstance(source, DaskSource)
    source.reader(source.shards(20)[0])
    assert source.describe() == {"kind": "dask array", "rows": 50}
    assert source.weighted_by == "sample_weight"


def noting(X, chunks):
    """Return X as a Dask array, and a list of the rows of every chunk that is computed."""
    computed = []

    def note(block):
        computed.append(len(block))
        return block

    lazy = da.from_array(X, chunks=chunks)
    return lazy.map_blocks(note, dtype=float, meta=np.empty((0, 0))), computed


def test_a_shard_computes_its_own_chunks_alone():
    X, computed = noting(rows(60), ((5, 10, 15, 30), 3))
    source = as_source(X)
    shard = source.shards(15)[1]
    assert (shard.start, shard.stop) == (15, 30)
    dask.compute(source.reader(shard), scheduler="synchronous")
    assert computed == [15]


def test_rows_and_targets_of_one_array_are_loaded_once_a_pass():
    whole, computed = noting(rows(60, 4), (20, 4))
    with dask.config.set(scheduler="synchronous"):
        RandomFeatureRidge(n_components=8, alpha=1.0).fit(whole[:, :3], whole[:, 3])
    assert len(computed) == 2 * 3  # two passes, three chunks


def test_empty_dask_chunks_add_no_rows():
    X = np.arange(60.0).reshape(20, 3)
    lazy = da.from_array(X, chunks=(5, 3))
    lazy = lazy[(lazy[:, 0] < 14) | (lazy[:, 0] > 44)].compute_chunk_sizes()
    assert lazy.chunks[0] == (5, 0, 0, 5)
    expected = np.concatenate([X[:5], X[15:]])
    for shard_rows in (1, 5, 100):
        read = together(as_source(lazy, lazy[:, 0]), shard_rows)
        np.testing.assert_array_equal(read[0], expected)


def test_dask_chunks_of_unknown_size_are_measured_once_and_left_as_they_were():
    (lazy, computed), mask = noting(rows(), (10, 3)), rows()[:, 0] > 0
    chosen = lazy[da.from_array(mask, chunks=10)]
    source = as_source(chosen, chosen[:, 1], chosen[:, 2] ** 2)
    assert sorted(computed) == [10] * 5  # one computation for the three of them
    assert np.isnan(chosen.shape[0])
    X, y, weights = together(source, 20)
    np.testing.assert_array_equal(X, rows()[mask])
    np.testing.assert_array_equal(y[:, 0], rows()[mask, 1])
    np.testing.assert_array_equal(weights, rows()[mask, 2] ** 2)


def test_columns_of_unknown_number_are_refused():
    X = da.from_array(rows(), chunks=(10, 3))
    with pytest.raises(DataError, match=r"columns of unknown number; call compute_chunk_sizes"):
        as_source(X[:, da.from_array(np.array([True, False, True]), chunks=3)])


def test_numpy_and_dask_arrays_go_together():
    X = rows()
    lazy, y = da.from_array(X, chunks=(20, 3)), da.from_array(X[:, 0], chunks=7)
    for source in (
        as_source(lazy, X[:, 0]),
        as_source(X, y),
        as_source(lazy, y[y > -np.inf]),  # chunks of unknown size
    ):
        assert (source.n_targets, source.target_ndim) == (1, 1)
        np.testing.assert_array_equal(together(source, 20)[1][:, 0], X[:, 0])
