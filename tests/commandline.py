"""The command line in this process, on small files."""

import json
import os
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
from click.testing import CliRunner
from rows_read import skip_without_extension

from streamkern.cli import main

REPOSITORY = Path(__file__).parents[1]


def streamkern(*arguments):
    """Run a command that must succeed."""
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result


def invoke(*arguments):
    """Run a command, whatever comes of it."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    skip_without_extension(result.output)
    return result


def refused(*arguments, status=1):
    """The one sentence that a command refuses its arguments with, and nothing else.

    The status is one, or any of several.
    """
    result = invoke(*arguments)
    assert result.exit_code in np.atleast_1d(status), result.output
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.stdout == ""
    assert result.stderr.count("Error: ") == 1
    assert "Traceback" not in result.stderr
    sentence = result.stderr[result.stderr.index("Error: ") :].strip()
    if "Usage:" not in result.stderr:
        assert "\n" not in sentence
        assert sentence.endswith(".")
    return sentence


def contents(folder):
    """Everything below a folder, hidden files and empty folders included."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def unchanged_by(folder, *arguments, status=1):
    """The one sentence that a command refuses its arguments with, having changed nothing."""
    before = contents(folder)
    sentence = refused(*arguments, status=status)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    assert contents(folder) == before
    return sentence


def program(folder, path, *arguments):
    """What a program of jobs/ or benchmarks/ says on standard output."""
    done = subprocess.run(
        [sys.executable, REPOSITORY / path, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "Warning" not in done.stderr
    return done.stdout


def report_of(*arguments):
    """The JSON object that a command ends with."""
    return json.loads(streamkern(*arguments, "--json", "--quiet").stdout.splitlines()[-1])


def rows(n=300, seed=0, q=None):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = np.stack([np.sin(X[:, 0]), 3 + X[:, 1] * X[:, 2]], axis=1)
    y = y[:, 0] if q is None else y[:, :q]
    return X, y + 0.1 * rng.standard_normal(y.shape)


def write(path, X, y=None, x_name="X", y_name="y", **others):
    given = {x_name: X, y_name: y, **others}
    arrays = {name: np.asarray(values) for name, values in given.items() if values is not None}
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file[name] = values.astype("S") if values.dtype.kind == "U" else values
    return path


@contextmanager
def without_privileges():
    """Be nobody for a while, since permissions do not hold for root."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def small_files(n_bytes=4_000):
    """Let no file grow beyond some size, as on a full disk or over a quota."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
