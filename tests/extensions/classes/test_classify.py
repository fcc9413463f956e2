"""Commands that classify: the rows of files with labels, from a fit to predicted labels."""

import h5py
import numpy as np
import pytest
from commandline import refused, report_of, streamkern, write
from harvests import NAMES
from harvests import labelled_rows as rows

from streamkern import RandomFeatureClassifier, load


@pytest.fixture(autouse=True)
def labelled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("train.h5", *rows())
    write("test.h5", *rows(200, seed=1))


def fitted(*options, name="model.h5", command="fit"):
    common = ("--classify", "--components", 32, "--kernel", "gaussian", "--out", name)
    return report_of(command, "train.h5", *common, *options)


@pytest.mark.parametrize("labels", [np.array([3, -1], "i2"), np.array([True, False])])
def test_labels_that_are_no_text_are_written_as_they_are(labels):
    X, y = rows()
    write("train.h5", X, labels[(y == "hay").astype(int)])
    fitted()
    streamkern("predict", "model.h5", "train.h5", "--out", "p.h5")
    with h5py.File("p.h5") as file:
        assert file["y_pred"].dtype.kind == labels.dtype.kind
        assert (file["y_pred"][:] == load("model.h5").predict(X)).all()
        assert set(file) == {"y_pred", "classes"}


@pytest.mark.parametrize("text", [True, False])
def test_rows_that_cannot_be_predicted_have_no_label(text):
    X, y = rows()
    y = y if text else np.searchsorted(NAMES, y)
    write("train.h5", X, y)
    fitted()
    X[5, 0] = np.nan
    write("new.h5", X, y)
    output = refused("predict", "model.h5", "new.h5", "--out", "p.h5", "--quiet")
    assert "1 of 240 rows have no finite score" in output
    arguments = ("predict", "model.h5", "new.h5", "--out", "p.h5", "--on-bad-rows", "skip")
    assert report_of(*arguments, "--proba")["skipped_rows"] == 1
    assert report_of("evaluate", "model.h5", "new.h5", *arguments[-2:])["skipped_rows"] == 1
    with h5py.File("p.h5") as file:
        predicted = file["y_pred"].asstr()[:] if text else file["y_pred"][:]
        unknown = predicted == "" if text else np.isnan(predicted)
        assert np.flatnonzero(unknown).tolist() == [5]
        assert np.flatnonzero(np.isnan(file["y_proba"][:]).any(axis=1)).tolist() == [5]
        expected = load("model.h5").predict(np.delete(X, 5, axis=0))
        assert (np.delete(predicted, 5) == expected).all()


def test_moments_without_folds_cannot_calibrate():
    fitted("--folds", "1", command="moments", name="m.h5")
    solve = ("solve", "m.h5", "--out", "model.h5", "--alpha", "gcv", "--force")
    assert "needs 2 folds or more, and" in refused(*solve, "--calibration", "sigmoid", status=2)
    streamkern(*solve, "--calibration", "none")
    assert load("model.h5").calibration is None
    assert "there are no folds to calibrate by" in streamkern(*solve).stderr
    assert load("model.h5").calibration is None


def test_what_is_in_a_label_does_not_reach_the_terminal():
    X, y = rows()
    write("odd.h5", X, np.where(y == "hay", "p\x1b]0;x\x07", y))
    streamkern("fit", "odd.h5", "--classify", "--components", 32, "--out", "odd-model.h5")
    said = streamkern("evaluate", "odd-model.h5", "odd.h5").output
    assert "\x1b" not in said
    assert said.count("p\\x1b]0;x\\x07") == 2


def test_weights_of_rows_and_of_classes_are_multiplied_and_named():
    X, y = rows()
    weights = np.random.default_rng(5).random(len(X))
    with h5py.File("train.h5", "a") as file:
        file["s"] = weights
    options = ("--weights", "s", "--class-weight", "balanced")
    fitted(*options, "--report", "report.html")
    expected = RandomFeatureClassifier("gaussian", n_components=32, class_weight="balanced")
    expected.fit(X, y, weights)
    np.testing.assert_array_equal(load("model.h5").predict_proba(X), expected.predict_proba(X))
    report = fitted(*options, command="moments", name="m.h5")
    assert report["weights"] == "s"
    arguments = ("m.h5", "m.h5", "--repeated-rows", "--out", "both.h5")
    assert report_of("merge", *arguments)["rows"] == 480
    arguments = ("both.h5", "train.h5", "--weights", "s", "--out", "left.h5")
    assert report_of("forget", *arguments)["rows"] == 240
    found = report_of("evaluate", "model.h5", "train.h5", "--weights", "s")
    assert found == load("model.h5").evaluate(X, y, weights)
