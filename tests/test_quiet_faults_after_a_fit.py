"""What would be wrong without a sign once a model is fitted: predictions, errors and files."""

import dask
import dask.array as da
import h5py
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from commandline import refused, small_files, streamkern, write

from streamkern import (
    Cauchy,
    Gaussian,
    Laplacian,
    RandomFeatureClassifier,
    RandomFeatureRidge,
    convert,
)
from streamkern.errors import CheckpointError, DataError, ParameterError
from streamkern.features import gradients

N = 400
X = np.random.default_rng(0).normal(size=(N, 2))
Y = np.sin(X[:, 0]) + 5


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def at_landmarks(kernel, **options):
    options = {"feature_map": "nystroem", "n_components": 64, "alpha": 0.1} | options
    return RandomFeatureRidge(kernel, **options)


@pytest.mark.parametrize("kernel", [Laplacian(1.0), Cauchy(1.0)])
def test_rows_infinitely_far_out_have_no_prediction_at_landmarks(kernel):
    model = at_landmarks(kernel).fit(X, Y)
    rows = X[:4].copy()
    rows[1, 0], rows[2, 1], rows[3, 0] = np.inf, -np.inf, np.nan
    write("new.h5", rows)
    mean, deviation = model.predict("new.h5", return_std=True)
    assert np.isnan(mean).tolist() == np.isnan(deviation).tolist() == [False, True, True, True]
    if kernel == Laplacian(1.0):
        feature_map = at_landmarks(kernel, standardize=False).fit(X, Y).feature_map_
        slopes = gradients(feature_map, rows, np.ones(64))
        assert np.isnan(slopes).any(axis=1).tolist() == [False, True, True, True]


def test_targets_in_another_order_are_refused():
    frame = pd.DataFrame({"u": X[:, 0], "v": X[:, 1], "a": Y, "b": 100 + X[:, 1]})
    frame.to_csv("rows.csv", index=False)
    for names in ("ab", "ba"):
        convert("rows.csv", f"{names}.h5", targets=[*names])
    model = RandomFeatureRidge("gaussian", n_components=64, alpha=0.1).fit("ab.h5")
    assert min(model.evaluate("ab.h5")["r2"]) > 0.9
    model.save("model.h5")
    for use in (model.evaluate, model.score, model.diagnose):
        with pytest.raises(DataError, match="the targets must be those of the model, in that"):
            use("ba.h5")
    assert "the targets must be" in refused("evaluate", "model.h5", "ba.h5")
    model = RandomFeatureRidge("gaussian", n_components=64, alpha=0.1)
    model.fit("rows.csv", y=["a", "b"])
    with pytest.raises(DataError, match="the targets must be"):
        model.score("rows.csv", ["b", "a"])


def test_deviations_of_a_sparse_model_at_landmarks_know_how_far_they_are():
    x = X[:, :1]
    y = np.sin(2 * x[:, 0]) + 0.1 * X[:, 1]
    rows = [[0.0], [5.0], [50.0]]
    whole, sparse = (
        at_landmarks(
            Gaussian(0.5), standardize=False, sparse=sparse, alpha=0.02, precision="double"
        )
        .fit(x, y)
        .predict(rows, return_std=True)[1]
        for sparse in (None, 16)
    )
    assert sparse[1:] == pytest.approx(whole[1:], rel=0.1)
    assert sparse[0] < 0.5 * sparse[1]


def test_ids_and_classes_of_any_kind_are_written():
    ids = np.arange(N, dtype=np.uint64) + 2**63
    pd.DataFrame({"id": ids, "a": X[:, 0], "y": Y}).to_parquet("rows.parquet")
    few = ("--kernel", "gaussian", "--components", 16, "--quiet")
    streamkern("fit", "rows.parquet", "--target", "y", "--id", "id", "--out", "m.h5", *few)
    streamkern("predict", "m.h5", "rows.parquet", "--out", "made.parquet", "--quiet")
    assert pq.read_table("made.parquet")["id"].to_pylist() == ids.tolist()
    labels = np.where(X[:, 0] > 0, b"caf\xe9", b"th\xe9")
    model = RandomFeatureClassifier("gaussian", n_components=16).fit(X, labels)
    model.save("classes.h5")
    write("new.h5", X)
    streamkern("predict", "classes.h5", "new.h5", "--out", "made.csv", "--quiet")
    found = pd.read_csv("made.csv")["y_pred"]
    assert set(found) == {r"caf\xe9", r"th\xe9"}


def test_classes_that_floating_point_numbers_cannot_tell_apart_are_not_written_as_such():
    labels = np.where(X[:, 0] > 0, 2**53, 2**53 + 1)
    model = RandomFeatureClassifier("gaussian", n_components=16, on_bad_rows="skip")
    with pytest.raises(ParameterError, match="which these are too large for"):
        model.fit(X, labels).predict_to_hdf5(X, "made.h5")
    model.fit(X, X[:, 0] > 0).predict_to_hdf5(X, "made.h5")
    with h5py.File("made.h5") as file:
        assert file["classes"][:].tolist() == [False, True]
        assert file["y_pred"][:].tolist() == model.predict(X).tolist()


def test_a_calibration_leaves_bad_rows_out_where_a_model_is_told_to_later():
    model = RandomFeatureClassifier("gaussian", n_components=16).fit(X, X[:, 0] > 0)
    bad = X.copy()
    bad[0, 0] = np.nan
    with pytest.raises(DataError, match="on_bad_rows 'skip'"):
        model.calibrate(bad, X[:, 0] > 0)
    found = model.set_params(on_bad_rows="skip").calibrate(bad, X[:, 0] > 0)
    assert found.predict_proba(X).shape == (N, 2)


def test_a_full_disk_is_told_of_the_file_that_is_asked_for():
    model = RandomFeatureRidge("gaussian", n_components=16, alpha=1.0).fit(X, Y)
    model.save("model.h5")
    write("new.h5", np.tile(X, (100, 1)))
    with small_files(64 << 10):
        said = refused("predict", "model.h5", "new.h5", "--out", "made.csv", "--quiet")
    assert "made.csv cannot be written: the disk or quota is full" in said
    assert ".partial" not in said


def test_a_grid_does_not_replace_its_model():
    options = {"feature_map": "grid", "n_components": 64}
    RandomFeatureRidge(Gaussian(1.0), **options).fit(X, Y).save("field.h5")
    grid = ("predict", "field.h5", "--grid", "4,4", "--force", "--quiet")
    assert "field.h5 is an input of this job" in refused(*grid, "--out", "field.h5")
    streamkern(*grid, "--out", "map.h5")


def test_a_checkpoint_of_lazy_rows_is_of_what_some_of_their_chunks_hold():
    def model_of(values):
        np.save("part.npy", values)
        last = da.from_delayed(dask.delayed(np.load, pure=True)("part.npy"), values.shape, float)
        rows = da.concatenate([da.from_array(X, chunks=(100, 2)), last])
        return at_landmarks("gaussian", feature_map="orthogonal").fit(
            rows, np.append(Y, Y), checkpoint="saved"
        )

    def stopped(*_, **__):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("streamkern.fit.solve", stopped)
        with pytest.raises(KeyboardInterrupt):
            model_of(X)
    with pytest.raises(CheckpointError, match="is of another job"):
        model_of(X[::-1])


def test_times_of_the_configuration_that_are_none_are_refused():
    from dask.distributed import Client

    model = at_landmarks("gaussian")
    said = r"distributed.scheduler.no-workers-timeout .* must be a time such as 60s"
    with (
        Client(n_workers=1, processes=False, dashboard_address=":0"),
        dask.config.set({"distributed.scheduler.no-workers-timeout": "10min"}),
        pytest.raises(ParameterError, match=said),
    ):
        model.fit(X, Y)
