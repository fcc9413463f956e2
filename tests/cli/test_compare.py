"""`streamkern compare`."""

import json
from pathlib import Path

import pytest
from commandline import refused, report_of, streamkern

from streamkern.cli.console import Console
from streamkern.registry import installed

pytestmark = pytest.mark.usefixtures("folder")

DRAWS = "report" in installed()
COMPARE = ("compare", "data.h5", "--out", "found", "--components", "8,16,64", "--seeds", 2)


def test_the_file_and_the_last_line_say_the_same():
    report = report_of(*COMPARE)
    stored = json.loads(Path("found/comparison.json").read_text())
    written = {"json": "json"} | ({"picture": "png", "svg": "svg"} if DRAWS else {})
    assert report == stored | {name: f"found/comparison.{end}" for name, end in written.items()}
    trials = stored["trials"]
    assert [trial["method"] for trial in trials] == ["exact", *["random features"] * 6]
    assert [trial["map"] for trial in trials[1:]] == [*["orthogonal"] * 3, *["iid"] * 3]
    assert [trial["n_components"] for trial in trials] == [None, *[8, 16, 64] * 2]
    assert (stored["n_train"], stored["n_test"]) == (240, 60)


def test_a_table_that_is_wider_than_the_terminal_keeps_every_digit(capsys):
    cells = ("m" * 90, "1234567890" * 5)
    Console(as_json=False, quiet=True).table("Wide", [cells], header=("model", "number"))
    output = capsys.readouterr().out
    assert all(cell in output for cell in cells)


def test_cells_are_shown_as_they_are_whatever_stands_in_them(capsys):
    cells = ("C:\\rows\\", "[bold]:smile:[/bold]")
    Console(as_json=False, quiet=True).table("A [title] \\", [cells])
    assert capsys.readouterr().out.split() == ["A", "[title]", "\\", *cells]


def test_options_reach_the_models():
    options = ("--kernel", "matern52", "--length-scale", "2.5", "--alpha", 3, "--rows", 50)
    report = report_of(*COMPARE, *options)
    assert report["kernel"] == {"name": "matern52", "length_scale": 2.5, "nu": 2.5}
    assert {report["alpha"], *(trial["alpha"] for trial in report["trials"])} == {3.0}
    assert (report["n_train"], report["n_test"]) == (50, 12)


@pytest.mark.parametrize("name", ["comparison.json", *["comparison.svg"] * DRAWS])
@pytest.mark.usefixtures("no_reading")
def test_an_existing_result_is_found_out_before_the_work(folder, name):
    (folder / "found").mkdir()
    (folder / "found" / name).write_text("precious")
    assert "exists already; give --force" in refused(*COMPARE)
    assert [path.name for path in (folder / "found").iterdir()] == [name]


def test_people_see_a_line_a_model():
    output = streamkern(*COMPARE, "--maps", "iid,orthogonal").stdout
    assert "240 rows fitted, 60 tested" in output
    lines = [line.split() for line in output.splitlines()]
    assert len([line for line in lines if line[:1] == ["exact"] and "1.000" in line]) == 1
    for name in ("iid", "orthogonal"):
        assert [line[1] for line in lines if line[:1] == [name]] == ["8", "16", "64"]
        assert all(line[3] == "\N{PLUS-MINUS SIGN}" for line in lines if line[:1] == [name])
    assert ["over", "kernel", "fit", "test", "matrix"] in lines
    assert "\\" not in output
    assert "leave-one-out rmse" in output
    assert "means over 2 seeds of the map, with the 95% intervals of the means (t)" in output
