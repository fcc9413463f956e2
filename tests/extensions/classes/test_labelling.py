"""Rows with labels: which classes there are, what they weigh, and what targets they become."""

import dask
import dask.array as da
import h5py
import numpy as np
import pytest
from rows_read import store
from sklearn.utils.class_weight import compute_class_weight

from streamkern.errors import DataError, ParameterError
from streamkern.extensions.classes.labelling import labelled_source
from streamkern.sources import open_hdf5

N, P = 60, 3
NAMES = np.array(["hay", "oats", "straw"])


pytestmark = pytest.mark.usefixtures("in_this_thread")


def rows():
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, P)), NAMES[rng.integers(0, 3, N)]


def read(source, shard_rows=20):
    """Targets and weights of all rows, shard by shard."""
    targets, weights = [], []
    for shard in source.shards(shard_rows):
        (reader,) = dask.compute(source.reader(shard))
        for block in reader.blocks(7):
            targets.append(block.y.copy())
            weights.append(np.ones(len(block)) if block.weights is None else block.weights)
    return np.concatenate(targets), np.concatenate(weights)


def one_hot(labels):
    return np.where(labels[:, None] == np.unique(labels), 1.0, -1.0)


TYPES = {
    "text of fixed length": lambda y: y.astype("S"),
    "text of any length": lambda y: np.array(y.tolist(), dtype=h5py.string_dtype()),
    "text in UTF-8": lambda y: np.array(
        [label.encode() for label in y], dtype=h5py.string_dtype("utf-8", 8)
    ),
    "integers": lambda y: np.searchsorted(NAMES, y).astype("u1"),
    "whole floats": lambda y: np.searchsorted(NAMES, y).astype("f4"),
    "a column": lambda y: np.searchsorted(NAMES, y)[:, None],
}


@pytest.mark.parametrize("stored", list(TYPES.values()), ids=list(TYPES))
def test_labels_in_files_are_those_of_arrays_whatever_their_type(stored, tmp_path):
    X, y = rows()
    order = np.argsort(y, kind="stable")  # no file has rows of all classes
    X, y = X[order], y[order]
    for i, part in enumerate((slice(0, 45), slice(45, N))):
        store(tmp_path / f"{i}.h5", X[part], stored(y[part]), chunks=(10, P))
    source = labelled_source(open_hdf5(tmp_path / "*.h5", labels=True))
    np.testing.assert_array_equal(read(source)[0], one_hot(y))
    np.testing.assert_array_equal(source.class_counts, np.unique(y, return_counts=True)[1])
    assert (source.n_targets, source.target_ndim) == (3, 2)


@pytest.mark.parametrize("of_dask", [(True, False), (True, True), (False, True)])
def test_lazy_rows_and_labels_are_those_in_memory(of_dask):
    X, y = rows()
    lazy = (
        da.from_array(X, chunks=(13, 2)) if of_dask[0] else X,
        da.from_array(y.astype(object), chunks=9) if of_dask[1] else y,
    )
    source = labelled_source(*lazy)
    np.testing.assert_array_equal(read(source)[0], one_hot(y))


def test_balanced_weights_are_those_of_scikit_learn():
    X, y = rows()
    expected = compute_class_weight("balanced", classes=NAMES, y=y)
    source = labelled_source(X, y, class_weight="balanced")
    np.testing.assert_allclose(source.encoding.factors, expected)
    np.testing.assert_allclose(read(source)[1], expected[np.searchsorted(NAMES, y)])


def test_weights_count_as_rows_that_are_there_more_often():
    X, y = rows()
    times = np.random.default_rng(1).integers(0, 4, N)
    source = labelled_source(X, y, times, class_weight="balanced")
    repeated = labelled_source(X.repeat(times, 0), y.repeat(times), class_weight="balanced")
    np.testing.assert_allclose(source.encoding.factors, repeated.encoding.factors)
    np.testing.assert_allclose(
        read(source)[1], times * source.encoding.factors[np.searchsorted(NAMES, y)]
    )


def test_rows_that_are_left_out_do_not_balance():
    X, y = rows()
    X[:10, 0], labels = np.nan, y.astype(object)
    labels[10:15] = None
    source = labelled_source(X, labels, class_weight="balanced", skip_bad_rows=True)
    expected = compute_class_weight("balanced", classes=NAMES, y=y[15:])
    np.testing.assert_allclose(source.encoding.factors, expected)


def test_weights_that_cannot_be_are_told():
    for class_weight, words in (
        ({"rye": 1.0}, "names 'rye', which is none of the 3 classes 'hay', 'oats', 'straw'"),
        ({"hay": -1.0}, "has -1.0 for the class 'hay'"),
        ("even", "must be None, 'balanced' or a dictionary"),
    ):
        with pytest.raises(ParameterError, match=words):
            labelled_source(*rows(), class_weight=class_weight)


def test_labels_that_cannot_be_learnt_from_are_told():
    for y, words in (
        (np.full(N, "a"), "every label is 'a'.* at least two classes"),
        (np.full(N, np.nan), "no row has a label"),
        (np.zeros(N - 1), "must be equally long"),
        (np.zeros((N, 2)), "one label a row"),
        (None, "a classifier needs labels"),
    ):
        with pytest.raises(DataError, match=words):
            labelled_source(rows()[0], y)


def test_files_without_labels_are_refused(tmp_path):
    for y, words in (
        (None, "has no dataset 'y'"),
        (np.zeros(N - 1), "must be equally long"),
        (np.zeros((N, 2)), "one value a row"),
        (np.zeros(N, "c8"), "must hold text, booleans"),
        (np.full(N, b"\xff\xfe"), "are no text in UTF-8"),
    ):
        store(tmp_path / "a.h5", rows()[0], y)
        with pytest.raises(DataError, match=words):
            labelled_source(open_hdf5(tmp_path / "a.h5", labels=True))


def test_labels_that_cannot_be_read_are_told_or_missing(tmp_path):
    X, y = rows()
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["X"] = X
        codes = np.searchsorted(NAMES, y)
        file.create_dataset("y", data=codes, chunks=(10,), fletcher32=True)
    with h5py.File(tmp_path / "a.h5") as file:
        offset = file["y"].id.get_chunk_info(2).byte_offset
    with (tmp_path / "a.h5").open("r+b") as file:
        file.seek(offset)
        file.write(b"\x5a" * 8)
    source = open_hdf5(tmp_path / "a.h5", labels=True)
    with pytest.raises(DataError, match=r"labels 20 to 30 of /y cannot be read"):
        labelled_source(source)
    found = labelled_source(source, skip_bad_rows=True)
    assert np.flatnonzero(np.isnan(read(found)[0]).any(axis=1)).tolist() == list(range(20, 30))
    assert found.class_counts.sum() == N - 10


@pytest.mark.parametrize("stored", ["u1", "f2", "f4"])
def test_values_are_as_rounded_as_those_of_the_rows(tmp_path, stored):
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["X"], file["y"] = np.arange(12).reshape(6, 2).astype(stored), [0, 1, 0, 1, 0, 1]
    rows = open_hdf5(tmp_path / "rows.h5", labels=True)
    expected = {"u1": 0.0, "f2": np.finfo("f2").eps, "f4": np.finfo("f4").eps}[stored]
    assert labelled_source(rows).rounding == rows.rounding == expected
