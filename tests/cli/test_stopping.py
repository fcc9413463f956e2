"""Ctrl-C, SIGTERM and SIGKILL at any moment: nothing is left behind, and a checkpoint goes on."""

import importlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import h5py
import numpy as np
import psutil
import pytest
from click.testing import CliRunner
from commandline import invoke
from conftest import wait_until
from rows_read import store

from streamkern.cli.console import command
from streamkern.cli.signals import Stopped, stoppable
from streamkern.storage import hdf5_files

STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}
N = 400_000


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("stopping") / "data.h5"
    X = np.random.default_rng(0).standard_normal((N, 8), dtype=np.float32)
    return store(path, X, np.sin(X[:, 0]), chunks=(4096, 8))


def fit(data, out, *options):
    program = Path(sys.executable).with_name("streamkern")
    words = (program, "fit", data, "--out", out, "--components", 256, "--quiet", *options)
    return list(map(str, words))


@pytest.fixture(scope="module")
def quiet(data, tmp_path_factory):
    """The coefficients of a fit that nobody stopped."""
    out = tmp_path_factory.mktemp("quiet") / "model.h5"
    subprocess.run(fit(data, out), check=True, timeout=120)
    with h5py.File(out) as file:
        return file["coef"][()]


def stopped(arguments, saved, number, seconds):
    """Start a command, send it a signal some seconds after it saved sums, and return its end."""
    before = set(saved.rglob("*.h5"))
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(
            lambda: process.poll() is not None or {*saved.rglob("*.h5")} - before, "saved sums"
        )
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


@pytest.mark.slow
@pytest.mark.parametrize("number", list(STATUS), ids=[number.name for number in STATUS])
def test_a_stopped_fit_goes_on_from_its_checkpoint(data, quiet, tmp_path, number):
    moments = random.Random(int(number))  # noqa: S311  not for secrets
    out, saved = tmp_path / "model.h5", tmp_path / "saved"
    arguments = fit(data, out, "--json", "--checkpoint", saved)
    n_stopped = 0
    for _ in range(4):
        status, errors = stopped(arguments, saved, number, moments.uniform(0.0, 0.2))
        assert "Traceback" not in errors
        if out.exists():
            break
        n_stopped += 1
        assert status == STATUS[number]
        if number != signal.SIGKILL:
            assert not list(tmp_path.rglob(".*.partial"))
            assert errors.startswith("Error: interrupted; the output was not written")
            assert f"go on from {saved}" in errors
    assert n_stopped
    if not out.exists():
        done = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=120)
        assert json.loads(done.stdout.splitlines()[-1])["rows"] == N
    with h5py.File(out) as file:
        assert np.array_equal(file["coef"][()], quiet)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 0.3, 0.6])
def test_ctrl_c_while_a_cluster_starts_is_heard(data, tmp_path, seconds):
    arguments = fit(data, tmp_path / "model.h5", "--workers", 2)
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
    wait_until(children := psutil.Process(process.pid).children, "a process that is started")
    started = children()
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.startswith("Error: interrupted")
    assert "Traceback" not in errors
    psutil.wait_procs(started, timeout=20)
    assert not any(each.is_running() for each in started)
    assert not list(tmp_path.iterdir())


def test_ctrl_c_while_a_command_is_imported_is_one_sentence(monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib, "import_module", interrupted)
    done = invoke("show", "model.h5")
    assert (done.exit_code, done.stderr) == (130, "Error: interrupted.\n")


@pytest.fixture
def write_and_wait(monkeypatch, tmp_path):
    """Writes a file; a signal is sent in the middle of what HDF5 calls to write some bytes."""

    def write(number):
        def called(data):
            if next(calls) == 1:  # where HDF5 makes an error of its own of an exception
                os.kill(os.getpid(), number)
            return memoryview(data)

        calls = count()
        monkeypatch.setattr(hdf5_files, "memoryview", called, raising=False)
        with hdf5_files.new_hdf5(tmp_path / "new.h5") as (file, _):
            file["x"] = np.zeros(1000)
            file.flush()
            time.sleep(20)

    return write


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("usual_handlers")
def test_a_signal_while_hdf5_writes_is_heard_when_that_is_done(number, write_and_wait, tmp_path):
    with pytest.raises(Stopped), stoppable():
        write_and_wait(number)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("usual_handlers")
def test_ctrl_c_in_a_program_of_ones_own_is_heard_when_hdf5_has_written(write_and_wait, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        write_and_wait(signal.SIGINT)
    assert not list(tmp_path.iterdir())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("usual_handlers")
def test_a_signal_of_which_others_make_their_own_error_is_told_as_what_it_is(number):
    @command()
    def swallowing(**_):
        try:
            os.kill(os.getpid(), number)
            time.sleep(20)
        except KeyboardInterrupt as error:
            raise RuntimeError("of a library") from error

    done = CliRunner().invoke(swallowing)
    assert done.exit_code == STATUS[number]
    assert done.output.startswith("Error: interrupted; the output was not written")
