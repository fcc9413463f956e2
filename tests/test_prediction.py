"""A predictor applied to every row: into a file, and against the targets."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from streamkern import Gaussian, RandomFeatureRidge, open_hdf5
from streamkern.errors import DataError, OutputError
from streamkern.sources.arrays import ArraySource

# More than one shard.
N, P = 40_000, 3
SHAPES = [(), (1,), (3,)]


def rows(shape=(), n=N):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, P))
    y = np.stack([np.sin(X[:, 0]), 5 + 100 * X[:, 1] ** 2, X[:, 0] * X[:, 2]], axis=1)
    y = y[:, : shape[0]] if shape else y[:, 0]
    return X, y + 0.1 * rng.standard_normal(y.shape)


def fitted(shape=(), **options):
    options = {"n_components": 32, "precision": "double"} | options
    return RandomFeatureRidge(Gaussian(1.5), **options).fit(*rows(shape, 2000))


def stored(path, X, **others):
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=X, chunks=(min(1000, len(X)), P))
        for name, values in others.items():
            file[name] = values
    return path


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_predictions_in_a_file_are_those_of_predict(tmp_path, shape):
    model, (X, _) = fitted(shape), rows(shape)
    source = open_hdf5(stored(tmp_path / "new.h5", X), y=None)
    assert model.predict_to_hdf5(source, tmp_path / "p.h5") == 0
    expected = model.predict(X)
    with h5py.File(tmp_path / "p.h5") as file:
        assert list(file) == ["y_pred"]
        assert file["y_pred"].shape == expected.shape == (N, *shape)
        assert file["y_pred"].dtype == np.float64
        assert np.abs(file["y_pred"][:] - expected).max() < 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("shape", [(), (3,)], ids=str)
def test_predictions_in_a_file_are_chunked(tmp_path, shape):
    model = fitted(shape)
    model.predict_to_hdf5(ArraySource(rows(shape)[0]), tmp_path / "p.h5")
    with h5py.File(tmp_path / "p.h5") as file:
        chunks = file["y_pred"].chunks
        assert chunks is not None
        assert 100 <= chunks[0] <= N
        assert chunks[1:] == shape


def test_predictions_are_one_array_for_a_source():
    model, (X, _) = fitted(), rows()
    assert np.abs(model.predict(ArraySource(X)) - model.predict(X)).max() < 1e-12


def test_targets_are_not_read_to_predict(tmp_path):
    X, _ = rows(n=100)
    source = open_hdf5(stored(tmp_path / "new.h5", X, y=np.full(100, np.nan)), y=None)
    assert fitted().predict_to_hdf5(source, tmp_path / "p.h5") == 0


def test_a_bad_row_far_in_is_named_and_nothing_is_left(tmp_path):
    X, _ = rows()
    X[30_000, 1] = np.nan
    X[39_999, 0] = np.inf
    path = stored(tmp_path / "new.h5", X)
    with pytest.raises(DataError, match=r"2 of 40,000 rows .*new\.h5, row 30,000"):
        fitted().predict_to_hdf5(open_hdf5(path, y=None), tmp_path / "p.h5")
    assert [file.name for file in tmp_path.iterdir()] == ["new.h5"]


def test_bad_rows_are_predicted_as_nan_where_they_are_skipped(tmp_path):
    X, _ = rows()
    X[[5, 30_000], [0, 1]] = np.nan, -np.inf
    model = fitted(on_bad_rows="skip")
    assert model.predict_to_hdf5(ArraySource(X), tmp_path / "p.h5") == 2
    with h5py.File(tmp_path / "p.h5") as file:
        predicted = file["y_pred"][:]
    assert np.flatnonzero(np.isnan(predicted)).tolist() == [5, 30_000]


def test_existing_predictions_are_kept_unless_forced(tmp_path):
    model, source = fitted(), ArraySource(rows(n=10)[0])
    (tmp_path / "p.h5").write_text("precious")
    with pytest.raises(OutputError, match=r"p\.h5 exists already"):
        model.predict_to_hdf5(source, tmp_path / "p.h5")
    assert (tmp_path / "p.h5").read_text() == "precious"
    model.predict_to_hdf5(source, tmp_path / "p.h5", force=True)
    with h5py.File(tmp_path / "p.h5") as file:
        assert file["y_pred"].shape == (10,)


METRICS = {"rmse": root_mean_squared_error, "mae": mean_absolute_error, "r2": r2_score}


@pytest.mark.parametrize("metric", list(METRICS))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_errors_are_those_of_scikit_learn(shape, metric):
    model, (X, y) = fitted(shape), rows(shape)
    found = model.evaluate(ArraySource(X, y))
    assert (found["rows"], found["skipped_rows"]) == (N, 0)
    each = METRICS[metric](y, model.predict(X), multioutput="raw_values")
    if shape:
        assert found[metric] == pytest.approx(each.tolist(), rel=1e-9)
        assert found[f"{metric}_mean"] == pytest.approx(each.mean(), rel=1e-9)
    else:
        assert found[metric] == pytest.approx(each[0], rel=1e-9)
        assert f"{metric}_mean" not in found


def test_errors_are_json():
    found = fitted((3,)).evaluate(ArraySource(*rows((3,), 100)))
    assert json.loads(json.dumps(found)) == found


def test_errors_leave_out_skipped_rows():
    model, (X, y) = fitted(on_bad_rows="skip"), rows(n=100)
    expected = model.evaluate(ArraySource(X[2:], y[2:]))
    X[0], y[1] = np.nan, np.inf
    found = model.evaluate(ArraySource(X, y))
    assert (found["rows"], found["skipped_rows"]) == (98, 2)
    assert found["rmse"] == pytest.approx(expected["rmse"], rel=1e-12)


def test_errors_on_nothing_but_bad_rows_are_refused():
    X, y = rows(n=10)
    with pytest.raises(DataError, match="all 10 rows were skipped"):
        fitted(on_bad_rows="skip").evaluate(ArraySource(X, np.nan * y))


def test_errors_count_weights():
    model, (X, y) = fitted(), rows(n=200)
    weights = np.arange(200) % 3
    found = model.evaluate(ArraySource(X, y, weights))
    expected = root_mean_squared_error(y, model.predict(X), sample_weight=weights)
    assert found["rmse"] == pytest.approx(expected, rel=1e-12)


def test_targets_of_another_number_are_refused():
    X, y = rows((3,), 10)
    with pytest.raises(DataError, match="predicts 1 target, but the data has 3"):
        fitted().evaluate(ArraySource(X, y))
