"""Dask data frames as rows: fitted in place of arrays, and predicted lazily."""

from __future__ import annotations

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from streamkern import Gaussian, RandomFeatureRidge
from streamkern.errors import DataError
from streamkern.sources import as_source
from streamkern.sources.arrays import as_rows
from streamkern.sources.lazy import lazy_array


@pytest.fixture(autouse=True)
def in_this_process():
    with dask.config.set({"scheduler": "synchronous", "dataframe.convert-string": False}):
        yield


def table(n=120):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((n, 3)), columns=["a", "b", "c"])
    frame["y"] = np.sin(2 * frame.a) + 0.1 * rng.standard_normal(n)
    frame["z"] = frame.b * frame.c
    frame["w"] = rng.integers(0, 3, n)
    return frame


def lazy(frame, n_partitions=5):
    return dd.from_pandas(frame, npartitions=n_partitions, sort=False)


def ridge():
    return RandomFeatureRidge(Gaussian(0.7), n_components=16, alpha=0.3, precision="double")


INPUTS = ["a", "b", "c"]


@pytest.mark.parametrize("targets", ["y", ["y"], ["y", "z"]])
def test_a_fit_to_a_data_frame_is_that_to_its_values(targets):
    frame = table()
    parts = lazy(frame, 5)[INPUTS], lazy(frame, 3)[targets], lazy(frame)["w"]
    found = ridge().fit(*parts)
    expected = ridge().fit(*(frame[names].to_numpy() for names in (INPUTS, targets, "w")))
    assert found.coef_.shape == expected.coef_.shape
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9, atol=1e-9)


def test_predictions_of_a_data_frame_are_a_lazy_array():
    frame = table()
    model = ridge().fit(frame[INPUTS], frame["y"])
    computed = []

    def look(part):
        computed.append(len(part))
        return part

    X = lazy(frame)[INPUTS].map_partitions(look, meta=frame[INPUTS].iloc[:0])
    computed.clear()
    predicted, deviations = model.predict(X, return_std=True)
    features = model.transform(X)
    assert not computed
    for made, expected in (
        (predicted, model.predict(frame[INPUTS])),
        (deviations, model.predict(frame[INPUTS], return_std=True)[1]),
        (features, model.transform(frame[INPUTS])),
    ):
        assert isinstance(made, da.Array)
        assert made.ndim == expected.ndim
        np.testing.assert_allclose(made.compute(), expected, rtol=1e-12)


def test_errors_on_a_data_frame_are_those_on_its_values():
    frame = table()
    model = ridge().fit(frame[INPUTS], frame["y"])
    found = model.evaluate(lazy(frame)[INPUTS], lazy(frame)["y"], lazy(frame)["w"])
    expected = model.evaluate(frame[INPUTS], frame["y"], frame["w"])
    assert found == pytest.approx(expected, rel=1e-12)


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


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"s": ["x", "y", "z"]}, "column s does not"),
        (
            {"s": ["x", "y", "z"], "t": pd.date_range("2020", periods=3), "a": [1, 2, 3]},
            "columns s, t do not",
        ),
        ({"c": pd.Categorical(["x", "y", "x"])}, "column c does not"),
    ],
)
def test_columns_that_are_no_numbers_are_named(values, said):
    with pytest.raises(DataError, match=f"X must hold numbers only, but the {said}; encode"):
        as_source(columns(**values))
    with pytest.raises(DataError, match=r"y must hold numbers only"):
        lazy_array("y", columns(**values).iloc[:, 0])


def test_frames_that_do_not_fit_are_refused():
    frame = table()
    with pytest.raises(DataError, match="X has 120 rows but y has 60"):
        as_source(lazy(frame)[INPUTS], lazy(frame.iloc[:60])["y"])
    with pytest.raises(DataError, match="sample_weight must have 1 dimensions"):
        as_source(lazy(frame)[INPUTS], lazy(frame)["y"], lazy(frame)[["w"]])


def test_rows_and_targets_of_one_array_are_loaded_once_a_pass():
    loads = []

    def look(block):
        loads.append(len(block))
        return block

    table = np.random.default_rng(0).standard_normal((60, 4))
    whole = da.from_array(table, chunks=(20, 4)).map_blocks(look, meta=np.empty((0, 0)))
    loads.clear()
    with dask.config.set(scheduler="synchronous"):
        RandomFeatureRidge(n_components=8, alpha=1.0).fit(whole[:, :3], whole[:, 3])
    assert len(loads) == 2 * 3  # two passes, three chunks
