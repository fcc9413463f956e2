"""Truth values are inputs as 0 and 1 are, in whatever they come."""

from __future__ import annotations

import dask
import dask.array as da
import dask.dataframe as dd
import h5py
import numpy as np
import pandas as pd
import pytest

import streamkern
from streamkern import Gaussian, RandomFeatureRidge, open_hdf5
from streamkern.errors import DataError
from streamkern.sources.numeric import as_table

TRUTHS = np.random.default_rng(0).random((200, 3)) > 0.5
NUMBERS = TRUTHS.astype(float)
Y = NUMBERS @ [2.0, 1.0, -0.5]
FRAME = pd.DataFrame(TRUTHS, columns=["a", "b", "c"])
MIXED = FRAME.assign(a=FRAME["a"].astype(float))
TABLES = {
    "list": TRUTHS.tolist(),
    "array": TRUTHS,
    "frame": FRAME,
    "frame of several types": MIXED,
    "frame with room for missing values": FRAME.astype("boolean"),
    "Arrow": FRAME.convert_dtypes(dtype_backend="pyarrow"),
    "lazy array": da.from_array(TRUTHS, chunks=(60, 2)),
    "lazy frame": dd.from_pandas(FRAME, npartitions=3, sort=False),
    "lazy frame of several types": dd.from_pandas(MIXED, npartitions=3, sort=False),
}
KEPT = np.arange(200) % 3 > 0
OPTIONS = {"n_components": 32, "alpha": 0.1}


@pytest.fixture(autouse=True)
def in_this_process():
    with dask.config.set({"scheduler": "synchronous", "dataframe.convert-string": False}):
        yield


def model():
    return RandomFeatureRidge(Gaussian(1.5), **OPTIONS)


@pytest.mark.parametrize("kind", list(TABLES))
@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")
def test_models_take_truth_values_as_numbers(kind):
    table, expected = TABLES[kind], model().fit(NUMBERS, Y)
    fitted = model().fit(table, Y)
    assert fitted.coef_ == pytest.approx(expected.coef_, rel=1e-6, abs=1e-9)
    for found, wanted in (
        (fitted.predict(table), expected.predict(NUMBERS)),
        (fitted.predict(table, return_std=True)[1], expected.predict(NUMBERS, return_std=True)[1]),
        (fitted.transform(table), expected.transform(NUMBERS)),
        (expected.predict(table), expected.predict(NUMBERS)),
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_booleans_of_files_are_inputs_and_weights_but_no_targets(tmp_path):
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["X"], file["y"], file["numbers"] = TRUTHS, Y, NUMBERS
        file.create_dataset("chunked", data=TRUTHS, chunks=(50, 3), compression="gzip")
        file["kept"] = KEPT
    expected = RandomFeatureRidge(Gaussian(1.5), **OPTIONS).fit(
        open_hdf5(tmp_path / "rows.h5", "numbers")
    )
    for x in ("X", "chunked"):
        source = open_hdf5(tmp_path / "rows.h5", x)
        assert source.dtype == np.float32
        np.testing.assert_allclose(model().fit(source).coef_, expected.coef_, rtol=1e-6, atol=1e-9)
    weighted = model().fit(open_hdf5(tmp_path / "rows.h5", weights="kept"))
    kept = model().fit(NUMBERS, Y, KEPT)
    np.testing.assert_allclose(weighted.coef_, kept.coef_, rtol=1e-4, atol=1e-5)
    with pytest.raises(DataError, match=r"boolean; .* if these are labels of classes"):
        open_hdf5(tmp_path / "rows.h5", y="kept")


def test_labels_that_are_truth_values_stay_what_they_are():
    classifier = streamkern.RandomFeatureClassifier(Gaussian(1.5), **OPTIONS, calibration=None)
    fitted = classifier.fit(TRUTHS, Y > 1)
    assert fitted.classes_.dtype == bool
    assert fitted.predict(TRUTHS).dtype == bool


def test_columns_of_words_are_named():
    for table in (FRAME.assign(wood="oak"), FRAME.assign(wood=pd.Categorical(["oak"] * 200))):
        with pytest.raises(DataError, match="the column wood does not; encode or leave out"):
            as_table("X", table)


def test_columns_may_share_a_name():
    frame = pd.DataFrame(np.arange(6.0).reshape(2, 3), columns=["a", "a", "b"])
    assert np.array_equal(as_table("X", frame), frame.to_numpy())
    with pytest.raises(DataError, match="column a does not"):
        as_table("X", pd.DataFrame([["x", 1.0], ["y", 2.0]], columns=["a", "a"]).iloc[:, :2])
