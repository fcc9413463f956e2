"""The option --weights of the commands that read rows with targets."""

from pathlib import Path

import dask
import h5py
import numpy as np
import pytest
from commandline import refused, report_of, rows, streamkern, write

from streamkern import load

FIT = ("--length-scale", 0.7, "--alpha", 0.3, "--components", 32, "--precision", "double")


@pytest.fixture(autouse=True)
def weighted(folder):
    """Rows with weights in one file, and as often as they weigh in another."""
    X, y = rows()
    s = np.random.default_rng(4).integers(0, 3, len(X))
    write("weighted.h5", X, y, w=s)
    write("repeated.h5", np.repeat(X, s, axis=0), np.repeat(y, s, axis=0))
    with dask.config.set(scheduler="synchronous"):
        yield


def fitted(*arguments, name="model.h5"):
    report = report_of("fit", *arguments, "--out", name, *FIT)
    return report, load(name)


def test_a_fit_with_weights_is_that_of_rows_repeated():
    found, model = fitted("weighted.h5", "--weights", "w")
    expected, other = fitted("repeated.h5", name="other.h5")
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-9, atol=1e-9)
    for name in ("train_rmse", "effective_dof", "weight"):
        assert found[name] == pytest.approx(expected[name], rel=1e-9)
    assert (found["weights"], expected["weights"]) == ("w", None)
    assert found["rows"] + found["weightless_rows"] == 300
    said = streamkern("show", "model.h5").stdout
    assert f"w, which add up to {found['weight']:,.0f}" in said
    assert "rows of weight 0" in said


def test_a_diagnosis_takes_the_weights_of_the_fit():
    report, _ = fitted("weighted.h5", "--weights", "w")
    found = report_of("evaluate", "model.h5", "weighted.h5", "--weights", "w", "--leave-one-out", 5)
    assert found["effective_dof"] == pytest.approx(report["effective_dof"], rel=1e-9)
    sentence = refused("evaluate", "model.h5", "weighted.h5", "--leave-one-out", 5)
    assert "give the rows and weights of the fit" in sentence


def test_moments_know_their_weights_and_forget_by_them():
    options = ("--length-scale", 0.7, "--components", 32, "--precision", "double")
    named = ("weighted.h5", "--weights", "w")
    report = report_of("moments", *named, "--out", "m.h5", *options, "--folds", 1)
    assert report["weights"] == "w"
    assert "w, which add up to" in streamkern("show", "m.h5").stdout
    with h5py.File("weighted.h5") as file:
        X, y, s = (file[name][:] for name in "Xyw")
    assert report["weight"] == s.sum()
    write("gone.h5", X[:100], y[:100], w=s[:100])
    left = report_of("forget", "m.h5", "gone.h5", "--weights", "w", "--out", "left.h5")
    assert left["weight"] == s[100:].sum()
    sentence = refused("forget", "m.h5", "gone.h5", "--out", "no.h5")
    assert "were never in these moments" in sentence
    report_of("solve", "left.h5", "--out", "left-model.h5", "--alpha", 0.3, "--components", 32)
    write("rest.h5", np.repeat(X[100:], s[100:], axis=0), np.repeat(y[100:], s[100:], axis=0))
    report_of("fit", "rest.h5", "--like", "m.h5", "--out", "rest-model.h5", "--alpha", 0.3)
    assert load("left-model.h5").coef_ == pytest.approx(load("rest-model.h5").coef_, abs=1e-9)


def test_a_comparison_takes_weights_in_fits_and_in_errors():
    X, y = rows()
    write("twice.h5", X, y, w=np.full(300, 2.0))
    small = ("--components", "16", "--maps", "iid", "--seeds", 1, "--length-scale", 1)
    plain = report_of("compare", "twice.h5", "--out", "a", *small, "--alpha", 0.3)
    found = report_of("compare", "twice.h5", "--weights", "w", "--out", "b", *small, "--alpha", 0.6)
    for mine, theirs in zip(found["trials"], plain["trials"], strict=True):
        assert mine["test_rmse"] == pytest.approx(theirs["test_rmse"], rel=1e-4)


def test_a_plan_counts_the_weights():
    plain = report_of("fit", "weighted.h5", "--out", "no.h5", "--dry-run")
    weighted = report_of("fit", "weighted.h5", "--weights", "w", "--out", "no.h5", "--dry-run")
    assert weighted["worker_bytes"] > plain["worker_bytes"]
    assert report_of("inspect", "weighted.h5", "--weights", "w")["fit"]["n_rows"] == 300


@pytest.mark.parametrize("command", ["fit", "moments", "tune"])
def test_a_negative_weight_is_one_sentence_with_its_place(command):
    X, y = rows()
    write("bad.h5", X, y, w=np.where(np.arange(300) == 17, -1.0, 1.0))
    arguments = (command, "bad.h5", "--weights", "w", "--out", "model.h5", "--components", 32)
    assert "bad.h5, row 17 has the weight -1" in refused(*arguments)


def test_the_report_of_a_fit_names_the_weights():
    streamkern(
        *("fit", "weighted.h5", "--weights", "w", "--out", "model.h5", *FIT[4:], "--quiet"),
        *("--report", "a.html"),
    )
    text = Path("a.html").read_text(encoding="utf-8")
    assert "w, which add up to" in text
    assert "--weights w" in text
    assert report_of("show", "model.h5")["report"]["weights"] == "w"
