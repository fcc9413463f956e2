"""Rows of words, from a report alone."""

import numpy as np
import pandas as pd
import pytest

from streamkern import Gaussian, RandomFeatureClassifier, RandomFeatureRidge
from streamkern.errors import StreamkernWarning
from streamkern.models import report_rows


@pytest.fixture(scope="module")
def report():
    """A report of rows of which one is skipped, and of columns of which one is constant."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3)) * [1.0, 0.0, 1.0] + [0.0, 3.0, 0.0]
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(200)
    X[5, 0] = np.nan
    model = RandomFeatureRidge(n_components=16, on_bad_rows="skip", sparse=5)
    with pytest.warns(StreamkernWarning, match="constant column"):
        return model.fit(X, y).report_


def test_a_fit_is_told_in_rows(report):
    rows = dict(report_rows.model_rows(report | {"note": "a note", "model": "m.h5"}))
    assert rows["rows x inputs"] == "199 x 3"
    assert rows["components"] == "5 of 16 by forward (single precision)"
    assert rows["alpha"].endswith("by cv, 5 folds by rows, of 30 tried")
    assert rows["training rmse"] == f"{report['train_rmse']:.5g}"
    assert rows["cross-validated rmse"] == f"{report['cv_rmse']:.5g}"
    assert (rows["rows skipped"], rows["constant columns left out"]) == ("1", "1")
    assert (rows["note"], rows["model"]) == ("a note", "m.h5")
    assert not {"rows forgotten", "shards retried", "weights", "metric"} & set(rows)


def test_classes_are_told_by_their_rows_or_by_their_weights():
    X = np.random.default_rng(0).standard_normal((90, 2))
    y = np.repeat(["ash", "elm", "oak"], [50, 30, 10])
    for weight, name, value in (
        (None, "rows of each", "50, 30, 10"),
        ("balanced", "weights of classes", "0.6, 1, 3"),
    ):
        model = RandomFeatureClassifier(Gaussian(1.0), n_components=8, class_weight=weight)
        rows = dict(report_rows.rows_of("classes", model.fit(X, y).report_))
        assert rows["classes"] == "3: ash, elm, oak"
        assert rows[name] == value
        assert rows["calibration"] == "spline"


def test_figures_are_written_as_the_medium_has_them(report):
    rows = dict(report_rows.fit_rows(report | {"train_rmse": 1.25e-7}, "{}!".format))
    assert rows["training rmse"] == "1.25e-07!"


def test_errors_say_their_units():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.uniform(size=200), "price": rng.uniform(size=200)})
    rows = dict(
        report_rows.model_rows(RandomFeatureRidge(n_components=8).fit(frame, "price").report_)
    )
    assert rows["training rmse"].endswith(", in units of price")
    assert "errors of small fits, in standard deviations: " in rows["choice of kernel"]
