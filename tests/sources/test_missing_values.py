"""Attributes of NetCDF, types that NumPy lacks, and rows that lie turned."""

import h5py
import numpy as np
import pytest

import streamkern
from streamkern.errors import DataError, StreamkernError

N = 60
X = np.arange(N * 2.0).reshape(N, 2)


def stored(path, X=X, y=X[:, 0], on="X", **attributes):
    with h5py.File(path, "w") as file:
        file["X"], file["y"] = X, y
        file[on].attrs.update(attributes)
    return path


def read(path, **named):
    source = streamkern.open_hdf5(path, **named)
    (shard,) = source.shards(N)
    (block,) = source.reader(shard).blocks(N)
    return block


@pytest.mark.parametrize("dtype", ["f2", "f4", ">f8", "i2", "i8"])
@pytest.mark.parametrize(
    ("attributes", "missing"),
    [
        ({"_FillValue": 5}, [5]),
        ({"missing_value": [5, 7]}, [5, 7]),
        ({"valid_min": 2}, [0, 1]),
        ({"valid_max": 117}, [118, 119]),
        ({"valid_range": [1, 118]}, [0, 119]),
        ({"_FillValue": 5, "valid_min": 1}, [0, 5]),
    ],
)
def test_what_attributes_mark_as_missing_is_nan(tmp_path, dtype, attributes, missing):
    typed = {name: np.array(value, dtype) for name, value in attributes.items()}
    found = read(stored(tmp_path / "a.h5", X.astype(dtype), **typed)).X
    np.testing.assert_array_equal(found, np.where(np.isin(X, missing), np.nan, X))


@pytest.mark.parametrize("attribute", ["_FillValue", "missing_value", "valid_max"])
@pytest.mark.parametrize(
    ("text", "missing"), [(b"5", 5), ([b" 5.0 ", b"nan"], 5), (b"none", -1), (b"", -1)]
)
@pytest.mark.parametrize("dtype", ["f4", "i2"])
def test_a_number_that_an_attribute_has_as_text_is_that_number(
    tmp_path, attribute, text, missing, dtype
):
    given = {attribute: np.array(text)}
    found = read(stored(tmp_path / "a.h5", X.astype(dtype), **given)).X
    gone = (missing == 5) & (np.greater(X, 5) if attribute == "valid_max" else np.equal(X, 5))
    np.testing.assert_array_equal(found, np.where(gone, np.nan, X))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (np.bytes_("-9999f"), "'-9999f'"),
        (np.bytes_("5, 7"), "'5, 7'"),
        ("5", "text of variable length"),
    ],
)
def test_text_that_may_name_a_number_and_is_none_is_refused(tmp_path, text, said):
    path = stored(tmp_path / "a.h5", missing_value=text)
    with pytest.raises(DataError, match=rf"attribute missing_value that .*{said}.*; write the"):
        streamkern.open_hdf5(path)


def test_a_packing_that_is_text_is_refused_too(tmp_path):
    with pytest.raises(DataError, match="by its attribute scale_factor"):
        streamkern.open_hdf5(stored(tmp_path / "a.h5", scale_factor=np.bytes_("0.1")))


@pytest.mark.parametrize("on", ["y", "weights"])
def test_targets_and_weights_have_missing_values_too(tmp_path, on):
    path = stored(tmp_path / "a.h5", y=np.where(X[:, 0] == 8, 9.97e36, X[:, 0]).astype("f4"))
    with h5py.File(path, "r+") as file:
        file["weights"] = file["y"][()]
        file[on].attrs["_FillValue"] = np.float32(9.97e36)
    block = read(path, weights="weights")
    assert np.flatnonzero(np.isnan(block.y[:, 0])).tolist() == [4] * (on == "y")
    assert np.flatnonzero(np.isnan(block.weights)).tolist() == [4] * (on == "weights")


def test_an_open_dataset_whose_attributes_mark_missing_values_is_refused(tmp_path):
    with h5py.File(stored(tmp_path / "a.h5", _FillValue=5.0)) as file:
        model = streamkern.RandomFeatureRidge(n_components=8, alpha=1.0)
        with pytest.raises(DataError, match=r"X has attributes .*; fit to the file"):
            model.fit(file["X"], X[:, 0])
        assert model.fit(file["y"][()][:, None], file["y"]).coef_.shape == (8,)


def test_a_fill_value_that_is_nan_marks_nothing_else(tmp_path):
    np.testing.assert_array_equal(read(stored(tmp_path / "a.h5", _FillValue=np.nan)).X, X)


def test_labels_that_are_the_fill_value_are_missing(tmp_path):
    path = stored(tmp_path / "a.h5", y=np.arange(N) % 3, on="y", _FillValue=np.int64(2))
    source, labels = streamkern.open_hdf5(path, labels=True).labelled()
    (found,) = labels.reader(source.shards(N)[0])
    assert found.tolist() == [None if i % 3 == 2 else i % 3 for i in range(N)]


@pytest.mark.parametrize(
    "attributes", [{"_Unsigned": "true"}, {"_Unsigned": np.bytes_("true")}, {"scale_factor": 0.5}]
)
def test_attributes_that_are_packing_or_kept_in_a_heap_are_refused(tmp_path, attributes):
    path = stored(tmp_path / "a.h5", X.astype("i1"), **attributes)
    with pytest.raises(DataError, match=f"by its attribute {next(iter(attributes))}"):
        streamkern.open_hdf5(path)


@pytest.mark.parametrize("chunk", [None, (10, 2)])
def test_bfloat16_is_read(tmp_path, chunk):
    kind, made = h5py.h5t.IEEE_F32LE.copy(), h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    kind.set_fields(15, 7, 8, 0, 7)
    kind.set_size(2)
    kind.set_ebias(127)
    if chunk:
        made.set_chunk(chunk)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        h5py.h5d.create(file.id, b"X", kind, h5py.h5s.create_simple(X.shape), made)
        file["X"][:] = X.astype("f4")
        file["y"] = X[:, 0]
    np.testing.assert_array_equal(read(tmp_path / "a.h5").X, X)


@pytest.mark.parametrize("y", [X[:, :1].T, X[:, 0]])
def test_rows_that_lie_turned_are_told_with_a_remedy_that_works(tmp_path, monkeypatch, y):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="as MATLAB writes HDF5") as error:
        streamkern.open_hdf5(stored(tmp_path / "a.h5", X.T, y))
    code = str(error.value).partition("turn them in Python: ")[2].rstrip(".")
    exec(code, {})  # noqa: S102  as in a program of its own
    with h5py.File("turned.h5") as file:
        assert np.array_equal(file["X"], X)
        assert ("y" in file) == (y.ndim == 2)


@pytest.mark.parametrize("lazy", [True, False])
def test_rows_that_lie_turned_are_told_in_predictions_too(tmp_path, monkeypatch, lazy):
    monkeypatch.chdir(tmp_path)
    model = streamkern.RandomFeatureRidge("gaussian", n_components=8, alpha=1.0).fit(X, X[:, 0])
    model.save("model.h5")
    path = stored(tmp_path / "a.h5", X.T, X[:2, 0])
    rows = streamkern.open_hdf5(path, y=None) if lazy else path
    with pytest.raises(DataError, match="seems to be transposed, as MATLAB writes HDF5") as error:
        streamkern.load("model.h5").predict(rows)
    code = str(error.value).partition("turn them in Python: ")[2].rstrip(".")
    exec(code, {"FILE": str(path)})  # noqa: S102
    assert np.array_equal(streamkern.load("model.h5").predict("turned.h5"), model.predict(X))


@pytest.mark.parametrize("weight", [1e300, 1e308, 1e-310])
def test_weights_that_no_sum_holds_are_told(weight):
    model = streamkern.RandomFeatureRidge("gaussian", n_components=8)
    with pytest.raises(StreamkernError, match=r"the mean weight is .*; multiply all weights by a"):
        model.fit(X, X[:, 0], sample_weight=np.full(N, weight))
