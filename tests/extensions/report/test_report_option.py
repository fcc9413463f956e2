"""`--report`: written by the commands that make models, beside the model and never in its place."""

import os
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
from commandline import invoke, rows, small_files, streamkern, unchanged_by, write
from pages import Page

from streamkern import load
from streamkern.cli.saving import quoted

pytestmark = pytest.mark.usefixtures("folder")

FIT = ("fit", "data.h5", "--out", "model.h5", "--components", 32, "--kernel", "gaussian")
REPORT = ("--report", "report.html", "--quiet")


def page(path="report.html"):
    return Page(Path(path).read_text(encoding="utf-8"))


def command_of(found):
    (command,) = [words for words in found.words if words.startswith("streamkern ")]
    return command


def test_a_report_stands_beside_the_same_model_as_without():
    streamkern(*FIT, "--quiet")
    alone = load("model.h5")
    streamkern(*FIT, *REPORT, "--force")
    model, found = load("model.h5"), page()
    assert np.array_equal(model.coef_, alone.coef_)
    assert found.value_of("rows x inputs") == "300 x 3"
    assert "Every row is predicted by the model that was fitted without its fold" in found.text
    assert found.all("h1")
    assert "model.h5" in found.text


@pytest.mark.parametrize("command", ["fit", "moments"])
def test_what_is_written_names_files_without_their_folders(folder, command):
    wanted, data, out = folder / "secret", folder / "secret" / "data.h5", folder / "model.h5"
    wanted.mkdir()
    write(data, *rows())
    report = ("--report", folder / "report.html", "--quiet")
    made = (data, "--components", 32)
    if command == "moments":
        streamkern("moments", *made, "--out", folder / "m.h5", "--quiet")
        streamkern("solve", folder / "m.h5", "--out", out, *report)
        solve = "streamkern solve --out model.h5 --report report.html --quiet m.h5"
        assert command_of(page(folder / "report.html")) == solve
    else:
        streamkern(command, *made, "--out", out, *report)
    written = [path for path in folder.rglob("*") if path.is_file() and wanted not in path.parents]
    for path in written:
        content = path.read_bytes()
        if path.name == "data.h5":
            continue
        assert b"data.h5" in content
        assert bytes(folder) not in content
    assert len(written) == {"fit": 3, "moments": 4}[command]


def test_the_command_makes_the_same_model_again(folder):
    odd = folder / 'it\'s a $HOME `x` "y"\nz\\.h5'
    (folder / "data.h5").rename(odd)
    with h5py.File(odd, "a") as file:
        file.move("X", "in puts")
    given = ("--x", "in puts", "--alpha", "0.1,1", "--no-intercept", "--precision", "double")
    streamkern("fit", odd.name, *FIT[2:], *given, *REPORT)
    first, command = load("model.h5"), command_of(page())
    Path("model.h5").unlink()
    Path("report.html").unlink()
    assert command.isprintable()
    read = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, check=True
    )
    program, *words, _ = read.stdout.decode().split("\0")
    assert program == "streamkern"
    streamkern(*words)
    again = load("model.h5")
    assert np.array_equal(again.coef_, first.coef_)
    assert again.get_params() == first.get_params()


def test_a_shell_reads_a_quoted_word_as_it_was():
    words = ["a b", "it's", "$x", "é", "a\nb", "\t'\\", "\x1b[31m", "-x", "", "caf\udce9"]
    script = f"printf '%s\\0' {' '.join(map(quoted, words))}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    assert done.stdout == b"".join(os.fsencode(word) + b"\0" for word in words)
    assert script.isprintable()


def test_a_file_whose_name_begins_with_a_dash_is_no_option(folder):
    (folder / "data.h5").rename("-data.h5")
    streamkern(*("fit", "--out", "model.h5", "--components", 32, *REPORT), "--", "-data.h5")
    assert command_of(page()).endswith(" -- -data.h5")


@pytest.mark.usefixtures("no_reading")
@pytest.mark.parametrize(
    ("report", "status", "said"),
    [
        ("model.h5", 2, "--out and --report are both model.h5; name two files."),
        ("old.html", 1, "old.html exists already; give --force to replace it"),
        ("none/report.html", 1, "none does not exist; make it, or write elsewhere"),
        ("data.h5", 1, "is an input of this job"),
        (".", 1, "is a folder"),
    ],
)
def test_a_report_that_cannot_be_written_is_refused_before_rows_are_read(
    folder, report, status, said
):
    (folder / "old.html").write_text("old")
    assert said in unchanged_by(folder, *FIT, "--report", report, "--quiet", status=status)


def test_a_report_that_fails_leaves_the_model_and_says_so(folder):
    streamkern(*FIT, "--quiet")
    size = (folder / "model.h5").stat().st_size
    (folder / "model.h5").unlink()
    with small_files(size + 1000):
        result = invoke(*FIT, *REPORT)
    assert result.exit_code == 1
    note, error = result.stderr.strip().splitlines()
    assert note == "note: the model is saved in model.h5; only the report is missing."
    assert "report.html cannot be written: the disk or quota is full" in error
    assert load("model.h5").report_["rows"] == 300
    assert sorted(path.name for path in folder.iterdir()) == ["data.h5", "model.h5"]
