"""A predictor applied to every row: into a file, and against the targets."""

import json
import tracemalloc
from functools import cache

import dask
import dask.array as da
import h5py
import naive
import numpy as np
import pytest
from rows_read import chunked, store
from tolerances import assert_close

import streamkern
from streamkern import Gaussian, RandomFeatureRidge, open_hdf5
from streamkern.errors import DataError, ModelFileError
from streamkern.features import Identity, RandomFourierFeatures
from streamkern.models import prediction, prediction_files
from streamkern.predict.predictor import Predictor
from streamkern.sources.arrays import ArraySource

# More than one shard.
N, P = 40_000, 3


def rows(shape=(), n=N, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P))
    y = np.stack([np.sin(X[:, 0]), 5 + 100 * X[:, 1] ** 2, X[:, 0] * X[:, 2]], axis=1)
    y += 0.1 * rng.standard_normal(y.shape)
    return X, y[:, : shape[0]] if shape else y[:, 0]


@cache
def fitted(shape=(), n=2000, **options):
    """A model of n rows; the same one wherever the same is asked for."""
    options = {"n_components": 32, "precision": "double"} | options
    return RandomFeatureRidge(Gaussian(1.5), **options).fit(*rows(shape, n))


def assert_near(found, expected):
    assert found.shape == expected.shape
    assert found.dtype == np.float64
    assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()


def in_file(path, name="y_pred"):
    with h5py.File(path) as file:
        return file[name][:]


@pytest.mark.parametrize("shape", [(), (3,)], ids=str)
def test_predictions_and_deviations_in_a_file_are_those_of_predict(tmp_path, shape):
    model, (X, _) = fitted(shape), rows(shape)
    expected = dict(zip(("y_pred", "y_std"), model.predict(X, return_std=True), strict=True))
    chunked(tmp_path / "new.h5", 1000, X=X, y=np.full(N, np.nan))  # targets are not read to predict
    source = open_hdf5(tmp_path / "new.h5", y=None)
    for names in (["y_pred"], ["y_pred", "y_std"]):
        options = {"return_std": len(names) == 2, "force": True}
        assert model.predict_to_hdf5(source, tmp_path / "p.h5", **options) == 0
        with h5py.File(tmp_path / "p.h5") as file:
            assert list(file) == names
            assert 100 <= file["y_pred"].chunks[0] <= N
            assert file["y_pred"].chunks[1:] == shape
            for name in names:
                assert_near(file[name][:], expected[name])
    for given in (ArraySource(X), source):
        assert_near(model.predict(given), expected["y_pred"])
        both = zip(model.predict(given, return_std=True), expected.values(), strict=True)
        for found, values in both:
            assert_near(found, values)


def test_bad_rows_far_in_are_named_and_nothing_is_left_or_are_nan_where_they_are_skipped(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(prediction, "_SHARD_BYTES", 100_000)  # several shards
    X, _ = rows()
    X[[30_000, 39_999], [1, 0]] = np.nan, np.inf
    source = open_hdf5(chunked(tmp_path / "new.h5", 1000, X=X), y=None)
    for more in ({}, {"return_std": True}):
        with pytest.raises(DataError, match=r"2 of 40,000 rows .*new\.h5, row 30,000"):
            fitted().predict_to_hdf5(source, tmp_path / "p.h5", **more)
    assert [file.name for file in tmp_path.iterdir()] == ["new.h5"]
    model = fitted(on_bad_rows="skip")
    assert model.predict_to_hdf5(source, tmp_path / "p.h5", return_std=True) == 2
    for name in ("y_pred", "y_std"):
        unknown = np.isnan(in_file(tmp_path / "p.h5", name))
        assert np.flatnonzero(unknown).tolist() == [30_000, 39_999]


# Many targets, and what is under way.


def wide(q=300, precision="single", D=16):
    rng = np.random.default_rng(2)
    feature_map = RandomFourierFeatures(Gaussian(1.5), D).draw(P)
    return Predictor(feature_map, rng.standard_normal((D, q)), rng.standard_normal(q), precision)


@pytest.mark.parametrize(("chunk_rows", "scheduler"), [(7, "threads"), (1000, "synchronous")])
def test_many_targets_are_predicted_in_shards_of_bounded_size(
    tmp_path, chunk_rows, scheduler, monkeypatch
):
    monkeypatch.setattr(prediction, "_SHARD_BYTES", 400_000)
    predictor, (X, _) = wide(), rows(n=5000)
    path, made = store(tmp_path / "new.h5", X, chunks=(chunk_rows, P)), []
    source = open_hdf5(path, y=None)
    with dask.config.set(scheduler=scheduler, num_workers=3):
        for shard, part in prediction.predicted_shards(predictor, source):
            assert part["y_pred"].nbytes <= 400_000
            assert len(part["y_pred"]) == shard.n_rows
            made.append(part["y_pred"])
        assert prediction_files.predict_to_hdf5(predictor, source, tmp_path / "p.h5") == 0
    assert_close(np.concatenate(made), predictor.predict(X), dtype=np.float32)
    assert np.array_equal(in_file(tmp_path / "p.h5"), np.concatenate(made))


def test_finite_predictions_whose_sum_is_not_are_no_bad_rows(tmp_path):
    predictor = Predictor(Identity().draw(P), np.full((P, 2), 5e307), np.zeros(2), "double")
    source = ArraySource(np.ones((4, P)))
    assert prediction_files.predict_to_hdf5(predictor, source, tmp_path / "p.h5") == 0


def test_memory_of_predictions_is_that_of_the_shards_under_way(tmp_path, monkeypatch):
    monkeypatch.setattr(prediction, "_SHARD_BYTES", 4 << 20)
    predictor, n = wide(1000), 15_000
    path = store(tmp_path / "new.h5", rows(n=n)[0], chunks=(n, P))
    source = open_hdf5(path, y=None)
    tracemalloc.start()
    try:
        with dask.config.set(scheduler="threads", num_workers=2):
            prediction_files.predict_to_hdf5(predictor, source, tmp_path / "p.h5")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Four shards in the window, two in the hands of the writer, and two tasks' memory to work in.
    assert peak < 6 * (4 << 20) + 2 * (16 << 20)
    assert 8 * 1000 * n > 2 * peak


# Standard deviations.


@pytest.mark.cluster
def test_predictions_and_diagnoses_on_a_cluster_are_those_of_this_process(
    external_scheduler, tmp_path, diagnosed
):
    model, (X, _), predictor = fitted((3,)), rows((3,)), wide(40)
    mean, deviation = model.predict(X, return_std=True)
    source = open_hdf5(chunked(tmp_path / "new.h5", 1000, X=X), y=None)
    prediction_files.predict_to_hdf5(predictor, source, tmp_path / "here.h5")
    with streamkern.connect(scheduler=external_scheduler):
        lazy = model.predict(da.from_array(X, chunks=(9000, 2)), return_std=True)
        for made, expected in zip(dask.compute(*lazy), (mean, deviation), strict=True):
            assert_near(made, expected)
        assert model.predict_to_hdf5(source, tmp_path / "q.h5", return_std=True) == 0
        prediction_files.predict_to_hdf5(predictor, source, tmp_path / "there.h5")
        known, X, y, diagnosis = diagnosed
        assert known.diagnose(ArraySource(X, y)) == diagnosis
    assert np.array_equal(in_file(tmp_path / "there.h5"), in_file(tmp_path / "here.h5"))
    assert_near(in_file(tmp_path / "q.h5", "y_std"), deviation)


def test_a_model_without_its_normal_equations_predicts_but_has_no_standard_deviations(tmp_path):
    model, (X, y) = fitted(), rows(n=100)
    model.save(tmp_path / "compact.h5", compact=True)
    compact = streamkern.load(tmp_path / "compact.h5")
    assert np.array_equal(compact.predict(X), model.predict(X))
    sentence = "need the normal equations, but the model was saved without them; fit it again"
    for asked in (
        lambda: compact.predict(X, return_std=True),
        lambda: compact.predict(da.from_array(X), return_std=True),
        lambda: compact.predict(ArraySource(X), return_std=True),
        lambda: compact.predict_to_hdf5(ArraySource(X), tmp_path / "p.h5", return_std=True),
        lambda: compact.diagnose(ArraySource(X, y)),
    ):
        with pytest.raises(ModelFileError, match=sentence):
            asked()
    assert not (tmp_path / "p.h5").exists()


# What a model says of its own rows.


@pytest.mark.parametrize(
    ("shape", "intercept", "weighted"),
    [((), True, True), ((1,), False, True), ((3,), True, False)],
    ids=str,
)
def test_own_rows_are_predicted_as_by_a_fit_without_each(shape, intercept, weighted):
    X, y = rows(shape, 60)
    s = np.random.default_rng(4).choice([0.5, 1.0, 2.0], len(X)) if weighted else np.ones(len(X))
    how = {"n_components": 12, "precision": "double", "fit_intercept": intercept}
    model = RandomFeatureRidge(Gaussian(1.5), alpha=0.05, **how).fit(X, y, s)
    found = model.diagnose(ArraySource(X, y, s), n_largest=len(X))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    Phi, targets = model.transform(X), y.reshape(len(y), -1)
    errors = naive.left_out_errors(Phi, targets, s, model.alpha_, intercept=intercept)
    again = model.diagnose(ArraySource(X[::-1], y[::-1], s[::-1]), n_largest=3)
    for each in (found, again):
        assert np.shape(each["loo_rmse"]) == shape
        expected = np.sqrt(s @ errors**2 / s.sum())
        assert np.reshape(each["loo_rmse"], -1) == pytest.approx(expected, rel=1e-8)
    assert found["rows"] == len(X)
    assert found["effective_dof"] == pytest.approx(model.report_["effective_dof"], rel=1e-9)
    h = s * naive.leverages(Phi, Phi, s, model.alpha_, intercept=intercept)
    for key, size in (("largest_leverages", h), ("largest_errors", np.abs(errors).max(axis=1))):
        assert [row["row"] for row in found[key]] == np.argsort(-size).tolist()
        assert [59 - row["row"] for row in again[key]] == np.argsort(-size)[:3].tolist()
        for row in found[key]:
            assert row["leverage"] == pytest.approx(h[row["row"]], rel=1e-8)
            assert np.shape(row["error"]) == shape
            assert np.reshape(row["error"], -1) == pytest.approx(errors[row["row"]], rel=1e-6)
            assert row["place"] == f"row {row['row']}"


def test_other_rows_than_those_fitted_are_refused():
    (X, y), model = rows(n=60), fitted(n=60, precision="single", n_components=12, alpha=0.05)
    for others in (
        rows(n=60, seed=1),
        (X[1:], y[1:]),
        (np.vstack([X, X[:1]]), np.append(y, y[0])),
        (np.tile(X, (2, 1)), np.tile(y, 2)),
        (X + 0.5, y),
        (X, y + 1),
        (X, np.roll(y, 1)),
    ):
        with pytest.raises(DataError, match="not the rows that the model was fitted on") as caught:
            model.diagnose(ArraySource(*others))
        assert str(caught.value).count(". ") == 0
    for data, words in (
        ((X[:, :2], y), "rows must have 3 columns"),
        ((X, np.stack([y, y], axis=1)), r"predicts 1 target.*but the data has 2"),
        ((X,), "but the data has 0"),
    ):
        with pytest.raises(DataError, match=words):
            model.diagnose(ArraySource(*data))
    with pytest.raises(DataError, match="predicts 1 target, but the data has 2"):
        model.evaluate(X, np.stack([y, y], axis=1))


@pytest.mark.parametrize("method", ["evaluate", "diagnose"])
def test_bad_rows_are_refused_or_left_out(method):
    (X, y), options = rows(n=60), {"n_components": 12, "alpha": 0.05, "precision": "double"}
    model = RandomFeatureRidge(Gaussian(1.5), **options)
    expected = getattr(model.fit(X[2:], y[2:]), method)(ArraySource(X[2:], y[2:]))
    X[0, 1], y[1] = np.nan, np.inf
    ask = getattr(model.set_params(on_bad_rows="skip").fit(X, y), method)
    found, error = ask(ArraySource(X, y)), "rmse" if method == "evaluate" else "loo_rmse"
    assert (found["rows"], found["skipped_rows"]) == (58, 2)
    assert found[error] == pytest.approx(expected[error], rel=1e-6)
    places = [[row["row"] for row in each.get("largest_errors", [])] for each in (found, expected)]
    assert places[0] == [place + 2 for place in places[1]]
    with pytest.raises(DataError, match="of 60 rows, 60 were skipped"):
        ask(ArraySource(X, np.nan * y))
    model.set_params(on_bad_rows="error")
    with pytest.raises(DataError, match=r"2 of 60 rows .* first at row 0"):
        ask(ArraySource(X, y))


@pytest.fixture(scope="module")
def diagnosed():
    X, y = rows((3,))
    model = RandomFeatureRidge(Gaussian(1.5), n_components=32).fit(X, y)
    return model, X, y, model.diagnose(ArraySource(X, y))


def test_schedulers_files_and_dask_arrays_give_the_same_diagnosis(diagnosed, tmp_path):
    model, X, y, expected = diagnosed
    assert model.diagnose(X, y) == expected
    model.save(tmp_path / "model.h5")
    with dask.config.set(scheduler="synchronous"):
        assert streamkern.load(tmp_path / "model.h5").diagnose(ArraySource(X, y)) == expected
    source = open_hdf5(chunked(tmp_path / "train.h5", 1000, X=X, y=y))
    lazy = streamkern.sources.as_source(da.from_array(X, chunks=(8000, 2)), da.from_array(y))
    for found in (model.diagnose(source), model.diagnose(lazy)):
        for name in ("loo_rmse", "effective_dof"):
            assert found[name] == pytest.approx(expected[name], rel=1e-6)
        places = [[row["row"] for row in each["largest_errors"]] for each in (found, expected)]
        assert places[0] == places[1]
