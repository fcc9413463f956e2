"""What would be wrong without a sign about rows: how they are read, named and counted."""

import dask.array as da
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from commandline import refused, streamkern

from streamkern import ExactKernelRidge, RandomFeatureClassifier, RandomFeatureRidge, convert, load
from streamkern.errors import DataError, StreamkernWarning

N = 400
X = np.random.default_rng(0).normal(size=(N, 2))
FEW = ("--kernel", "gaussian", "--components", 16, "--quiet")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def ridge(**options):
    return RandomFeatureRidge("gaussian", n_components=32, alpha=1.0, **options)


def test_cells_that_the_mask_of_a_dask_array_hides_are_missing():
    y, hidden = X[:, 0].copy(), np.arange(N) % 50 == 0
    masked = X.copy()
    masked[hidden, 0] = -9999.0
    masked = np.ma.array(masked, mask=np.column_stack([hidden, hidden & False]))
    lazy = da.from_array(masked, chunks=(100, 2))
    untold = lazy.map_blocks(lambda block: block, meta=np.empty((0, 2)))
    for rows in (lazy, untold):
        with pytest.raises(DataError, match="8 of 400 rows hold NaN"):
            ridge().fit(rows, y)
    lazy_y = da.from_array(np.ma.array(y, mask=hidden), chunks=100)
    with pytest.raises(DataError, match="in the targets"):
        ridge().fit(da.from_array(X, chunks=(100, 2)), lazy_y)
    model = ridge(on_bad_rows="skip").fit(lazy, y)
    assert np.isnan(np.asarray(model.predict(lazy))).tolist() == hidden.tolist()


def test_weights_that_a_mask_hides_are_missing():
    weights = np.ma.array(np.ones(N), mask=np.arange(N) == 0)
    for model in (ExactKernelRidge("gaussian"), ridge()):
        with pytest.raises(DataError, match="1 of 400 rows hold NaN or infinite values or weights"):
            model.fit(X, X[:, 0], sample_weight=weights)


def test_a_record_batch_goes_by_the_names_of_its_columns():
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = ridge().fit(pa.RecordBatch.from_pandas(frame), X[:, 0])
    turned = model.predict(pa.RecordBatch.from_pandas(frame[["b", "a"]]))
    np.testing.assert_array_equal(turned, model.predict(frame))


def test_the_index_that_dask_writes_is_no_input():
    frame = pd.DataFrame({"a": X[:, 0], "__null_dask_index__": np.arange(N), "y": X[:, 1]})
    frame.to_parquet("rows.parquet", index=False)
    with pytest.warns(StreamkernWarning, match="__null_dask_index__"):
        model = ridge().fit("rows.parquet", y="y")
    assert model.feature_names_in_.tolist() == ["a"]


def test_a_model_of_arrays_has_no_recipe_of_a_table():
    model = ridge().fit(X, X[:, 0])
    frame = pd.DataFrame(X[:50], columns=["a", "b"])
    frame.to_csv("new.csv", index=False)
    np.testing.assert_allclose(model.predict("new.csv"), model.predict(X[:50]))
    frame["b"] = 2.0
    frame.loc[10, "a"] = np.nan  # of which a recipe would make two inputs
    frame.to_csv("new.csv", index=False)
    with pytest.raises(DataError, match="was not fitted to a table"):
        model.predict("new.csv")
    labels = np.where(X[:, 0] > 0, "yes", "no")
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "l": labels}).to_csv("labels.csv", index=False)
    classes = RandomFeatureClassifier("gaussian", n_components=16).fit(X, labels)
    assert classes.score("labels.csv", y="l") == classes.score(X, labels)


@pytest.mark.parametrize("packing", [{"scale_factor": 0.001}, {"add_offset": 1.0}])
def test_packed_numbers_are_refused(packing):
    with h5py.File("rows.h5", "w") as file:
        file["X"], file["y"] = np.rint(1000 * X).astype("i2"), X[:, 0]
        file["X"].attrs.update(packing)
    with pytest.raises(
        DataError, match=f"X holds no plain numbers, by its attribute {next(iter(packing))}"
    ):
        ridge().fit("rows.h5")


def test_numbers_too_large_to_be_told_apart_are_no_categories():
    frame = pd.DataFrame({"v": 2**53 + np.arange(N) % 2, "a": X[:, 0], "y": X[:, 1]})
    frame.to_csv("t.csv", index=False)
    found = convert("t.csv", "t.h5", targets=["y"], categorical=["v"])
    assert found["columns"]["v"] == "2 categories"
    frame["t"] = pd.date_range("2020", periods=N)
    frame.to_parquet("t.parquet")
    for name, why in (("v", "not told apart"), ("t", "holds dates or times")):
        with pytest.raises(DataError, match=why):
            convert("t.parquet", "t.h5", targets=["y"], categorical=[name], force=True)


def test_an_id_that_is_missing_late_is_told():
    for at, n in ((5, 200), (190_000, 200_000)):
        number = pd.array(np.arange(n), dtype="Int64")
        number[at] = pd.NA
        frame = pd.DataFrame({"id": number, "a": np.sin(np.arange(n)), "y": np.arange(float(n))})
        frame.to_parquet(f"{n}.parquet")
    assert convert("200.parquet", "a.h5", targets=["y"], ids=["id"])["rows"] == 200
    with pytest.raises(DataError, match="id has integers first, but later cells are missing"):
        convert("200000.parquet", "b.h5", targets=["y"], ids=["id"])


def test_targets_of_a_table_that_are_named_are_taken_and_not_those_of_the_template():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": X[:, 0]})
    frame.to_csv("y.csv", index=False)
    frame = frame.rename(columns={"y": "z"}).assign(z=10 + X[:, 1])
    frame.to_csv("t.csv", index=False)
    streamkern("fit", "y.csv", "--target", "y", "--out", "y.h5", *FEW)
    streamkern("fit", "t.csv", "--target", "z", "--like", "y.h5", "--out", "z.h5", "--quiet")
    assert load("z.h5").score(frame[["a", "b"]], frame["z"]) > 0.5
    said = refused("fit", "t.csv", "--target", "no", "--like", "y.h5", "--out", "n.h5", "--quiet")
    assert "'no'" in said
    said = refused("fit", "t.csv", "--target", "b", "--like", "y.h5", "--out", "n.h5", "--quiet")
    assert "'b' is an input of the model" in said
    for option in (("--scale", "robust"), ("--class-weight", "balanced", "--classify")):
        said = refused("fit", "t.csv", *option, "--like", "y.h5", "--out", "n.h5", status=2)
        assert f"{option[0]} is decided by --like y.h5" in said


def test_places_in_a_table_are_those_of_its_file_also_where_rows_have_no_label():
    frame = pd.DataFrame({"a": X[:, 0], "y": np.where(X[:, 1] > 0, "s", "t")})
    frame.loc[:49, "y"] = ""
    frame.loc[200, "a"] = np.inf
    frame.to_csv("t.csv", index=False)
    said = refused("fit", "t.csv", "--target", "y", "--classify", "--out", "m.h5", *FEW)
    assert "t.csv, row 200" in said


def test_rows_of_dask_may_be_like_a_model_whatever_their_chunks():
    model = ridge().fit(X, X[:, 0])
    rows, labels = da.from_array(X, chunks=(40, 2)), da.from_array(X[:, 0] > 0, chunks=40)
    assert ridge().fit(rows, rows[:, 0], like=model).report_["rows"] == N
    grown = RandomFeatureClassifier("gaussian", n_components=16).partial_fit(rows, labels)
    assert grown.partial_fit(rows[:20] + 1.0, labels[:20]).report_["rows"] == N + 20


def test_rows_of_each_class_are_those_that_were_used():
    labels, skipped = (X[:, 0] > 0).astype(int), np.arange(N) < 100
    rows = np.where(skipped[:, None], np.nan, X)
    for calibration in ("auto", None):
        model = RandomFeatureClassifier("gaussian", n_components=16, calibration=calibration)
        model.set_params(on_bad_rows="skip").fit(rows, labels)
        counts = np.bincount(labels[~skipped]).tolist()
        assert model.report_.get("class_counts") == (counts if calibration else None)


def test_rows_found_in_a_checkpoint_were_not_read_in_these_seconds():
    for resumed in (False, True):
        report = ridge().fit(X, X[:, 0], checkpoint="saved").report_
        assert (report["resumed_shards"] > 0) is resumed
        assert (report["rows_per_second"] > 0) is not resumed
