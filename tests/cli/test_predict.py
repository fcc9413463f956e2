"""`streamkern predict` and `streamkern evaluate`."""

import re
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
from commandline import invoke, report_of, rows, streamkern, unchanged_by, write

from streamkern import load

pytestmark = pytest.mark.usefixtures("folder")


def fitted(q=None):
    write("train.h5", *rows(q=q))
    small = ("--components", 32, "--kernel", "gaussian", "--quiet")
    streamkern("fit", "train.h5", "--out", "model.h5", *small)
    return load("model.h5")


def predictions(path="p.h5", name="y_pred"):
    with h5py.File(path) as file:
        return file[name][:]


@pytest.mark.parametrize("q", [None, 2])
def test_predictions_are_of_the_format_that_the_name_says(q):
    model, (X, _) = fitted(q), rows()
    for name, read in (("p.csv", pd.read_csv), ("p.parquet", pd.read_parquet)):
        streamkern("predict", "model.h5", "data.h5", "--out", name, "--std")
        places = ("",) if q is None else ("_0", "_1")
        assert list(read(name)) == [f"y_{each}{j}" for each in ("pred", "std") for j in places]
        expected = np.column_stack(model.predict(X, return_std=True))
        np.testing.assert_allclose(read(name), expected, atol=1e-5)


def test_a_name_that_ends_like_another_format_is_refused():
    fitted()
    streamkern("moments", "data.h5", "--out", "m.h5", "--components", 8, "--quiet")
    streamkern("pca", "data.h5", "--out", "pca.h5", "--random-features", 8, "--quiet")
    Path("t.csv").write_text("a,b\n1,2\n2,1\n")
    for command in (
        "predict model.h5 data.h5 --out p.tsv",
        "transform pca.h5 data.h5 --out p.npy",
        "fit data.h5 --out p.csv",
        "fit data.h5 --out p.pkl --boost 2 --classify",
        "tune data.h5 --out p.parquet",
        "moments data.h5 --out p.csv",
        "solve m.h5 --out p.json",
        "merge m.h5 m.h5 --out p.csv",
        "pca data.h5 --out p.npz",
        "convert t.csv p.parquet --target b",
        "export model.h5 --out p.h5",
    ):
        done = invoke(*command.split())
        assert done.exit_code == 2, command
        assert re.search(r"p\.\w+ ends like .*, but what is written there is .*; give", done.stderr)
    assert not list(Path().glob("p.*"))


def test_standard_deviations_of_a_model_without_normal_equations_are_refused(folder):
    fitted().save("compact.h5", compact=True)
    predict = ("predict", "compact.h5", "data.h5", "--out", "p.h5", "--quiet")
    sentence = unchanged_by(folder, *predict, "--std")
    assert "--std needs the normal equations, but compact.h5 was saved without" in sentence
    streamkern(*predict)


def test_intervals_are_written_evaluated_and_refused_in_one_sentence():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 3))
    y = np.abs(np.sin(X[:, 0]) + (0.1 + np.abs(X[:, 1])) * rng.standard_normal(2000))
    write("train.h5", X[:1000], y[:1000])
    write("test.h5", X[1000:], y[1000:])
    small = ("--components", 64, "--kernel", "gaussian", "--quiet")
    streamkern("fit", "train.h5", "--out", "m.h5", *small, "--range", "0,")
    streamkern("predict", "m.h5", "test.h5", "--out", "p.h5", "--interval", "90%", "--std")
    lower, upper = load("m.h5").predict(X[1000:], interval=0.9)[1].T
    np.testing.assert_allclose(predictions(name="y_lower"), lower)
    np.testing.assert_allclose(predictions(name="y_upper"), upper)
    assert lower.min() == 0
    found = report_of("evaluate", "m.h5", "test.h5")["intervals"]
    assert 0.85 < found["coverage"] < 0.95
    assert len(found["by_difficulty"]) == 10
    printed = streamkern("evaluate", "m.h5", "test.h5").stdout
    assert re.search(r"90% intervals hold .*\n.*tenth \d+ of 10.*the worst", printed)
    for text, why in (
        ("predict m.h5 test.h5 --out q.h5 --interval 100", "--interval 90"),
        (
            "predict m.h5 --grid 2,2,2 --out q.h5 --interval 90",
            "not for boosting, components or grids",
        ),
        ("fit train.h5 --out n.h5 --range 5", "--range must be two numbers"),
        ("fit train.h5 --out n.h5 --range 0,x", "--range must be two numbers"),
        ("fit train.h5 --out n.h5 --range 0,1e-9", "not all in --range"),
        ("fit train.h5 --out n.h5 --range 0,1 --classify", "--range is of numbers"),
    ):
        done = invoke(*text.split())
        assert done.exit_code in (1, 2), text
        assert why in done.stderr, done.stderr
