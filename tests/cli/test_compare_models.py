"""`streamkern compare-models`: cards side by side, what differs, and errors on the same rows."""

import numpy as np
import pytest
from commandline import refused, report_of, rows, streamkern, write
from pages import Page

pytestmark = pytest.mark.usefixtures("folder")


def fit(name, *options, data="data.h5"):
    small = ("--components", 32, "--kernel", "gaussian", "--quiet")
    streamkern("fit", data, "--out", name, *small, *options)


def test_models_stand_side_by_side_with_what_differs_and_errors_on_the_same_rows(folder):
    fit("one.h5", "--kernel", "gaussian")
    fit("two.h5", "--kernel", "matern32", "--alpha", 0.5)
    X, y = rows(n=80, seed=3)
    X[5] = np.nan
    write("test.h5", X, y)
    models = "one.h5", "two.h5"
    asked = "--data", "test.h5", "--on-bad-rows", "skip", "--report", "both.html"
    said = streamkern("compare-models", *models, *asked).stdout
    assert all(words in said for words in ("kernel ≠", "matern32", "penalty α ≠", "rmse"))
    assert "inputs ≠" not in said
    found = report_of("compare-models", *models, *asked, "--force")
    assert {"kernel", "alpha"} <= set(found["differs"])
    assert "rows" not in found["differs"]
    for name, each in zip(models, found["models"], strict=True):
        alone = report_of("evaluate", name, "test.h5", "--on-bad-rows", "skip")
        assert each["evaluation"] == alone
        assert each["kernel"] == ("gaussian" if name == "one.h5" else "matern32")
    page = Page((folder / "both.html").read_text(encoding="utf-8"))
    assert page.value_of("kernel ≠") == "gaussian"
    assert "Errors on test.h5" in page.text
    # The penalty of one model was chosen, and has a curve.
    assert len(page.all("figure")) == 1
    assert "one.h5" in page.words


def test_classifiers_are_compared_by_their_accuracy():
    X, y = rows()
    write("classes.h5", X, (y > 0).astype(int))
    for name in ("one.h5", "two.h5"):
        fit(name, "--classify", "--seed", len(name), data="classes.h5")
    found = report_of("compare-models", "one.h5", "two.h5", "--data", "classes.h5")
    assert found["models"][0]["evaluation"] == found["models"][1]["evaluation"]
    assert found["models"][0]["evaluation"]["accuracy"] > 0.8
    fit("number.h5")
    assert "must all be of numbers" in refused("compare-models", "one.h5", "number.h5", status=2)


def test_one_model_twice_and_a_page_that_exists_are_refused(folder):
    fit("one.h5")
    for models in (["one.h5"], ["one.h5", "one.h5"]):
        assert "is of two models or more" in refused("compare-models", *models, status=2)
    fit("two.h5")
    (folder / "both.html").write_text("precious")
    message = refused("compare-models", "one.h5", "two.h5", "--report", "both.html")
    assert "both.html exists already" in message
