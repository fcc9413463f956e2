"""The examples of the README run as they are written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import h5py
import numpy as np
import pytest

README = (Path(__file__).parents[1] / "README.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)


def write(path, X, y=None):
    with h5py.File(path, "w") as file:
        file["X"] = X
        if y is not None:
            file["y"] = y


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
    assert len(PYTHON) >= 1
    commands = [line.split()[:2] for line in shell_block("On the command line:").splitlines()]
    for name in ("convert", "fit", "evaluate", "predict"):
        assert ["streamkern", name] in commands


@pytest.mark.parametrize("number", range(len(PYTHON)))
def test_the_python_examples_run(number, folder):
    for i in (1, 2):
        write(f"train-{i}.h5", *rows(seed=i))
    X, y = rows(50, seed=5)
    names = {"X": X, "y": y}
    exec(compile(PYTHON[number], "README.md", "exec"), names)  # noqa: S102  our own README
    model = names["model"]
    assert model.report_["rows"] == 800
    assert np.mean((model.predict(X) - y) ** 2) < 0.5 * y.var()
    assert (folder / "model.h5").exists()


def test_the_commands_run(folder):
    X, y = rows()
    table(Path("table.csv"), np.column_stack([X, y]), "a,b,c,d,price")
    table(Path("new.csv"), rows(30, seed=4)[0], "a,b,c,d")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-e", "-c", shell_block("On the command line:")],
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "400 rows of 4 inputs" in done.stdout
    with h5py.File("predictions.h5") as file:
        assert file["y_pred"].shape == (30,)
        assert np.isfinite(file["y_pred"][:]).all()


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
