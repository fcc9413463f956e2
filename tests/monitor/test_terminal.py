"""A few lines on a terminal that are written anew, and nothing where nobody had to wait."""

import io
import os
import pty
import re
import subprocess
import sys

import numpy as np
import pytest
from commandline import write
from monitor.events import Story
from rich.console import Console

from streamkern.monitor.terminal import LiveLines


def shown(story, width=120):
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(LiveLines(story.jobs).lines())
    return console.export_text().splitlines()


def test_a_job_has_a_line_a_pass_and_three_of_details():
    story = Story()
    story.begin()
    story.begin_pass("short", "s", row_flops=0.0)
    story.shard(0, after=0.5, number="s")
    assert "".join(shown(story)).strip() == ""
    story.tell("pass ended", error=None, **{"pass": "s"})
    story.begin_pass("columns", "c", row_flops=0.0)
    for shard in range(10):
        story.shard(shard, number="c")
    story.tell("pass ended", error=None, **{"pass": "c"})
    story.begin_pass()
    for shard in range(5):
        story.shard(shard, worker=f"tcp://{shard % 2}")
    story.validated(400, 0.25)
    lines = [re.sub(r"\s+", " ", line).strip() for line in shown(story)]
    assert lines[0] == "fit model.h5 moments 16 s"
    assert re.fullmatch(r"columns \S+ 100% 1,000 rows in 10 s", lines[1])
    assert re.fullmatch(r"moments \S+ ?\S* 50% 500 of 1,000 rows 5\.0 s left", lines[2])
    assert lines[3:] == [
        "2 workers · 100 rows/s, 0.04 MB/s · 200 GFLOP/s, 25% of products alone",
        "waiting 10%, features 20%, products 70% · 500 MB of 1 GB planned",
        "shards: 5 done · error of a model of the 512 leading features so far 0.25, after 400 rows",
    ]


def test_a_job_that_ended_is_left_above_once_with_what_was_found():
    story = Story(LiveLines)
    story.view.console = Console(width=120, file=io.StringIO(), record=True)
    for number in ("j", "k"):
        story.begin(f"fit {number}", number)
        story.begin_pass(number=f"p{number}", job=number)
        story.shard(0, after=2.0, number=f"p{number}")
        story.tell("pass ended", error=None, **{"pass": f"p{number}"})
        story.solve(number)
        story.end(number=number)
    left = story.view.console.export_text()
    assert re.findall(r"fit \w  done", left) == ["fit j  done", "fit k  done"]
    assert left.count("solved in 2.0 s, alpha 1, cross-validated RMSE 0.25") == 2
    assert "".join(shown(story)).strip() == ""


def test_a_long_name_breaks_no_line_and_a_hostile_one_does_not_steer_the_terminal():
    story = Story()
    story.begin("fit \x1b[2J[red]a[/red]\n.h5 that is far longer than this terminal is wide")
    story.begin_pass()
    story.shard(0, after=3.0)
    lines = shown(story, width=40)
    assert len(lines) <= 6
    assert lines[0].startswith("fit \\x1b[2J[red]a[/red]\\n.h5")


@pytest.fixture
def data(tmp_path):
    X = np.random.default_rng(0).standard_normal((50_000, 8)).astype(np.float32)
    return write(tmp_path / "data.h5", X, X[:, 0])


SLOWLY = """
import time
from streamkern.cli import main
from streamkern.sources.shard_reader import HDF5Reader

usual = HDF5Reader.blocks

def blocks(reader, n_rows):
    time.sleep(0.2)
    yield from usual(reader, n_rows)

HDF5Reader.blocks = blocks
main()
"""


def on_a_terminal(*arguments, cwd):
    """Return what a command writes to standard error, where that is a terminal, and to output.

    It waits before every shard, so that it is watched for as long on any machine.
    """
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", SLOWLY, *arguments]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=theirs, cwd=cwd, env=environment
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            found = os.read(ours, 4096)
        except OSError:
            break
        if not found:
            break
        said += found
    output, _ = process.communicate(timeout=60)
    os.close(ours)
    assert process.returncode == 0, said
    return said.decode(), output.decode()


def test_a_fit_on_a_terminal_is_shown_while_it_runs_and_then_left_there(data):
    fit = ("fit", data.name, "--out", "model.h5", "--alpha", "1", "--json", "--components", "16")
    said, output = on_a_terminal(*fit, cwd=data.parent)
    assert "fit model.h5" in said
    assert "\x1b[" in said  # lines are written anew
    assert len(re.findall("left", said)) >= 2
    assert re.search(r"moments.* left", said)
    assert re.search(r"moments.*100%.*50,000 rows.*in ", said)
    assert len(output.splitlines()) == 1
    quiet, _ = on_a_terminal(*fit, "--quiet", "--force", cwd=data.parent)
    assert quiet == ""
