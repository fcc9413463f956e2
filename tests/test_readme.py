"""The examples of the README run as they are written."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import h5py
import numpy as np
import pytest
from commandline import write

README = (Path(__file__).parents[1] / "README.md").read_text()
# Examples in Python, by the line before them.
PYTHON = dict(re.findall(r"([^\n]*)\n\n```python\n(.*?)```", README, flags=re.DOTALL))
QUICK = (
    "With HDF5 files, more than memory holds:",
    "With NumPy arrays, pandas or polars frames:",
    "With Dask arrays or data frames, which stay lazy:",
    "With labels instead of numbers:",
)
ON_THE_COMMAND_LINE = (
    "On the command line, from a table with text, dates and missing cells, or from HDF5:"
)


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)


def table(path, values, header):
    np.savetxt(path, values, delimiter=",", header=header, comments="")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("test.h5", *rows(100, seed=9))
    return tmp_path


def shell_block(heading):
    """The indented lines that follow a line of text."""
    after = README.split(f"\n{heading}\n", 1)[1].lstrip("\n")
    block = re.match(r"(?:    .*\n|\n(?=    ))+", after)
    return textwrap.dedent(block[0])


def test_there_is_something_to_run():
    assert PYTHON.keys() > set(QUICK)
    commands = [line.split()[:2] for line in shell_block(ON_THE_COMMAND_LINE).splitlines()]
    for name in ("convert", "fit", "evaluate", "predict"):
        assert ["streamkern", name] in commands


def run(heading):
    """What an example leaves behind, that began with 50 rows."""
    X, y = rows(50, seed=5)
    names = {"X": X, "y": y}
    exec(compile(PYTHON[heading], "README.md", "exec"), names)  # noqa: S102  our own README
    return names | {"given": (X, y)}


def test_the_quick_start_with_files_runs(folder):
    for i in (1, 2):
        write(f"train-{i}.h5", *rows(seed=i))
    names = run(QUICK[0])
    model, (X, y) = names["model"], names["given"]
    assert model.report_["rows"] == 800
    assert np.mean((model.predict(X) - y) ** 2) < 0.5 * y.var()
    with h5py.File("predictions.h5") as file:
        assert file["y_pred"].shape == (100,)


def test_the_quick_start_with_arrays_runs():
    names = run(QUICK[1])
    assert names["predictions"].shape == names["deviations"].shape == (50,)
    assert np.mean((names["predictions"] - names["y"]) ** 2) < 0.5 * names["y"].var()


def test_the_quick_start_with_dask_gives_what_arrays_give():
    lazy, plain = run(QUICK[2]), run(QUICK[1])
    np.testing.assert_allclose(lazy["predictions"], plain["predictions"], rtol=1e-6)


def test_the_quick_start_with_labels_runs():
    names = run(QUICK[3])
    assert set(names["model"].classes_) == {"dear", "cheap"}
    assert names["probabilities"].shape == (50, 2)
    assert names["model"].score(names["X"], names["labels"]) > 0.8


@pytest.mark.parametrize("heading", sorted(PYTHON.keys() - set(QUICK)))
def test_the_other_python_examples_run(heading):
    names = run(heading)
    X, _ = names["given"]
    assert names["scores"].shape == (50, 2)
    assert names["model"].report_["rows"] == 40
    np.testing.assert_array_equal(names["predictions"], names["model"].predict(X))


def on_the_command_line(block):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-e", "-c", block],
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_commands_run(folder):
    X, y = rows()
    table(Path("table.csv"), np.column_stack([X, y]), "a,b,c,d,price")
    table(Path("new.csv"), rows(30, seed=4)[0], "a,b,c,d")
    said = on_the_command_line(shell_block(ON_THE_COMMAND_LINE))
    assert "400 rows of 4 inputs" in said
    predictions = np.genfromtxt("predictions.csv", delimiter=",", names=True)["y_pred"]
    assert predictions.shape == (30,)
    assert np.isfinite(predictions).all()


def test_the_commands_for_labels_run(folder):
    rng = np.random.default_rng(0)
    for name, n in (("people", 300), ("more-people", 40)):
        ages, towns = rng.integers(18, 90, n), rng.choice(["Ulm", "Bonn"], n)
        lines = [f"{a},{t},{'high' if a > 50 else 'low'}" for a, t in zip(ages, towns, strict=True)]
        Path(f"{name}.csv").write_text("\n".join(["age,town,income", *lines]) + "\n")
    heading = (
        "seen: the moments of folds give those models, and one light pass counts their scores."
    )
    said = on_the_command_line(shell_block(heading))
    assert float(re.search(r"accuracy +([\d.]+)", said)[1]) > 0.9
    assert Path("predictions.csv").read_text().count("\n") == 41


def test_every_command_of_the_readme_exists():
    from streamkern.cli import COMMANDS

    named = set(re.findall(r"^    streamkern (\w+)", README, flags=re.MULTILINE))
    assert named
    assert named <= set(COMMANDS)


def test_nothing_is_left_to_fill_in():
    assert re.findall(r"\b[A-Z]+_TABLE\b|TODO|FIXME|XXX", README) == []


def test_files_and_folders_that_are_named_exist():
    root = Path(__file__).parents[1]
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (root / target).exists(), target
    for path in re.findall(r"`((?:streamkern|tests|jobs)/[\w/.]+)`", README):
        assert (root / path).exists(), path
