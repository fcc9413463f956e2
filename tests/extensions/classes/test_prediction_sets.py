"""Prediction sets hold the class of new rows in the share that is asked for, of every class."""

import dask.array as da
import h5py
import numpy as np
import pytest
from commandline import streamkern

from streamkern import RandomFeatureAdaBoost, RandomFeatureClassifier, load
from streamkern.errors import ModelFileError, ParameterError
from streamkern.extensions.classes.class_errors import ScoreTable
from streamkern.extensions.classes.prediction_sets import PredictionSets
from streamkern.predict.interval_fit import LEVELS

LABELS = {2: np.array(["no", "yes"]), 3: np.array([3, 5, 9])}


def labelled(n, n_classes, seed=0):
    """Rows of classes that overlap, the first twice as common as the others."""
    rng = np.random.default_rng(seed)
    codes = np.minimum(rng.integers(n_classes + 1, size=n), n_classes) % n_classes
    centres = np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 1.5]])
    return centres[codes] + rng.standard_normal((n, 2)), LABELS[n_classes][codes]


def fitted(n, n_classes, **options):
    return RandomFeatureClassifier(n_components=64, **options).fit(*labelled(n, n_classes))


def held(sets, y, classes):
    return sets[np.arange(len(y)), np.searchsorted(classes, y)]


@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced", "calibration": "isotonic"}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_sets_hold_the_class_of_new_rows_in_every_class(n_classes, options):
    model = fitted(8000, n_classes, **options)
    X, y = labelled(20_000, n_classes, seed=1)
    sizes = []
    for level in (0.8, 0.9, 0.97):
        sets = model.predict_sets(X, level)
        assert (sets.shape, sets.dtype) == ((len(X), n_classes), bool)
        assert held(sets, model.predict(X), model.classes_).all()
        for each in model.classes_:
            mine = held(sets, y, model.classes_)[y == each]
            assert level - 0.025 < mine.mean() < max(level + 0.025, 0.9)
        sizes.append(sets.sum(axis=1).mean())
    assert sizes == sorted(sizes)
    assert sizes[-1] < n_classes


def test_thresholds_are_those_of_the_scores_to_a_bin():
    rng = np.random.default_rng(0)
    scores, is_class = rng.standard_normal((400, 1)), rng.random((400, 1)) < 0.3
    table = ScoreTable(np.zeros(1), np.ones(1))
    table.count(scores, is_class, None)
    found = PredictionSets.of(table).thresholds
    for k, mine in enumerate((-scores[~is_class], scores[is_class])):
        rank = np.ceil((len(mine) + 1) * LEVELS - 1e-9).astype(int)
        wanted = np.append(np.sort(mine)[::-1], -np.inf)[np.minimum(rank, len(mine) + 1) - 1]
        known = np.isfinite(wanted)
        assert (found[~known, k] == -1e100).all()
        width = 4.0 * (1.0 + np.abs(wanted[known])) ** 2 / table.n_bins
        assert (found[known, k] <= wanted[known]).all()
        assert (wanted[known] - found[known, k] < width).all()


def test_weights_of_a_class_that_are_all_alike_change_nothing():
    rng = np.random.default_rng(0)
    scores, codes = rng.standard_normal((200, 3)), rng.integers(3, size=200)

    def thresholds(weights):
        table = ScoreTable(np.zeros(3), np.ones(3))
        table.count(scores, codes[:, None] == np.arange(3), weights)
        return PredictionSets.of(table).thresholds

    usual = thresholds(None)
    assert (thresholds(np.array([0.25, 2.0, 64.0])[codes]) == usual).all()
    assert (thresholds(rng.integers(1, 4, size=200).astype(float)) != usual).any()


def test_sets_are_of_the_rows_that_calibrate_and_of_none_without(tmp_path):
    model = fitted(2000, 3)
    X, y = labelled(4000, 3, seed=5)
    before = model.predict_sets(X)
    model.calibrate(X[:2000] + 0.5, y[:2000])
    inside = held(model.predict_sets(X[2000:] + 0.5), y[2000:], model.classes_)
    assert inside.mean() == pytest.approx(0.9, abs=0.03)
    assert (model.predict_sets(X) != before).any()
    model.calibrate(X, y, calibration=None)
    with pytest.raises(ModelFileError, match="calibrate on rows held out"):
        model.predict_sets(X)
    assert "sets" not in model.evaluate(X, y)


def test_rows_without_a_score_have_no_set_and_lazy_ones_the_same(tmp_path):
    model = fitted(1000, 3, on_bad_rows="skip")
    X, _ = labelled(50, 3, seed=6)
    X[3, 1] = np.nan
    sets = model.predict_sets(X)
    assert np.flatnonzero(~sets.any(axis=1)).tolist() == [3]
    assert (model.predict_sets(da.from_array(X, chunks=(20, 2))).compute() == sets).all()
    model.predict_to_hdf5(X, tmp_path / "p.h5", interval=0.9)
    with h5py.File(tmp_path / "p.h5") as file:
        assert (file["y_set"][:] == sets).all()


@pytest.mark.parametrize(
    "change", [lambda t: t[:-1], lambda t: np.where(t == t[4], np.nan, t), lambda t: t[::-1]]
)
def test_thresholds_of_a_file_fall_and_are_as_many_as_levels(change, tmp_path):
    path = tmp_path / "m.h5"
    fitted(400, 3).save(path)
    with h5py.File(path, "r+") as file:
        changed = change(file["sets/thresholds"][:])
        del file["sets/thresholds"]
        file["sets/thresholds"] = changed
    with pytest.raises(ModelFileError):
        load(path)


def test_of_a_class_with_few_rows_every_set_has_it():
    X, y = labelled(300, 3)
    kept = (y != 9) | (np.cumsum(y == 9) <= 5)
    model = RandomFeatureClassifier(n_components=32).fit(X[kept], y[kept])
    assert model.predict_sets(X, 0.9)[:, 2].all()
    assert not model.predict_sets(X, 0.9)[:, 0].all()


def test_they_are_saved_evaluated_and_written_by_the_shell(tmp_path):
    X, y = labelled(3000, 3)
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["X"], file["y"] = X, y
    rows, saved, out = tmp_path / "rows.h5", tmp_path / "m.h5", tmp_path / "p.h5"
    streamkern("fit", rows, "--classify", "--components", 32, "--out", saved)
    model = load(saved)
    streamkern("predict", saved, rows, "--out", out, "--interval", 90)
    with h5py.File(out) as file:
        np.testing.assert_array_equal(file["y_set"][:], model.predict_sets(X, 0.9))
    found = model.evaluate(X, y)["sets"]
    inside = held(model.predict_sets(X, 0.9), y, model.classes_)
    assert found["coverage"] == pytest.approx(inside.mean())
    assert found["by_class"] == pytest.approx([inside[y == each].mean() for each in (3, 5, 9)])
    assert "90% sets hold" in streamkern("evaluate", saved, rows).output


def test_what_has_none_says_so():
    X, y = labelled(400, 2)
    without = [
        RandomFeatureClassifier(n_components=16, calibration=None).fit(X, y),
        RandomFeatureClassifier(n_components=16).partial_fit(X, y),
    ]
    for model in without:
        with pytest.raises(ModelFileError, match="need scores of held-out rows"):
            model.predict_sets(X)
    with pytest.raises(ParameterError, match="more than 0 and less than 1, not 90"):
        fitted(400, 2).predict_sets(X, 90)
    with pytest.raises(ParameterError, match=r"hold up to 99.9% of new rows, not 99.95%"):
        fitted(400, 2).predict_sets(X, 0.9995)
    boosted = RandomFeatureAdaBoost(n_estimators=2).fit(X, y)
    assert not hasattr(boosted, "predict_sets")
