"""`streamkern diagnose`."""

import numpy as np
import pytest
from commandline import report_of, rows, streamkern, write

from streamkern import load, open_hdf5

pytestmark = pytest.mark.usefixtures("folder")


def fitted(*options, q=None, n=300):
    write("train.h5", *rows(n, q=q))
    small = ("--components", 32, "--kernel", "gaussian", "--quiet")
    streamkern("fit", "train.h5", "--out", "model.h5", *small, *options)
    return load("model.h5")


@pytest.mark.parametrize("q", [None, 1, 2])
def test_the_json_is_what_the_model_says(q):
    model = fitted(q=q)
    found = report_of("diagnose", "model.h5", "train.h5")
    assert found == model.diagnose(open_hdf5("train.h5"))
    assert found["rows"] == 300
    assert found["effective_dof"] == pytest.approx(model.report_["effective_dof"], rel=1e-3)
    assert np.shape(found["loo_rmse"]) == (() if q is None else (q,))


def test_people_see_the_errors_and_the_rows():
    model = fitted()
    found = report_of("diagnose", "model.h5", "train.h5")
    output = streamkern("diagnose", "model.h5", "train.h5", "--quiet").stdout
    assert "Leave-one-out on 300 rows" in output
    for name, value in (
        ("leave-one-out rmse", found["loo_rmse"]),
        ("training rmse", model.report_["train_rmse"]),
        ("cross-validated rmse", model.report_["cv_rmse"]),
    ):
        (line,) = [line for line in output.splitlines() if name in line]
        assert line.split()[-1] == f"{value:.5g}"
    for row in found["largest_leverages"] + found["largest_errors"]:
        assert row["place"] in output


def test_where_every_row_determines_its_prediction_there_is_no_error():
    rng = np.random.default_rng(0)
    write("train.h5", rng.standard_normal((4, 3)), rng.standard_normal(4))
    linear = ("--kernel", "linear", "--alpha", 0, "--precision", "double")
    streamkern("fit", "train.h5", "--out", "model.h5", "--quiet", *linear)
    found = report_of("diagnose", "model.h5", "train.h5")
    assert (found["loo_rmse"], found["rows_of_leverage_one"]) == (None, 4)
    assert "none" in streamkern("diagnose", "model.h5", "train.h5", "--quiet").stdout
