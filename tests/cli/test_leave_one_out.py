"""`streamkern evaluate --leave-one-out`."""

import numpy as np
import pytest
from commandline import report_of, rows, streamkern, write

from streamkern import load

pytestmark = pytest.mark.usefixtures("folder")

LEFT_OUT = ("evaluate", "model.h5", "train.h5", "--leave-one-out")


def fitted(*options, q=None, n=300):
    write("train.h5", *rows(n, q=q))
    small = ("--components", 32, "--kernel", "gaussian", "--quiet")
    streamkern("fit", "train.h5", "--out", "model.h5", *small, *options)
    return load("model.h5")


def test_people_see_the_errors_and_the_rows():
    model = fitted()
    found = report_of(*LEFT_OUT, 5)
    output = streamkern(*LEFT_OUT, 5, "--quiet").stdout
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
    found = report_of(*LEFT_OUT, 2)
    assert (found["loo_rmse"], found["rows_of_leverage_one"]) == (None, 4)
    assert "none" in streamkern(*LEFT_OUT, 2, "--quiet").stdout
