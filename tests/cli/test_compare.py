"""`streamkern compare`."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from commandline import report_of, rows, streamkern, write

from streamkern.cli import main


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("data.h5", *rows())
    return tmp_path


COMPARE = ("compare", "data.h5", "--out", "found", "--components", "8,16,64")


def test_json_and_picture_are_written(folder):
    streamkern(*COMPARE)
    assert sorted(path.name for path in (folder / "found").iterdir()) == [
        "comparison.json",
        "comparison.png",
    ]
    assert (folder / "found/comparison.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_the_file_and_the_last_line_say_the_same():
    report = report_of(*COMPARE)
    with open("found/comparison.json") as file:  # noqa: PTH123
        stored = json.load(file)
    assert report == stored | {
        "json": "found/comparison.json",
        "picture": "found/comparison.png",
    }
    assert [trial["method"] for trial in stored["trials"]] == [
        "exact",
        "linear",
        *["random features"] * 3,
    ]
    assert [trial["n_components"] for trial in stored["trials"]] == [None, 3, 8, 16, 64]
    assert (stored["n_train"], stored["n_test"]) == (240, 60)


def test_people_see_a_line_a_model():
    output = streamkern(*COMPARE).stdout
    assert "240 rows fitted, 60 tested" in output
    lines = [line.split() for line in output.splitlines()]
    assert [line[0] for line in lines if line and line[0] in ("exact", "linear")] == [
        "exact",
        "linear",
    ]
    assert [line[2] for line in lines if line[:2] == ["random", "features"]] == ["8", "16", "64"]


def test_test_rows_may_be_given():
    write("test.h5", *rows(77, seed=1))
    report = report_of(*COMPARE, "--test", "test.h5")
    assert (report["n_train"], report["n_test"]) == (300, 77)


def test_options_reach_the_models():
    options = ("--kernel", "matern52", "--length-scale", "2.5", "--alpha", 3, "--rows", 50)
    report = report_of(*COMPARE, *options)
    assert report["kernel"] == {"name": "matern52", "length_scale": 2.5, "nu": 2.5}
    assert report["alpha"] == 3.0
    assert report["n_train"] == 50


@pytest.mark.parametrize("option", [("--seed", 3), ("--phase",), ("--map", "iid")])
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


@pytest.mark.parametrize("components", ["many", "8,,16", "", "8.5", "0", "7", "-8"])
def test_impossible_numbers_of_components_are_wrong_usage(folder, components):
    arguments = [*COMPARE[:-1], components]
    status, message = refused(*arguments)
    assert status == 2
    assert "components" in message
    assert not list(folder.glob("found/*"))


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
