"""Data frames, lazy ones and truth values as rows: fitted in place of arrays, predicted lazily."""

import dask.array as da
import dask.dataframe as dd
import h5py
import numpy as np
import pandas as pd
import pytest

from streamkern import Gaussian, RandomFeatureRidge, open_hdf5
from streamkern.errors import DataError
from streamkern.sources import as_source
from streamkern.sources.arrays import as_rows
from streamkern.sources.containers import as_table, lazy_array

pytestmark = pytest.mark.usefixtures("frames_in_this_thread")


def table(n=120):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((n, 3)), columns=["a", "b", "c"])
    frame["y"] = np.sin(2 * frame.a) + 0.1 * rng.standard_normal(n)
    frame["z"] = frame.b * frame.c
    frame["w"] = rng.integers(0, 3, n)
    return frame


def lazy(frame, n_partitions=5):
    return dd.from_pandas(frame, npartitions=n_partitions, sort=False)


def ridge(**options):
    return RandomFeatureRidge(Gaussian(0.7), n_components=16, alpha=0.3, **options)


INPUTS = ["a", "b", "c"]


@pytest.mark.parametrize("targets", ["y", ["y"], ["y", "z"]])
def test_a_fit_to_a_data_frame_is_that_to_its_values(targets):
    frame = table()
    parts = lazy(frame, 5)[INPUTS], lazy(frame, 3)[targets], lazy(frame)["w"]
    found = ridge(precision="double").fit(*parts)
    values = (frame[names].to_numpy() for names in (INPUTS, targets, "w"))
    expected = ridge(precision="double").fit(*values)
    assert found.coef_.shape == expected.coef_.shape
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9, atol=1e-9)


def columns(**values):
    return lazy(pd.DataFrame(values), 2)


@pytest.mark.parametrize(
    ("frame", "dtype"),
    [
        (columns(a=[1, 2, 3], b=[4, 5, 6]), "int64"),
        (columns(a=np.float32([1, 2, 3]), b=np.float32([1, 2, 3])), "float32"),
        (columns(a=[1, 2, 3], b=[0.5, 1.5, 2.5]), "float64"),
        (columns(a=[True, False, True], b=[True, True, False]), "uint8"),
        (columns(a=[True, False, True], b=[0.5, 1.5, 2.5]), "float64"),
        (columns(a=pd.array([1, None, 3], dtype="Int64")), "float64"),
        (columns(a=pd.array([0.5, None, 3], dtype="Float32"), b=[1, 2, 3]), "float64"),
        (columns(a=pd.array([1, None, 3], dtype="int64[pyarrow]")), "float64"),
        (columns(a=pd.array([True, None, False], dtype="boolean")), "float64"),
    ],
)
def test_columns_of_numbers_become_numbers(frame, dtype):
    found = as_rows(frame)
    assert found.dtype == dtype
    expected = np.column_stack(
        [column.to_numpy(dtype=float, na_value=np.nan) for _, column in frame.compute().items()]
    )
    np.testing.assert_array_equal(found.compute(), expected)
    assert found.compute().dtype == dtype


DAYS = pd.date_range("2020", periods=3)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"s": ["x", "y", "z"]}, "column s does not"),
        ({"s": ["x", "y", "z"], "t": DAYS, "a": [1, 2, 3]}, "columns s, t do not"),
        ({"c": pd.Categorical(["x", "y", "x"])}, "column c does not"),
    ],
)
def test_columns_that_are_no_numbers_are_named(values, said):
    with pytest.raises(DataError, match=f"X must .* numbers only, but the {said}; encode.*compute"):
        as_source(columns(**values))
    with pytest.raises(DataError, match=r"y must hold numbers only"):
        lazy_array("y", columns(**values).iloc[:, 0])


# Truth values.

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


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")
def test_models_take_truth_values_as_numbers(kind):
    table, expected = TABLES[kind], ridge().fit(NUMBERS, Y)
    fitted = ridge().fit(table, Y)
    assert fitted.coef_ == pytest.approx(expected.coef_, rel=1e-6, abs=1e-9)
    for found, wanted in (
        (fitted.predict(table), expected.predict(NUMBERS)),
        (fitted.predict(table, return_std=True)[1], expected.predict(NUMBERS, return_std=True)[1]),
        (fitted.transform(table), expected.transform(NUMBERS)),
        (expected.predict(table), expected.predict(NUMBERS)),
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_booleans_of_files_are_inputs_and_weights_but_no_targets(tmp_path):
    path = tmp_path / "rows.h5"
    with h5py.File(path, "w") as file:
        file["X"], file["y"], file["numbers"], file["kept"] = TRUTHS, Y, NUMBERS, KEPT
        file.create_dataset("chunked", data=TRUTHS, chunks=(50, 3), compression="gzip")
    expected = ridge().fit(open_hdf5(path, "numbers"))
    for x in ("X", "chunked"):
        source = open_hdf5(path, x)
        assert source.dtype == np.float32
        np.testing.assert_allclose(ridge().fit(source).coef_, expected.coef_, rtol=1e-6, atol=1e-9)
    weighted, kept = ridge().fit(open_hdf5(path, weights="kept")), ridge().fit(NUMBERS, Y, KEPT)
    np.testing.assert_allclose(weighted.coef_, kept.coef_, rtol=1e-4, atol=1e-5)
    with pytest.raises(DataError, match=r"bool; .* if these are labels of classes"):
        open_hdf5(path, y="kept")


def test_columns_may_share_a_name():
    frame = pd.DataFrame(np.arange(6.0).reshape(2, 3), columns=["a", "a", "b"])
    assert np.array_equal(as_table("X", frame), frame.to_numpy())
    with pytest.raises(DataError, match="column a does not"):
        as_table("X", pd.DataFrame([["x", 1.0], ["y", 2.0]], columns=["a", "a"]).iloc[:, :2])
