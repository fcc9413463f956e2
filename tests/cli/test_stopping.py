"""Ctrl-C, SIGTERM and SIGKILL at any moment: nothing is left behind, and a checkpoint goes on."""

from __future__ import annotations

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
from conftest import wait_until

from streamkern.cli import main
from streamkern.cli.console import command as made
from streamkern.runtime.signals import Stopped, end_at_once, stoppable, stopping
from streamkern.storage import hdf5_files

STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}
N = 400_000


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("stopping") / "data.h5"
    with h5py.File(path, "w") as file:
        X = rng.standard_normal((N, 8), dtype=np.float32)
        file.create_dataset("X", data=X, chunks=(4096, 8))
        file["y"] = np.sin(X[:, 0])
    return path


def command(data, out, *options):
    return [
        Path(sys.executable).with_name("streamkern"),
        "fit",
        data,
        "--out",
        out,
        "--components",
        "256",
        *options,
    ]


@pytest.fixture(scope="module")
def quiet(data, tmp_path_factory):
    """The coefficients of a fit that nobody stopped."""
    out = tmp_path_factory.mktemp("quiet") / "model.h5"
    subprocess.run(command(data, out, "--quiet"), check=True, timeout=120)
    with h5py.File(out) as file:
        return file["coef"][()]


def stopped(arguments, saved, number, seconds):
    """Start a command, send it a signal some seconds after it saved sums, and return its end."""
    before = set(saved.rglob("*.h5"))
    process = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path.home()
    )
    try:
        wait_until(
            lambda: process.poll() is not None or {*saved.rglob("*.h5")} - before, "saved sums"
        )
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(number)
    said = process.communicate(timeout=60)
    return process.returncode, *said


@pytest.mark.slow
@pytest.mark.parametrize("number", list(STATUS), ids=[number.name for number in STATUS])
def test_a_stopped_fit_goes_on_from_its_checkpoint(data, quiet, tmp_path, number):
    moments = random.Random(int(number))  # noqa: S311  not for secrets
    out, saved = tmp_path / "model.h5", tmp_path / "saved"
    arguments = command(data, out, "--quiet", "--json", "--checkpoint", saved)
    n_stopped = 0
    for _ in range(4):
        status, _, errors = stopped(arguments, saved, number, moments.uniform(0.0, 0.2))
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
    arguments = command(data, tmp_path / "model.h5", "--workers", 2, "--quiet")
    process = subprocess.Popen([*map(str, arguments)], stderr=subprocess.PIPE, text=True)
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


@pytest.mark.slow
def test_a_second_signal_ends_the_program_at_once(data, tmp_path):
    code = (
        "import os, signal, time\n"
        "from streamkern.runtime.signals import stoppable\n"
        "with stoppable():\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT); time.sleep(60)\n"
        "    finally:\n"
        "        print('cleaning up', flush=True)\n"
        "        os.kill(os.getpid(), signal.SIGINT); time.sleep(60)\n"
    )
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=50
    )
    assert done.stdout == "cleaning up\n"
    assert done.returncode == 130
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_raises_and_the_usual_handlers_come_back(number):
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(number, signal.SIG_DFL)

    def stop():
        with stoppable():
            os.kill(os.getpid(), number)
            time.sleep(5)

    try:
        with pytest.raises(Stopped) as error:
            stop()
        assert error.value.exit_status == STATUS[number]
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def test_a_signal_that_is_ignored_stays_ignored():
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stoppable():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, usual)


def test_a_signal_that_is_ignored_does_not_end_the_program_at_once_either():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        end_at_once()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is not before[signal.SIGTERM]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_stoppable(code):
    """What a program prints that runs code where signals raise."""
    program = (
        "import gc, os, signal, time\n"
        "from streamkern.runtime.signals import Stopped, held, stoppable\n"
        "try:\n"
        "    with stoppable():\n"
        f"        {code}\n"
        "        time.sleep(10)\n"
        "        print('went on')\n"
        "except Stopped as error:\n"
        "    print('stopped by', error.exit_status - 128)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    return done.stdout + done.stderr


def test_a_signal_waits_until_what_must_not_be_half_done_is_done():
    code = (
        "with held():\n            os.kill(os.getpid(), signal.SIGTERM)\n            print('done')"
    )
    assert run_stoppable(code) == "done\nstopped by 15\n"


def test_a_second_signal_does_not_wait():
    code = (
        "try:\n"
        "            os.kill(os.getpid(), 15)\n"
        "        finally:\n"
        "            with held():\n"
        "                os.kill(os.getpid(), 15); time.sleep(5); print('late')"
    )
    assert run_stoppable(code) == ""


def test_a_signal_is_not_lost_in_a_callback_of_a_weak_reference():
    code = (
        "import weakref\n"
        "        class Thing: pass\n"
        "        thing = Thing()\n"
        "        seen = weakref.ref(thing, lambda _: os.kill(os.getpid(), 15))\n"
        "        del thing"
    )
    assert run_stoppable(code) == "stopped by 15\n"


def test_a_signal_while_a_pool_starts_a_thread_leaves_none_that_nobody_ends():
    code = """
import os, signal, weakref
from concurrent.futures import ThreadPoolExecutor, thread
from streamkern.runtime.signals import Stopped, stoppable

class Interrupted(weakref.WeakKeyDictionary):
    def __setitem__(self, key, value):
        os.kill(os.getpid(), signal.SIGTERM)
        super().__setitem__(key, value)

thread._threads_queues = Interrupted()
pool = ThreadPoolExecutor(1)
try:
    with stoppable():
        pool.submit(int)
        signal.pause()
except Stopped:
    print("stopped")
"""
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True
    )
    assert process.stdout == "stopped\n"


def test_a_terminal_that_closes_ends_a_program_in_order():
    assert run_stoppable("os.kill(os.getpid(), signal.SIGHUP)") == "stopped by 1\n"


def test_ctrl_c_while_a_command_is_imported_is_one_sentence(monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib, "import_module", interrupted)
    done = CliRunner().invoke(main, ["show", "model.h5"])
    assert (done.exit_code, done.stderr) == (130, "Error: interrupted.\n")


@pytest.fixture
def usual_handlers():
    """Python's own handlers of signals, and those of the tests afterwards."""
    usual = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    stopping.clear()  # of which every thread of this process hears
    for number, handler in usual.items():
        signal.signal(number, handler)


@pytest.fixture
def while_hdf5_writes(monkeypatch):
    """Sends this process a signal in the middle of what HDF5 calls to write some bytes."""

    def send(number):
        def called(data):
            if next(calls) == 1:  # where HDF5 makes an error of its own of an exception
                os.kill(os.getpid(), number)
            return memoryview(data)

        calls = count()
        monkeypatch.setattr(hdf5_files, "memoryview", called, raising=False)

    return send


def write_and_wait(folder):
    with hdf5_files.new_hdf5(folder / "new.h5") as (file, _):
        file["x"] = np.zeros(1000)
        file.flush()
        time.sleep(20)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("usual_handlers")
def test_a_signal_while_hdf5_writes_is_heard_when_that_is_done(number, while_hdf5_writes, tmp_path):
    while_hdf5_writes(number)
    with pytest.raises(Stopped), stoppable():
        write_and_wait(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("usual_handlers")
def test_ctrl_c_in_a_program_of_ones_own_is_heard_when_hdf5_has_written(
    while_hdf5_writes, tmp_path
):
    while_hdf5_writes(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        write_and_wait(tmp_path)
    assert not list(tmp_path.iterdir())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("usual_handlers")
def test_a_signal_of_which_others_make_their_own_error_is_told_as_what_it_is(number):
    @made()
    def swallowing(**_):
        try:
            os.kill(os.getpid(), number)
            time.sleep(20)
        except KeyboardInterrupt as error:
            raise RuntimeError("of a library") from error

    done = CliRunner().invoke(swallowing)
    assert done.exit_code == STATUS[number]
    assert done.output.startswith("Error: interrupted; the output was not written")
