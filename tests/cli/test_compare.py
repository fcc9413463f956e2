"""`streamkern compare`."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from commandline import report_of, rows, streamkern, write

from streamkern.cli import main
from streamkern.cli.common_options import Say


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("data.h5", *rows())
    return tmp_path


COMPARE = ("compare", "data.h5", "--out", "found", "--components", "8,16,64", "--seeds", 2)


def test_json_and_pictures_are_written(folder):
    streamkern(*COMPARE)
    assert sorted(path.name for path in (folder / "found").iterdir()) == [
        "comparison.json",
        "comparison.png",
        "comparison.svg",
    ]
    assert (folder / "found/comparison.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert "<svg" in (folder / "found/comparison.svg").read_text()


def test_the_file_and_the_last_line_say_the_same():
    report = report_of(*COMPARE)
    with open("found/comparison.json") as file:  # noqa: PTH123
        stored = json.load(file)
    assert report == stored | {
        "json": "found/comparison.json",
        "picture": "found/comparison.png",
        "svg": "found/comparison.svg",
    }
    trials = stored["trials"]
    assert [trial["method"] for trial in trials] == ["exact", "linear", *["random features"] * 6]
    assert [trial["map"] for trial in trials[2:]] == [*["orthogonal"] * 3, *["iid"] * 3]
    assert [trial["n_components"] for trial in trials] == [None, 3, *[8, 16, 64] * 2]
    assert (stored["n_train"], stored["n_test"]) == (240, 60)


def test_the_json_has_the_keys_that_programs_read():
    report = report_of(*COMPARE)
    for trial in report["trials"]:
        assert set(trial) == {
            "method", "map", "n_components", "seeds", "test_rmse", "relative_rmse", "cv_rmse",
            "loo_rmse", "kernel_error", "interval", "alpha", "fit_seconds", "predict_seconds",
            "matrix_bytes", "runs",
        }  # fmt: skip
    exact, linear, first = report["trials"][:3]
    assert exact["loo_rmse"] > 0
    assert linear["cv_rmse"] > 0
    assert first["seeds"] == [0, 1]
    low, high = first["interval"]["kernel_error"]
    assert low < first["kernel_error"] < high
    assert report["alpha"] == "cv"
    assert "95% interval" in report["interval"]


def test_people_see_a_line_a_model():
    output = streamkern(*COMPARE, "--maps", "iid,orthogonal-phase").stdout
    assert "240 rows fitted, 60 tested" in output
    lines = [line.split() for line in output.splitlines()]
    assert len([line for line in lines if line[:1] == ["exact"] and "1.000" in line]) == 1
    for name in ("iid", "orthogonal-phase"):
        assert [line[1] for line in lines if line[:1] == [name]] == ["8", "16", "64"]
        assert all(line[3] == "\N{PLUS-MINUS SIGN}" for line in lines if line[:1] == [name])
    assert ["over", "kernel", "fit", "test", "matrix"] in lines
    assert "\\" not in output
    assert "leave-one-out rmse" in output
    assert "means over 2 seeds of the map, with the 95% intervals of the means (t)" in output


def test_a_table_that_is_wider_than_the_terminal_keeps_every_digit(capsys):
    cells = ("m" * 90, "1234567890" * 5)
    Say(as_json=False, quiet=True).table("Wide", [cells], header=("model", "number"))
    output = capsys.readouterr().out
    assert all(cell in output for cell in cells)


def test_one_seed_has_no_interval():
    output = streamkern(*COMPARE[:-1], 1).stdout
    assert "\N{PLUS-MINUS SIGN}" not in output
    assert "interval" not in output


def test_test_rows_may_be_given():
    write("test.h5", *rows(77, seed=1))
    report = report_of(*COMPARE, "--test", "test.h5")
    assert (report["n_train"], report["n_test"]) == (300, 77)


def test_options_reach_the_models():
    options = ("--kernel", "matern52", "--length-scale", "2.5", "--alpha", 3, "--rows", 50)
    report = report_of(*COMPARE, *options)
    assert report["kernel"] == {"name": "matern52", "length_scale": 2.5, "nu": 2.5}
    assert report["alpha"] == 3.0
    assert {trial["alpha"] for trial in report["trials"]} == {3.0}
    assert report["n_train"] == 50


def test_a_grid_of_penalties_is_chosen_from_by_every_model():
    report = report_of(*COMPARE, "--alpha", "0.01,1,100", "--folds", 3)
    assert report["alpha"] == [0.01, 1.0, 100.0]
    chosen = {run["alpha"] for trial in report["trials"] for run in trial["runs"]}
    assert chosen <= {0.01, 1.0, 100.0}


@pytest.mark.parametrize("option", [("--seed", 3), ("--maps", "orthogonal-phase,iid-phase")])
def test_options_of_the_map_change_the_features_and_not_the_exact_model(option):
    write("test.h5", *rows(77, seed=1))
    arguments = (*COMPARE, "--test", "test.h5", "--length-scale", 1, "--force")
    before, after = (
        [trial["test_rmse"] for trial in report_of(*arguments, *more)["trials"]]
        for more in ((), option)
    )
    assert before[0] == pytest.approx(after[0], rel=1e-9)
    assert all(one != other for one, other in zip(before[2:], after[2:], strict=True))


def refused(*arguments):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.stderr.count("Error: ") == 1
    return result.exit_code, result.stderr


def test_existing_results_are_kept_unless_forced(folder):
    streamkern(*COMPARE)
    (folder / "found/comparison.json").write_text("precious")
    assert refused(*COMPARE)[0] == 1
    assert (folder / "found/comparison.json").read_text() == "precious"
    streamkern(*COMPARE, "--force")
    json.loads((folder / "found/comparison.json").read_text())


@pytest.mark.parametrize("name", ["comparison.json", "comparison.png", "comparison.svg"])
def test_an_existing_result_is_found_out_before_the_work(folder, monkeypatch, name):
    (folder / "found").mkdir()
    (folder / "found" / name).write_text("precious")

    def compare_source(*arguments, **options):
        raise AssertionError("the work was begun")

    monkeypatch.setattr("streamkern.report.comparison", compare_source)
    status, message = refused(*COMPARE)
    assert (status, "exists already; give --force" in message) == (1, True)
    assert [path.name for path in (folder / "found").iterdir()] == [name]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("components", text) for text in ("many", "8,,16", "", "8.5", "0", "-8", "8,8")),
        *(("maps", text) for text in ("", "sobol", "iid,", "identity", "phase", "iid,iid")),
        *(("seeds", text) for text in ("0", "-1", "two")),
        *(("alpha", text) for text in ("much", "-1", "0,1", "1,1")),
        *(("folds", text) for text in ("1", "0", "some")),
        *(("length-scale", text) for text in ("0", "far")),
        ("kernel", "multiquadric"),
        ("seed", "-1"),
    ],
)
def test_impossible_options_are_wrong_usage_and_make_no_folder(folder, option, value):
    result = CliRunner().invoke(main, [*map(str, COMPARE), f"--{option}", value])
    assert result.exit_code == 2, result.output
    assert result.stderr.count("Error: ") == 1
    assert option.replace("-", "_") in result.stderr.replace("-", "_")
    assert not (folder / "found").exists()


def test_the_linear_kernel_is_wrong_usage():
    status, message = refused(*COMPARE, "--kernel", "linear")
    assert status == 2
    assert "linear kernel has no random features" in message


def test_a_folder_that_cannot_be_made_is_refused():
    status, message = refused("compare", "data.h5", "--out", "missing/found")
    assert status == 1
    assert "missing/found cannot be made" in message


def test_bad_rows_are_named():
    X, y = rows()
    X[17] = np.nan
    write("data.h5", X, y)
    status, message = refused(*COMPARE)
    assert status == 1
    assert "data.h5, row 17" in message
    assert report_of(*COMPARE, "--on-bad-rows", "skip")["n_train"] > 200


def test_a_missing_matplotlib_is_found_out_before_the_work(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, message = refused(*COMPARE)
    assert status == 2
    assert "install streamkern[plot]" in message
    assert not list(folder.glob("found/*"))
