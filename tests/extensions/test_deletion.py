"""An extension can be deleted: all else works, and who asks for it is told so in one sentence.

Each is deleted from a copy of the tree, with its tests and the page of its name.  `make extensions`
does this for all, and runs the core's tests without each.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commandline import rows, write

from streamkern import registry
from streamkern.features import FAMILIES
from streamkern.parameters.parameters import OPTIONS
from streamkern.registry import EXTENSIONS

ROOT = Path(__file__).parents[2]
TODAY = list(EXTENSIONS)[time.localtime().tm_yday % len(EXTENSIONS)]
IMPORT_ALL = """
import importlib, pkgutil, streamkern
for each in pkgutil.walk_packages(streamkern.__path__, "streamkern."):
    importlib.import_module(each.name)
"""
MISSING = "this installation of streamkern has no extension '{}'; install streamkern whole."


@pytest.fixture
def without(tmp_path):
    """A copy of the tree without an extension, and what runs a program there."""

    def deleted(name):
        for part in ("streamkern", "tests", "jobs", "benchmarks", "docs"):
            if (ROOT / part).is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "_build")
                shutil.copytree(ROOT / part, tmp_path / part, ignore=ignored)
        for each in ROOT.glob("*.*"):
            if each.is_file():
                shutil.copy(each, tmp_path)
        shutil.rmtree(tmp_path / "streamkern" / "extensions" / name)
        shutil.rmtree(tmp_path / "tests" / "extensions" / name)
        for page in tmp_path.glob(f"docs/*/{name}.md"):
            page.unlink()
        return tmp_path

    def run(*arguments):
        given = {"PYTHONPATH": str(tmp_path), "STREAMKERN_WITHOUT": "1"}
        words = [sys.executable, *map(str, arguments)]
        return subprocess.run(
            words, cwd=tmp_path, env=os.environ | given, capture_output=True, text=True, check=False
        )

    return deleted, run


def streamkern(run, *arguments):
    return run("-c", "from streamkern.cli import main; main()", *arguments)


def flags_of(options):
    """The flags of what adds options to a command."""

    def command(): ...

    for each in options:
        each(command)
    return {option.opts[0] for option in getattr(command, "__click_params__", ())}


def check_without(name, deleted, run):
    folder, extension = deleted(name), EXTENSIONS[name]
    assert run("-c", IMPORT_ALL).stderr == ""
    write(folder / "data.h5", *rows())
    fit = streamkern(run, "fit", "data.h5", "--out", "model.h5", "--components", "16")
    assert (fit.returncode, (folder / "model.h5").is_file()) == (0, True), fit.stderr
    listed = streamkern(run, "--help").stdout
    for command in extension.commands:
        assert f"  {command} " not in listed
        refused = streamkern(run, command, "data.h5", "--out", "other.h5")
        assert (refused.returncode, MISSING.format(name) in refused.stderr) == (2, True)
    for place, module in extension.options.items():
        command = {"rows of a model": "predict"}.get(place, place)
        command = "fit" if place in ("rows", "place", "report") else command
        flags = flags_of(registry.extension(name, module).OPTIONS[place])
        long = streamkern(run, command, "--help-all")
        helped = (long if long.returncode == 0 else streamkern(run, command, "--help")).stdout
        listed = {line.split()[0].rstrip(",") for line in helped.splitlines() if "--" in line}
        assert not flags & listed
        for flag in flags:
            refused = streamkern(run, command, "data.h5", "--out", "other.h5", flag, "1")
            assert (refused.returncode, f"has no extension {name!r}" in refused.stderr) == (2, True)
    for field in OPTIONS:
        if field.metadata["option"].extension == name:
            assert f"--{field.name}" not in streamkern(run, "fit", "--help-all").stdout
            refused = streamkern(run, "fit", "data.h5", "--out", "m.h5", f"--{field.name}", "1")
            assert (refused.returncode, MISSING.format(name) in refused.stderr) == (2, True)
    for each in extension.maps:
        refused = run("-c", f"from streamkern.features import MAPS; MAPS[{each!r}]")
        assert refused.stderr.endswith(f"MissingExtensionError: {MISSING.format(name)}\n")
    if map_name := next((each for each in extension.maps if each in FAMILIES), None):
        refused = streamkern(run, "fit", "data.h5", "--out", "other.h5", "--map", map_name)
        assert (refused.returncode, MISSING.format(name) in refused.stderr) == (2, True)
    for public in extension.names:
        refused = run("-c", f"import streamkern; streamkern.{public}")
        assert refused.stderr.endswith(f"MissingExtensionError: {MISSING.format(name)}\n")


def test_todays_extension_can_be_deleted(without):
    check_without(TODAY, *without)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXTENSIONS)
def test_every_extension_can_be_deleted_and_the_cores_tests_pass(name, without):
    check_without(name, *without)
    _, run = without
    core = ("tests", "--ignore=tests/extensions")
    tests = run("-m", "pytest", "-q", "-m", "not slow and not cluster", "-n", "2", *core)
    print(tests.stdout[-4000:])
    assert tests.returncode == 0
    counts = (re.search(rf"(\d+) {what}", tests.stdout) for what in ("passed", "skipped"))
    passed, skipped = (int(count[1]) if count else 0 for count in counts)
    assert passed > 4 * skipped  # what is skipped needs the extension
