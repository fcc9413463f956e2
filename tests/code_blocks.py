"""Code blocks of Markdown pages, run in order, and the small files that the pages name.

Python blocks of a page share their names; shell blocks are run by `sh -e`.  A comment before a
block, `% not run: REASON` or `<!-- not run: REASON -->`, says why it cannot run on one machine.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from commandline import write

REPOSITORY = Path(__file__).parents[1]
SHELL = ("sh", "console")
_BLOCK = re.compile(
    r"^(?: *(?:% |<!-- )not run: (?P<reason>[^\n]+?)(?: -->)?\n+)?"
    r"(?P<indent> *)(?P<fence>`{3,})(?P<language>[^\n`]*)\n(?P<text>.*?)^(?P=indent)(?P=fence) *$",
    flags=re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    language: str
    text: str
    line: int
    reason: str | None  # why it is not run


def blocks_of(text):
    """Return the fenced blocks of a page, in order."""
    return [
        Block(
            found["language"].strip(),
            re.sub(rf"^{found['indent']}", "", found["text"], flags=re.MULTILINE),
            text[: found.start("fence")].count("\n") + 1,
            found["reason"],
        )
        for found in _BLOCK.finditer(text)
    ]


def commands(block):
    """Return the lines of a shell block as they are typed, without prompts and what is printed."""
    text = block.text
    if re.search(r"^\$ ", text, flags=re.MULTILINE):
        typed = re.findall(r"^\$ ((?:.*\\\n)*.*)", text, flags=re.MULTILINE)
        text = "\n".join(typed) + "\n"
    return text


def run_blocks(text, page, names):
    """Run the blocks of a page's text in the working folder, with these names in Python."""
    for block in blocks_of(text):
        place = f"{page}:{block.line}"
        if block.reason:
            continue
        if block.language == "python":
            code = "\n" * block.line + block.text
            exec(compile(code, place, "exec"), names)  # noqa: S102  pages of our own
        elif block.language in SHELL:
            _run_shell(commands(block), place)


def _run_shell(text, place):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-e", "-c", text],
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{place}\n{text}{done.stdout[-2000:]}{done.stderr[-4000:]}"


def make_files(folder):
    """Write the files that pages name: 300 rows of four inputs, houses with prices, people."""
    for seed, name in enumerate(("train", "train-1", "train-2", "day-1", "day-2", "day-3", "test")):
        X, y = rows(seed=seed)
        write(folder / f"{name}.h5", X, y, weights=np.linspace(0.5, 2, len(y)))
    X, y = rows(seed=9)
    write(folder / "field.h5", X[:, :2], y)
    wells = {"east": X[:, 0], "north": X[:, 1], "elevation": X[:, 2], "level": y + X[:, 2]}
    pd.DataFrame(wells).to_csv(folder / "wells.csv", index=False)
    write(folder / "targets.h5", X, X @ np.random.default_rng(0).standard_normal((4, 20)))
    for seed, name in enumerate(("houses", "table", "train", "test", "new")):
        table = houses(seed=seed)
        if name == "new":
            table = table.head(40).drop(columns="price")
        table.to_csv(folder / f"{name}.csv", index=False)
    houses().to_parquet(folder / "houses.parquet")
    for name, n in (("people", 300), ("more-people", 60)):
        people(n).to_csv(folder / f"{name}.csv", index=False)
    for name in ("jobs", "cluster.yaml", "tests"):
        (folder / name).symlink_to(REPOSITORY / name)


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)


def houses(n=300, seed=0):
    rng = np.random.default_rng(seed)
    area, town = rng.uniform(40, 200, n), rng.choice(["Bonn", "Essen", "Ulm"], n)
    sold = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1500, n), unit="D")
    price = 3000 * area * np.where(town == "Ulm", 1.2, 1) + 20000 * rng.standard_normal(n)
    rooms = np.where(rng.random(n) < 0.1, np.nan, np.round(area / 30))
    house = [f"H{seed}-{i:04}" for i in range(n)]
    columns = {"house": house, "area": area.round(1), "rooms": rooms, "town": town}
    return pd.DataFrame(columns | {"sold": sold.strftime("%Y-%m-%d"), "price": price.round()})


def people(n):
    rng = np.random.default_rng(n)
    age, town = rng.integers(18, 90, n), rng.choice(["Bonn", "Ulm"], n)
    income = np.where(age + 10 * rng.standard_normal(n) > 50, "high", "low")
    return pd.DataFrame({"age": age, "town": town, "income": income})


def copied_for(text, files, folder):
    """Copy the files into the folder of a page, without the outputs that its blocks make."""
    shutil.copytree(files, folder, dirs_exist_ok=True, symlinks=True)
    for block in blocks_of(text):
        if not block.reason:
            for path in re.findall(r"(?:--out[ =]|save\(\")([\w.-]+)", block.text):
                (folder / path).unlink(missing_ok=True)
