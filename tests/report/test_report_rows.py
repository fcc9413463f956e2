"""Tables of words, from a report alone, and numbers as people write them."""

import numpy as np
import pytest

from streamkern import Gaussian, RandomFeatureClassifier, RandomFeatureRidge
from streamkern.choice.trials import ISOTROPIC
from streamkern.errors import StreamkernWarning
from streamkern.report import numbers, report_rows
from streamkern.report.numbers import number
from streamkern.report.trial_tables import frontier_table, tuning_table

NUMBERS = {"0": 0, "12,345": 12345, "1": 1.0, "0.01234": 0.01234, "1,235": 1234.5678, "10": 9.99996}
NUMBERS |= {"−3.25": -3.25, "2.5 × 10⁻⁷": 2.5e-7, "1 × 10²¹": 1e21, "0.001": 0.000999999}
NUMBERS |= {"infinite": float("inf"), "not a number": float("nan"), "not known": None}
NUMBERS |= {"0.5, 2": [0.5, 2], "1, 2, 3, 4, … (5)": [1.0, 2, 3, 4, 5]}
TIMES = {"0.00123 s": 0.00123, "12.3 s": 12.34, "100 s": 99.97, "119 s": 119.0}
TIMES |= {"3 min 0 s": 179.7, "59 min 59 s": 3599.0, "2 h 0 min": 7199.0, "25 h 0 min": 90000.0}


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


def test_figures_are_written_as_the_medium_has_them(report):
    rows = dict(report_rows.fit_rows(report | {"train_rmse": 1.25e-7}, number))
    assert rows["training rmse"] == "1.25 × 10⁻⁷"


def test_classes_are_told_by_their_rows_or_by_their_weights():
    X = np.random.default_rng(0).standard_normal((90, 2))
    y = np.repeat(["ash", "elm", "oak"], [50, 30, 10])
    for weight, name, value in (
        (None, "rows of each", "50, 30, 10"),
        ("balanced", "weights of classes", "0.6, 1, 3"),
    ):
        model = RandomFeatureClassifier(Gaussian(1.0), n_components=8, class_weight=weight)
        rows = dict(report_rows.class_rows(model.fit(X, y).report_))
        assert rows["classes"] == "3: ash, elm, oak"
        assert rows[name] == value
        assert rows["calibration"] == "spline"


def test_the_best_of_every_size_has_a_star_and_what_is_dominated_is_left_out():
    tried = [
        {"metric": ISOTROPIC, "feature_map": "iid", "kernel": k, "length_scale": 1.5}
        | {"n_components": D}
        | errors
        for k, D, errors in (
            ("gaussian", 64, {"relative_mse": 0.25}),
            ("laplacian", 64, {"relative_mse": 0.36}),
            ("gaussian", 128, {"relative_mse": 0.16}),
        )
    ]
    table = tuning_table({"tuning": tried})
    assert table.header == ("map", "kernel", "length scale", "D = 64", "D = 128")
    assert table.rows == [
        ("iid", "gaussian", "1.5", "0.5000*", "0.4000*"),
        ("iid", "laplacian", "1.5", "0.6000 ", ""),
    ]
    cost = {"seconds": 2.0, "passes": 0.5}
    best = [cost | each | {"is_best": j != 1, "is_chosen": j == 2} for j, each in enumerate(tried)]
    rows = frontier_table({"frontier": best}).rows
    assert [row[0] for row in rows] == ["", "chosen"]
    assert rows[1][1:] == ("iid", "gaussian", "1.5", "128", "0.4000", "2", "0.5")


@pytest.mark.parametrize(("expected", "value"), NUMBERS.items())
def test_a_number_has_four_digits_that_count(expected, value):
    assert numbers.number(value) == expected
    assert numbers.number(0.0) == "0"


@pytest.mark.parametrize(("expected", "value"), TIMES.items())
def test_a_time_is_said_in_units_of_its_size(expected, value):
    assert numbers.seconds(value) == expected


def test_a_noun_takes_an_s_but_for_one_and_a_share_is_in_per_cent():
    assert [numbers.counted(n, "row") for n in (0, 1, 2000)] == ["0 rows", "1 row", "2,000 rows"]
    assert (numbers.percent(0.12345), numbers.percent(-0.5, 0)) == ("12.3%", "−50%")
