"""What all commands share: how they speak, to whom, and how they end."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib.metadata import entry_points
from pathlib import Path
from unittest.mock import Mock

import h5py
import numpy as np
import psutil
import pytest
from commandline import contents, invoke, write
from rows_read import store

from streamkern._version import __version__
from streamkern.cli import COMMANDS, main
from streamkern.estimators.problems import Regression

pytestmark = pytest.mark.usefixtures("all_files")

SCRIPT = Path(sys.executable).with_name("streamkern")
FIT = ("fit", "data.h5", "--out", "out.h5", "--components", "32", "--kernel", "gaussian")
NOTED = (*FIT, "--alpha", "1e-12", "--length-scale", "10", "--quiet")
RUNS = {
    "fit": FIT,
    "predict": ("predict", "model.h5", "data.h5", "--out", "out.h5"),
    "evaluate": ("evaluate", "model.h5", "data.h5"),
    "compare": (
        *("compare", "data.h5", "--out", "found"),
        *("--components", "8", "--maps", "iid", "--seeds", "1"),
    ),
    "show": ("show", "model.h5"),
    "inspect": ("inspect", "data.h5"),
    "convert": ("convert", "table.csv", "out.h5", "--target", "y"),
    "moments": ("moments", *FIT[1:]),
    "merge": ("merge", "A.h5", "B.h5", "--out", "out.h5"),
    "forget": ("forget", "A.h5", "some.h5"),
    "solve": ("solve", "A.h5", "--out", "out.h5"),
}


def large(path, n=100_000, p=3):
    X = np.random.default_rng(0).standard_normal((n, p), dtype=np.float32)
    store(path, X, np.sin(X[:, 0]), chunks=(4096, p))


def strictly(text):
    """A text as JSON, which has no numbers that are not finite."""
    return json.loads(text, parse_constant=lambda text: pytest.fail(f"{text} is not JSON"))


def program(words):
    """Run a command in a process of its own, as a shell does."""
    code = f"'{sys.executable}' -c 'from streamkern.cli import main; main()' {words}"
    return subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", list(RUNS))
def test_json_is_one_line_for_programs_and_text_is_for_people(command, made):
    result = invoke(*RUNS[command], "--json", "--quiet")
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    (line,) = result.stdout.splitlines()
    assert isinstance(strictly(line), dict)
    again = ("--force",) if {"out.h5", "found"} & {*RUNS[command]} else ()
    Path("A.h5").write_bytes(made["A.h5"])  # of which rows were forgotten
    result = invoke(*RUNS[command], *again, "--quiet")
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    assert result.stdout.strip()
    with pytest.raises(ValueError, match=r"Expecting value|Extra data"):
        json.loads(result.stdout.splitlines()[-1])


def test_a_figure_that_is_not_finite_is_null_and_no_failure():
    write("few.h5", np.random.default_rng(0).standard_normal((5, 200)), np.arange(5.0))
    few = ("--components", 64, "--json", "--quiet")
    runs = [
        ("fit", "few.h5", "--out", "few_model.h5", "--alpha", "1e-300", *few),
        ("show", "few_model.h5", "--json"),
        ("moments", "few.h5", "--out", "few_moments.h5", *few),
        ("solve", "few_moments.h5", "--out", "solved.h5", "--alpha", "1e-300", "--json"),
    ]
    results = [invoke(*words) for words in runs]
    assert [result.exit_code for result in results] == [0] * len(runs)
    fitted, shown, _, solved = [strictly(result.stdout.splitlines()[-1]) for result in results]
    assert fitted["noise"] is shown["report"]["noise"] is solved["noise"] is None
    with h5py.File("few_model.h5") as file:
        assert strictly(file["card"][()])["report"]["noise"] is None
    assert invoke("show", "few_model.h5").exit_code == 0


PASSES = {"fit": ["columns", "moments"], "predict": ["predict"], "evaluate": ["evaluate"]}


@pytest.mark.parametrize("command", list(PASSES))
def test_progress_is_on_standard_error_and_a_json_log_is_json_to_the_last_line(
    command, monkeypatch
):
    for module in ("jobs", "log_lines"):  # what is over at once too
        monkeypatch.setattr(f"streamkern.monitor.{module}.SHORT", 0)
    done = invoke(*RUNS[command])
    for label in PASSES[command]:
        assert f"{label} done in" in done.stderr
        assert f"{label} done in" not in done.stdout
    assert "300 rows" in done.stderr
    Path("out.h5").unlink(missing_ok=True)
    result = invoke(*RUNS[command], "--log-json", "--json")
    assert result.exit_code == 0
    events = [json.loads(line) for line in result.stderr.splitlines()]
    assert [each["label"] for each in events if each["event"] == "pass begun"] == PASSES[command]
    last = events[-1]
    assert (last["event"], last["error"], last["name"].split()[0]) == ("job ended", None, command)
    assert len(result.stdout.splitlines()) == 1


def test_notes_and_errors_are_json_where_the_log_is():
    (note,) = map(json.loads, invoke(*NOTED, "--log-json").stderr.splitlines())
    assert note["event"] == "note"
    assert "below the precision floor" in note["text"]
    failed = invoke("show", "absent.h5", "--log-json")
    assert failed.exit_code == 1
    (error,) = map(json.loads, failed.stderr.splitlines())
    assert error["event"] == "error"
    assert error["text"].startswith("absent.h5 ")


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_notes_are_on_standard_error_even_of_quiet_commands(options):
    result = invoke(*NOTED, *options)
    assert (result.exit_code, result.stderr.count("\n")) == (0, 1)
    assert re.match("note: .* below the precision floor", result.stderr)
    assert "note:" not in result.stdout


def test_debug_shows_the_traceback_and_the_sentence():
    plain, debug = (invoke("show", "absent.h5", *more) for more in ((), ("--debug",)))
    assert plain.exit_code == debug.exit_code == 1
    assert "Traceback" not in plain.stderr
    assert "Traceback (most recent call last)" in debug.stderr
    assert "ModelFileError" in debug.stderr
    assert debug.stderr.endswith(plain.stderr)


def test_the_program_tells_its_version_and_every_command_with_its_help():
    assert invoke("--version").stdout.strip().endswith(__version__)
    result = invoke("--help")
    assert result.exit_code == 0
    assert "\n  streamkern fit houses.csv --target price --out model.h5\n" in result.stdout
    said = " ".join(result.stdout.split())
    assert all(f"{command} {text}" in said for command, text in COMMANDS.items())


UNEXPECTED = {
    ZeroDivisionError("no such luck"): "unexpected ZeroDivisionError (no such luck); run again",
    MemoryError(): "out of memory; take fewer components",
}


@pytest.mark.parametrize("error", UNEXPECTED, ids=repr)
def test_an_error_that_nobody_thought_of_is_one_sentence_too(folder, monkeypatch, error):
    before = contents(folder)
    monkeypatch.setattr(Regression, "fit", Mock(side_effect=error))
    result = invoke(*FIT, "--quiet")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {UNEXPECTED[error]}")
    assert "Traceback" not in result.stderr
    assert "Traceback" in invoke(*FIT, "--quiet", "--debug").stderr
    assert contents(folder) == before


@pytest.mark.parametrize("command", ["inspect", "fit", "predict"])
def test_names_in_files_give_a_terminal_no_orders(command):
    name = "\x1b]0;owned\x07\x1b[31m[bold red]X\r\n"
    write("data.h5", np.ones((5, 2)), np.ones(5), x_name=name)
    said = invoke(*RUNS[command]).output
    assert "[bold red]X" in said
    assert "\\x1b]0;owned" in said
    assert not {"\x1b", "\x07", "\r"} & set(said)


def open_in(process, path):
    """Whether a process, or a child of it, has a file open."""
    try:
        family = [process, *process.children(recursive=True)]
        return any(str(path) in [file.path for file in one.open_files()] for one in family)
    except psutil.Error:
        return False


@pytest.mark.parametrize("place", [(), pytest.param(("--workers", "2"), marks=pytest.mark.cluster)])
def test_a_fit_is_interrupted_with_one_sentence_and_nothing_left_behind(folder, place):
    large("large.h5", n=400_000, p=20)
    before = contents(folder)
    process = subprocess.Popen(
        [SCRIPT, "fit", "large.h5", "--out", "out.h5", "--kernel", "gaussian", "--quiet", *place],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    watched = psutil.Process(process.pid)
    deadline, seen = time.monotonic() + 60, 0
    while seen < 5:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        seen += open_in(watched, folder / "large.h5")
        time.sleep(0.05)
    family = watched.children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)  # every process there is gets Ctrl-C
    said = process.communicate(timeout=30)
    _, alive = psutil.wait_procs(family, timeout=10)
    for one in alive:
        one.kill()
    assert (process.returncode, alive) == (130, [])
    assert said == ("", "Error: interrupted; the output was not written.\n")
    assert contents(folder) == before


def test_the_commands_are_those_of_dask_streamkern_too():
    for group in ("dask_cli", "console_scripts"):
        (program,) = entry_points(group=group, name="streamkern")
        assert program.load() is main


@pytest.mark.parametrize("end", [">&- 2>&- <&-", "| true"])
def test_closed_streams_and_a_reader_that_has_enough_are_no_error_to_speak_of(end):
    done = program(f"fit data.h5 --out new.h5 --components 32 --kernel gaussian --json {end}")
    assert done.returncode == 0
    assert "Error" not in done.stderr
    assert h5py.is_hdf5("new.h5")


def test_output_that_nobody_can_take_is_one_sentence():
    done = program("show model.h5 > /dev/full")
    assert done.returncode == 1
    assert "prints cannot be written (No space left on device); send it elsewhere" in done.stderr
