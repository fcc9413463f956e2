"""Rows in the containers that people have: each works, or is refused with what to do."""

from functools import cache

import dask.array as da
import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
import xarray as xr
import zarr
from sklearn.base import is_classifier

import streamkern
from streamkern import ExactKernelRidge, Gaussian, RandomFeatureRidge, RandomFourierFeatures
from streamkern.errors import DataError
from streamkern.registry import installed

ESTIMATORS = (
    RandomFeatureRidge("gaussian", n_components=32, alpha=0.1),
    ExactKernelRidge(alpha=0.1),
    RandomFourierFeatures(Gaussian(1.0), n_components=16),
)
if "classes" in installed():
    ESTIMATORS += (
        streamkern.RandomFeatureClassifier(
            "gaussian", n_components=32, alpha=0.1, calibration=None
        ),
    )
NAMES = [type(each).__name__ for each in ESTIMATORS]
N = 60
X = np.random.default_rng(0).standard_normal((N, 3))
Y = np.sin(X[:, 0]) + 2.0
FRAME = pd.DataFrame(X, columns=list("abc"))
DAYS = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(N), unit="D")


def stored(values):
    return zarr.create_array({}, data=values, chunks=(20, *values.shape[1:]))


WORKS = {
    "lists": X.tolist,
    "polars": lambda: pl.from_pandas(FRAME),
    "polars, lazy": lambda: pl.from_pandas(FRAME).lazy(),
    "Arrow table": lambda: pa.Table.from_pandas(FRAME),
    "Arrow reader": lambda: pa.Table.from_pandas(FRAME).to_reader(),
    "Arrow dataset": lambda: pa.dataset.dataset(pa.Table.from_pandas(FRAME)),
    "Arrow types": lambda: FRAME.convert_dtypes(dtype_backend="pyarrow"),
    "masked, nothing hidden": lambda: np.ma.masked_array(X),
    "xarray": lambda: xr.DataArray(X, dims=("time", "input")),
    "xarray, chunked": lambda: xr.DataArray(X, dims=("time", "input")).chunk(time=20),
    "xarray Dataset": lambda: xr.Dataset({c: ("time", FRAME[c]) for c in "abc"}),
    "xarray Dataset, chunked": lambda: xr.Dataset({c: ("time", FRAME[c]) for c in "abc"}).chunk(20),
    "Zarr": lambda: stored(X),
    "Dask array": lambda: da.from_array(X, chunks=(20, 3)),
}


def targets_of(estimator):
    return Y > 2.0 if is_classifier(estimator) else Y


def results(estimator, rows):
    return np.asarray(
        estimator.predict(rows) if hasattr(estimator, "predict") else estimator.transform(rows)
    )


@cache
def expected_of(estimator):
    return results(estimator.fit(X, targets_of(estimator)), X)


@pytest.mark.parametrize("name", WORKS)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=NAMES)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_rows_in_a_container_are_rows(estimator, name):
    expected, make = expected_of(estimator), WORKS[name]
    found = results(estimator.fit(make(), targets_of(estimator)), make())
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    else:
        np.testing.assert_array_equal(found, expected)


def folder(path):
    for k, rows in enumerate((FRAME.assign(y=Y)[:30], FRAME.assign(y=Y)[30:])):
        (path / f"k={k}").mkdir(parents=True)
        rows.to_parquet(path / f"k={k}" / "part.parquet")
    return str(path)


def test_a_folder_of_parquet_is_read_as_one_table(tmp_path):
    model = RandomFeatureRidge(n_components=32, alpha=0.1)
    model.fit(folder(tmp_path / "rows"), y="y")
    assert model.report_["rows"] == N
    frame = FRAME.assign(k=(np.arange(N) >= 30).astype(int))  # as the folders say
    np.testing.assert_allclose(model.predict(frame), model.fit(frame, Y).predict(frame), rtol=1e-5)


def group():
    made = zarr.create_group({})
    made.create_array("X", shape=X.shape, dtype=X.dtype)[:] = X
    return made


REFUSED = {
    "a mask": (lambda: np.ma.masked_array(X, mask=X > 2), "NaN"),
    "dates": (lambda: DAYS.to_numpy()[:, None], "give a data frame"),
    "durations": (lambda: (DAYS - DAYS[0]).to_numpy()[:, None], "give a data frame"),
    "records": (lambda: FRAME.to_records(index=False), "pandas.DataFrame"),
    "a Zarr group": (group, r"holds X; give an array of it, as group\['X'\]"),
    "a column of durations": (
        lambda: FRAME.assign(d=DAYS - DAYS[0]),
        "seconds of a duration|convert them to numbers",
    ),
    "a field": (
        lambda: xr.Dataset({"t": (("lat", "lon"), X)}),
        "along one dimension, but its dimensions are lat, lon",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=NAMES)
def test_what_is_no_table_of_numbers_is_refused_with_what_to_do(estimator, name):
    make, words = REFUSED[name]
    with pytest.raises(DataError, match=words):
        estimator.fit(make(), targets_of(estimator))


def test_a_file_of_hdf5_is_no_dataset(tmp_path):
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["X"], file["y"] = X, Y
        with pytest.raises(DataError, match=r"holds X, y; give an array of it"):
            RandomFeatureRidge().fit(file, Y)
        model = RandomFeatureRidge(n_components=32, alpha=0.1).fit(file["X"], file["y"])
    assert model.report_["rows"] == N


def test_hidden_cells_are_missing_cells():
    hidden = np.ma.masked_array(X, mask=X > 2)
    kept = ~(X > 2).any(axis=1)
    assert not kept.all()
    options = {"n_components": 32, "alpha": 0.1, "on_bad_rows": "skip", "kernel": "gaussian"}
    model = RandomFeatureRidge(**options).fit(hidden, Y)
    np.testing.assert_allclose(
        model.predict(X), RandomFeatureRidge(**options).fit(X[kept], Y[kept]).predict(X), rtol=1e-6
    )


@pytest.mark.parametrize("chunks", [None, 20])
def test_results_have_the_coordinates_of_their_rows(chunks):
    rows = xr.DataArray(
        X, dims=("time", "input"), coords={"time": DAYS, "input": list("abc"), "run": 7}
    )
    rows = rows if chunks is None else rows.chunk(time=chunks)
    model = RandomFeatureRidge(n_components=32, alpha=0.1).fit(rows, xr.DataArray(Y, dims="time"))
    predictions, deviations = model.predict(rows, return_std=True)
    for found in (predictions, deviations):
        assert found.dims == ("time",)
        assert set(found.coords) == {"time"}
        np.testing.assert_array_equal(found["time"], DAYS)
        assert found.chunks == (None if chunks is None else ((20, 20, 20),))
    np.testing.assert_allclose(predictions.values, model.predict(X), rtol=1e-12)
    assert model.transform(rows).dims == ("time", "output_1")


@pytest.mark.cluster
def test_workers_without_the_file_of_an_array_are_told_of(tmp_path):
    from dask.distributed import Client

    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["X"] = X
    with (
        h5py.File(tmp_path / "rows.h5") as file,
        Client(n_workers=1, threads_per_worker=1, dashboard_address=":0"),
    ):
        lazy = da.from_array(file["X"], chunks=(20, 3))
        (tmp_path / "rows.h5").rename(tmp_path / "elsewhere.h5")
        with pytest.raises(DataError, match=r"reads .*rows\.h5, which the worker at tcp"):
            ESTIMATORS[0].fit(lazy, Y)
