"""`streamkern fit --boost`, and what other commands do with the classifier that it writes."""

import h5py
import numpy as np
import pytest
from commandline import report_of, streamkern, write

from streamkern.extensions.classes.fitted_ensemble import OF_A_ROUND, Boosting

SMALL = ("--components", 16, "--length-scale", 0.5, "--alpha", 0.1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("boosted")
    X = np.random.default_rng(0).uniform(0, 4, (300, 2))
    write(folder / "data.h5", X, np.array(["ash", "beech"])[X.astype(int).sum(axis=1) % 2])
    write(folder / "three.h5", X, X.astype(int).sum(axis=1) % 3)
    options = ("--classify", "--boost", "3:discrete", *SMALL, "--quiet")
    said = streamkern("fit", folder / "data.h5", "--out", folder / "model.h5", *options)
    (folder / "said.txt").write_text(said.stdout)
    return folder


def test_a_fit_prints_the_bound_beside_the_error_of_every_round(folder):
    report = report_of("show", folder / "model.h5")["report"]
    assert [each["round"] for each in report["rounds"]] == [1, 2, 3]
    lines = [line.split() for line in (folder / "said.txt").read_text().splitlines()]
    for each in report["rounds"]:
        found = [line for line in lines if line[:1] == [str(each["round"])]]
        assert found[0][-2:] == [
            f"{each[name]:.4f}" for name in ("train_error", "train_error_bound")
        ]
    assert "3 by discrete AdaBoost" in streamkern("show", folder / "model.h5").stdout


def test_a_fit_of_more_than_two_classes_prints_no_bound(folder):
    options = ("--classify", "--boost", "2", *SMALL, "--quiet")
    said = streamkern("fit", folder / "three.h5", "--out", folder / "three-model.h5", *options)
    for shown in (said.stdout, streamkern("show", folder / "three-model.h5").stdout):
        assert "training error" in shown
        assert "at most" not in shown


def test_predictions_and_their_errors_are_those_of_the_model(folder):
    found = report_of("evaluate", folder / "model.h5", folder / "data.h5")
    out = folder / "predicted.h5"
    streamkern("predict", folder / "model.h5", folder / "data.h5", "--out", out, "--proba")
    with h5py.File(out) as file, h5py.File(folder / "data.h5") as data:
        right = np.mean(file["y_pred"][:] == data["y"][:])
        assert found["accuracy"] == pytest.approx(right)
        np.testing.assert_allclose(file["y_proba"][:].sum(axis=1), 1)
    rounds = report_of("show", folder / "model.h5")["report"]["rounds"]
    assert 1 - found["accuracy"] == pytest.approx(rounds[-1]["train_error"])


def test_a_dry_run_counts_the_maps_of_all_rounds(folder):
    given = ("fit", folder / "data.h5", "--out", folder / "other.h5", "--classify", *SMALL)
    one, many = (report_of(*given, "--dry-run", "--boost", n)["worker_bytes"] for n in (1, 1001))
    assert many - one == 1000 * 16 * 16 * 2  # frequencies, twice


def test_rounds_have_the_defaults_of_python(handed_by):
    line = "fit data.h5 --out m.h5 --classify --boost 10"
    made, found, _ = handed_by(line, Boosting, "fit")
    assert made == Boosting(10)
    assert found.values() == OF_A_ROUND.values()
