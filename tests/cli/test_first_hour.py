"""What somebody meets who is new: help, near names, baselines, tables everywhere."""

import re
import socket
import time

import click
import pytest
from click.testing import CliRunner
from code_blocks import houses, people
from commandline import invoke, refused, report_of, streamkern, unchanged_by

from streamkern.cli import COMMANDS, main
from streamkern.cli.help_pages import GROUPS


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    for seed, name in enumerate(("houses", "test")):
        houses(120, seed).to_csv(folder / f"{name}.csv", index=False)
    houses(120).to_csv(folder / "semicolons.csv", index=False, sep=";")
    people(200).to_csv(folder / "people.csv", index=False)
    return folder


@pytest.fixture(autouse=True)
def in_tables(tables, monkeypatch):
    monkeypatch.chdir(tables)


SMALL = ("--components", "64", "--kernel", "gaussian", "--quiet", "--force")
FIT = ("fit", "houses.csv", "--target", "price", *SMALL)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_has_common_options_groups_and_an_example_that_is_this_command(name):
    command = main.get_command(click.Context(main), name)
    said = invoke(name, "--help-all" if command.has_many_options else "--help").stdout
    assert {"--json", "--quiet", "--debug"} <= set(said.split())
    assert streamkern(name, "--help").stdout == invoke(name, "-h").stdout
    assert not {"\\", "\b"} & set(said)  # no marks of its source
    if name != "demo":
        assert f"Examples:\n  streamkern {name} " in said
    headings = [line.rstrip(":") for line in said.splitlines() if line.endswith(":")]
    assert set(headings) & set(GROUPS)
    for line in getattr(command, "examples", ()):
        assert line.split()[:2] == ["streamkern", name]


@pytest.mark.parametrize("name", ["fit", "tune"])
def test_help_of_many_options_is_two_screens_and_says_how_to_see_all(name):
    said = CliRunner().invoke(main, [name, "--help"], terminal_width=80).stdout
    assert said.count("\n") <= 64
    every = invoke(name, "--help-all").stdout
    shown, known = ({w for w in t.split() if w.startswith("--")} for t in (said, every))
    assert "--help-all" in shown < known


@pytest.mark.parametrize(
    ("status", "arguments", "near"),
    [
        (2, ("fti", "houses.csv"), "did you mean 'fit'?"),
        (2, (*FIT, "--out", "x.h5", "--alhpa", "1"), "--alpha"),
        (2, (*FIT, "--out", "x.h5", "--kernel", "gausian"), "did you mean 'gaussian'?"),
        (2, (*FIT, "--out", "x.h5", "--map", "nystrom"), "did you mean 'nystroem'?"),
        (1, ("fit", "houses.csv", "--target", "prise", "--out", "x.h5"), "did you mean 'price'?"),
        (
            1,
            ("fit", "semicolons.csv", "--target", "price", "--out", "x.h5"),
            "give --delimiter, ';' if that",
        ),
    ],
)
def test_a_name_that_is_nearly_right_is_answered_with_the_right_one(status, arguments, near):
    assert near in " ".join(refused(*arguments, status=status).split())


def test_figures_stand_beside_those_of_saying_always_the_same():
    assert invoke(*FIT, "--out", "model.h5").exit_code == 0
    found = report_of("evaluate", "model.h5", "test.csv")
    spread = houses(120, 1)["price"].std(ddof=0)
    assert found["baseline"]["rmse"] == pytest.approx(spread, rel=1e-9)
    said = invoke("evaluate", "model.h5", "test.csv").output
    assert re.search(r"target +price", said)
    assert f"{spread:.6g}, by always saying the mean" in said


def test_a_classifier_says_its_accuracy_on_rows_left_out():
    arguments = ("people.csv", "--target", "income", "--classify", "--components", "64", "--quiet")
    fitted = report_of("fit", *arguments, "--out", "classes.h5")
    commonest = people(200)["income"].value_counts(normalize=True).iloc[0]
    assert commonest < fitted["cv_accuracy"] < 0.97
    found = report_of("evaluate", "classes.h5", "people.csv")
    assert found["baseline"]["accuracy"] == pytest.approx(commonest)
    said = invoke("show", "classes.h5").output
    assert f"{fitted['cv_accuracy']:.4f}, where the commonest class alone has {commonest:.4f}" in (
        " ".join(said.split())
    )


def test_a_table_is_inspected_without_a_conversion_of_ones_own():
    found = report_of("inspect", "houses.csv", "--target", "price", "--components", "64")
    assert found["fit"]["n_rows"] == 120
    said = invoke("inspect", "houses.csv").output
    assert re.search(r"town +3 categories\n", re.sub(r" +\n", "\n", said))
    assert re.search(r"house +left out: 120 values in 120 rows", said)
    assert "name the column of a target with --target" in said


def test_an_address_where_nobody_listens_is_told_in_seconds(tables):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    begun = time.monotonic()
    said = unchanged_by(tables, *FIT, "--out", "x.h5", "--scheduler", f"tcp://127.0.0.1:{port}")
    assert f"no Dask scheduler answers at tcp://127.0.0.1:{port}" in said
    assert time.monotonic() - begun < 15  # of which 3 are for a scheduler that is starting
