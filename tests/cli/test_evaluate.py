"""`streamkern evaluate`."""

from __future__ import annotations

import numpy as np
import pytest
from commandline import report_of, rows, streamkern, write
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from streamkern import load

pytestmark = pytest.mark.usefixtures("folder")

METRICS = {"rmse": root_mean_squared_error, "mae": mean_absolute_error, "r2": r2_score}


def fitted(q=None):
    write("train.h5", *rows(q=q))
    streamkern("fit", "train.h5", "--out", "model.h5", "--components", 32, "--quiet")
    return load("model.h5")


@pytest.mark.parametrize("q", [None, 1, 2])
def test_the_json_is_what_scikit_learn_says(q):
    model, (X, y) = fitted(q), rows(500, seed=1, q=q)
    write("test.h5", X, y)
    found = report_of("evaluate", "model.h5", "test.h5")
    assert found["rows"] == 500
    for name, metric in METRICS.items():
        each = metric(y, model.predict(X), multioutput="raw_values")
        if q is None:
            assert found[name] == pytest.approx(each[0], rel=1e-5)
        else:
            assert found[name] == pytest.approx(each.tolist(), rel=1e-5)
            assert found[f"{name}_mean"] == pytest.approx(each.mean(), rel=1e-5)


@pytest.mark.parametrize("q", [None, 2])
def test_people_see_the_numbers(q):
    fitted(q)
    write("test.h5", *rows(500, seed=1, q=q))
    found = report_of("evaluate", "model.h5", "test.h5")
    output = streamkern("evaluate", "model.h5", "test.h5").stdout
    for name in METRICS:
        (line,) = [
            line for line in output.splitlines() if line.split()[:1] in ([name], [name + ","])
        ]
        assert line.split()[-1] == f"{found[name if q is None else name + '_mean']:.6g}"
        assert ("mean over targets" in line) == (q is not None)


def test_several_files_and_other_names_are_one_data_set():
    fitted()
    X, y = rows(500, seed=1)
    write("whole.h5", X, y)
    write("a.h5", X[:200], y[:200], "inputs", "target")
    write("b.h5", X[200:], y[200:], "inputs", "target")
    whole = report_of("evaluate", "model.h5", "whole.h5")
    parts = report_of("evaluate", "model.h5", "[ab].h5", "--x", "inputs", "--y", "target")
    assert parts == whole


def test_skipped_rows_are_counted():
    fitted()
    X, y = rows()
    X[3], y[7] = np.nan, np.inf
    write("test.h5", X, y)
    arguments = ("evaluate", "model.h5", "test.h5", "--on-bad-rows", "skip")
    found = report_of(*arguments)
    assert (found["rows"], found["skipped_rows"]) == (298, 2)
    assert "rows skipped" in streamkern(*arguments).stdout


@pytest.mark.cluster
def test_workers_find_the_errors_that_this_process_finds():
    fitted()
    write("test.h5", *rows(40_000))
    here = report_of("evaluate", "model.h5", "test.h5")
    assert report_of("evaluate", "model.h5", "test.h5", "--workers", 2) == here
