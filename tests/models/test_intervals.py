"""Prediction intervals and ranges of targets: formulas, what they hold, files and commands."""

import json

import dask.array as da
import h5py
import numpy as np
import onnxruntime
import pytest
from commandline import write
from real import load, needs_data
from tolerances import assert_close

import streamkern
from streamkern import Gaussian, RandomFeatureClassifier, RandomFeatureRidge, open_hdf5
from streamkern.errors import DataError, ModelFileError, ParameterError
from streamkern.fitting import ridge_result
from streamkern.sources import Block

SMALL = {"n_components": 64, "precision": "double"}


def rows(n=6000, q=None, seed=0):
    """Targets whose noise follows the second input."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    noise = (0.1 + np.abs(X[:, 1:2])) * rng.standard_normal((n, q or 1))
    y = np.sin(X[:, :1]) * np.arange(1, (q or 1) + 1) + noise
    return X, y if q else y[:, 0]


def fitted(q=None, n=4000, **options):
    return RandomFeatureRidge(Gaussian(1.5), **SMALL | options).fit(*rows(n, q))


def coverage(model, X, y, level=0.9):
    low, high = np.moveaxis(model.predict(X, interval=level)[1], -1, 0)
    return np.mean((low <= y) & (y <= high)), high - low


@pytest.mark.parametrize(
    "options",
    [{}, {"alpha": 3.0}, {"sparse": 20}, {"feature_map": "nystroem"}, {"precision": "int16"}],
    ids=str,
)
def test_intervals_hold_their_share_in_all_and_where_errors_are_large(options):
    model, (X, y) = fitted(**options), rows(20_000, seed=1)
    for level in (0.5, 0.8, 0.9, 0.95):
        assert abs(coverage(model, X, y, level)[0] - level) < 0.025
    of_rows = model.evaluate(X, y)["intervals"]
    assert of_rows["level"] == 0.9
    assert sum(each["rows"] for each in of_rows["by_difficulty"]) == len(X)
    assert min(each["coverage"] for each in of_rows["by_difficulty"]) > 0.84
    widths = [each["width"] for each in of_rows["by_difficulty"]]
    assert widths[-1] > 4 * widths[0]  # the noise of the tenths differs more


def test_evaluate_counts_what_predict_gives():
    model, (X, y) = fitted(), rows(3000, seed=1)
    weights = np.random.default_rng(0).random(len(X))
    found = model.evaluate(X, y, weights)["intervals"]
    predicted, ends = model.predict(X, interval=0.9)
    inside = (ends[:, 0] <= y) & (y <= ends[:, 1])
    assert_close(found["coverage"], np.average(inside, weights=weights))
    assert_close(found["width"], np.average(ends[:, 1] - ends[:, 0], weights=weights))
    intervals = model.model_.intervals
    tenth = intervals.at(0.9, model.predictor_).bounds(X, predicted[:, None])[2][:, 0]
    for k, each in enumerate(found["by_difficulty"]):
        assert each["rows"] == np.sum(tenth == k)
        assert_close(each["coverage"], np.average(inside[tenth == k], weights=weights[tenth == k]))


def spied(monkeypatch, X, y, **options):
    """A fitted model, and the predictions of the rows that intervals are made from."""
    found = []

    def keep(_predictor, rows, predicted, **_how):
        found.append((rows, predicted[:, 0]))

    monkeypatch.setattr(ridge_result, "fitted_intervals", keep)
    model = RandomFeatureRidge(Gaussian(1.5), **SMALL | options).fit(X, y, keep_moments=True)
    (((rows, predicted)),) = found
    assert sorted(rows.places()) == list(range(len(X)))
    return model, predicted[np.argsort(rows.places())]


def left_out(model, X, y, others, mine):
    """Predictions of rows by a fit to others, in the map of a model."""
    phi = model.transform(X)
    mean, level = phi[others].mean(axis=0), y[others].mean()
    gram = (phi[others] - mean).T @ (phi[others] - mean) + model.alpha_ * np.eye(phi.shape[1])
    w = np.linalg.solve(gram, (phi[others] - mean).T @ (y[others] - level))
    return level + (phi[mine] - mean) @ w


def test_errors_are_those_of_models_without_the_fold(monkeypatch):
    X, y = rows(500)
    model, predicted = spied(monkeypatch, X, y)
    folds = model.moments_.gathered().folds.rule.of(Block(X, y[:, None], 0))
    for k in range(5):
        expected = left_out(model, X, y, folds != k, folds == k)
        assert np.abs(predicted[folds == k] - expected).max() < 1e-6


def test_without_folds_errors_are_those_without_each_row(monkeypatch):
    X, y = rows(60)
    model, predicted = spied(monkeypatch, X, y, n_components=16, alpha=2.0)
    for i in (0, 17, 59):
        expected = left_out(model, X, y, np.arange(60) != i, slice(i, i + 1))
        assert predicted[i] == pytest.approx(expected[0])


@pytest.mark.parametrize("q", [None, 2])
def test_shapes_laziness_and_files_agree(tmp_path, q):
    model, (X, y) = fitted(q), rows(700, q)
    predicted, deviations, ends = model.predict(X, return_std=True, interval=0.9)
    assert ends.shape == (700, 2) if q is None else (700, 2, 2)
    assert deviations.shape == predicted.shape == y.shape
    assert (ends[..., 0] < predicted).all()
    assert (predicted < ends[..., 1]).all()
    lazy = model.predict(da.from_array(X, chunks=(300, 3)), interval=0.9)
    assert all(isinstance(each, da.Array) for each in lazy)
    assert_close(lazy[1].compute(), ends)
    model.save(tmp_path / "m.h5", compact=True)
    assert_close(streamkern.load(tmp_path / "m.h5").predict(X, interval=0.9)[1], ends)
    model.predict_to_hdf5(X, tmp_path / "p.h5", interval=0.9, return_std=True)
    with h5py.File(tmp_path / "p.h5") as file:
        assert sorted(file) == ["y_lower", "y_pred", "y_std", "y_upper"]
        assert_close(np.stack([file["y_lower"][:], file["y_upper"][:]], axis=-1), ends)
    write(tmp_path / "x.h5", X, y)
    assert_close(model.predict(open_hdf5(tmp_path / "x.h5"), interval=0.9)[1], ends)


def test_what_has_no_intervals_says_so(tmp_path):
    X, y = rows(400)
    few = RandomFeatureRidge(Gaussian(1.5), **SMALL).fit(X[:30], y[:30])
    with pytest.raises(ParameterError, match=r"tell 96.5% at most; ask for that, or fit more"):
        few.predict(X, interval=0.99)
    for level in (90, 0, 1.0, True, "0.9"):
        with pytest.raises(ParameterError, match=r"more than 0 and less than 1.*--interval 90"):
            few.predict(X, interval=level)
    by_moments = RandomFeatureRidge(Gaussian(1.5), **SMALL)
    by_moments.solve(by_moments.moments(X, y))
    gradients = RandomFeatureRidge(Gaussian(1.5), n_components=64, solver="cg").fit(X, y)
    grown = RandomFeatureRidge(Gaussian(1.5), **SMALL).fit(X[:200], y[:200])
    grown.partial_fit(X[200:], y[200:])
    few.save(tmp_path / "m.h5")
    with h5py.File(tmp_path / "m.h5", "a") as file:
        del file["intervals"]  # as in files of before
    for model in (by_moments, gradients, grown, streamkern.load(tmp_path / "m.h5")):
        with pytest.raises(ModelFileError, match=r"errors on held-out rows.*fit the rows again"):
            model.predict(X, interval=0.9)
        assert "intervals" not in model.evaluate(X, y)


def test_predictions_and_intervals_stay_in_the_range(tmp_path):
    X, y = rows(1000)
    y = np.abs(y)
    plain = RandomFeatureRidge(Gaussian(1.5), **SMALL).fit(X, y)
    model = RandomFeatureRidge(Gaussian(1.5), **SMALL, target_range=(0, None)).fit(X, y)
    new = rows(2000, seed=1)[0]
    predicted, ends = model.predict(new, interval=0.95)
    assert plain.predict(new).min() < 0 == predicted.min() == ends.min()
    assert_close(predicted, np.maximum(plain.predict(new), 0))
    model.save(tmp_path / "m.h5")
    again = streamkern.load(tmp_path / "m.h5")
    assert again.predictor_.limits == (0.0, np.inf)
    assert_close(again.predictor_.predict(new), predicted)
    errors = np.abs(rows(2000, seed=1)[1]) - predicted
    assert model.evaluate(new, predicted + errors)["rmse"] == pytest.approx(
        np.sqrt(np.mean(errors**2))
    )
    streamkern.to_onnx(again, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    found = session.run(None, {"X": np.vstack([new, [[np.nan] * 3]])})[0]
    assert found[:-1].min() == 0
    assert np.isnan(found[-1])
    assert_close(found[:-1], predicted, steps=1e5)
    assert model.diagnose(X, y)["loo_rmse"] == pytest.approx(plain.diagnose(X, y)["loo_rmse"])
    with pytest.raises(DataError, match=r"target 0 has values from 0\.\d+ to \d.*from 0 to 1;"):
        RandomFeatureRidge(target_range=(0, 1)).fit(X, y)


@pytest.mark.parametrize("given", [(1, 0), (0,), "0,1", "0", (0, np.nan), 3])
def test_a_range_is_two_numbers_or_one(given):
    with pytest.raises(ParameterError, match=r"target_range must be two numbers, the lower first"):
        RandomFeatureRidge(target_range=given).fit(*rows(50))


def test_a_damaged_file_of_intervals_is_refused(tmp_path):
    fitted(n=300).save(tmp_path / "m.h5")
    with h5py.File(tmp_path / "m.h5", "a") as file:
        file["intervals/scores"][...] = -1.0
    with pytest.raises(ModelFileError, match="damaged"):
        streamkern.load(tmp_path / "m.h5")


def test_what_a_file_keeps_of_errors_has_a_bounded_size(tmp_path):
    sizes = []
    for n in (5000, 20_000):
        fitted(n=n).save(tmp_path / f"{n}.h5")
        with h5py.File(tmp_path / f"{n}.h5") as file:
            group = file["intervals"]
            arrays = [*group["features"].values(), *group.values()]
            sizes.append(sum(each.nbytes for each in arrays if hasattr(each, "nbytes")))
    assert sizes[0] == sizes[1] < 20_000


@needs_data
def test_intervals_of_diamonds_hold_the_dear_ones_too():
    stored = load("diamonds")
    order = np.random.default_rng(0).permutation(len(stored["y"]))[:16_000]
    X, y = stored["X"][order].astype(float), stored["y"][order].astype(float)
    model = RandomFeatureRidge(Gaussian("median"), n_components=512).fit(X[:10_000], y[:10_000])
    found = model.evaluate(X[10_000:], y[10_000:])["intervals"]
    assert 0.88 < found["coverage"] < 0.92
    assert min(each["coverage"] for each in found["by_difficulty"]) > 0.85


def test_classifiers_have_neither():
    X, y = rows(200)
    with pytest.raises(TypeError, match="target_range"):
        RandomFeatureClassifier(target_range=(0, 1))
    model = RandomFeatureClassifier(n_components=16).fit(X, y > 0)
    assert model.ridge_.intervals is None
    assert json.dumps(model.evaluate(X, y > 0))
