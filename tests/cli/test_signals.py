"""Signals that stop a program raise once, wait where they must, and end it at the second."""

import os
import signal
import time

import h5py
import numpy as np
import pytest
from rows_read import python

from streamkern.cli.signals import Stopped, end_at_once, stoppable

pytestmark = pytest.mark.usefixtures("usual_handlers")
HEAD = """
import gc, os, signal, time, weakref
from concurrent.futures import ThreadPoolExecutor, thread
from streamkern.cli.signals import Stopped, stoppable
from streamkern.runtime.stopping import held
"""


def run(code):
    """The exit status and the output of a program."""
    done = python(HEAD + code)
    return done.returncode, done.stdout + done.stderr


def run_stoppable(code):
    """What a program prints that runs lines where signals raise."""
    lines = "\n        ".join([*code.strip("\n").split("\n"), "time.sleep(10)", "print('went on')"])
    return run(f"""
try:
    with stoppable():
        {lines}
except Stopped as error:
    print('stopped by', error.exit_status - 128)
""")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_raises_and_the_usual_handlers_come_back(number, status):
    signal.signal(number, signal.SIG_DFL)

    def stop():
        with stoppable():
            os.kill(os.getpid(), number)
            time.sleep(5)

    with pytest.raises(Stopped) as error:
        stop()
    assert error.value.exit_status == status
    assert signal.getsignal(number) is signal.SIG_DFL


def test_a_signal_that_is_ignored_stays_ignored_and_does_not_end_the_program_at_once():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    usual = signal.getsignal(signal.SIGTERM)
    with stoppable():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        os.kill(os.getpid(), signal.SIGINT)
    end_at_once()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is not usual


def test_a_second_signal_ends_the_program_at_once():
    status, said = run_stoppable("""
try:
    os.kill(os.getpid(), signal.SIGINT); time.sleep(60)
finally:
    print('cleaning up', flush=True)
    with held():
        os.kill(os.getpid(), signal.SIGINT); time.sleep(5); print('late')
""")
    assert (status, said) == (130, "cleaning up\n")


def test_a_signal_waits_until_what_must_not_be_half_done_is_done():
    code = "with held():\n    os.kill(os.getpid(), signal.SIGTERM)\n    print('done')"
    assert run_stoppable(code) == (0, "done\nstopped by 15\n")


def test_a_signal_is_not_lost_in_a_callback_of_a_weak_reference():
    code = """
class Thing: pass
thing = Thing()
seen = weakref.ref(thing, lambda _: os.kill(os.getpid(), 15))
del thing
"""
    assert run_stoppable(code) == (0, "stopped by 15\n")


def test_a_signal_while_a_pool_starts_a_thread_leaves_none_that_nobody_ends():
    code = """
class Interrupted(weakref.WeakKeyDictionary):
    def __setitem__(self, key, value):
        os.kill(os.getpid(), signal.SIGTERM)
        super().__setitem__(key, value)

thread._threads_queues = Interrupted()
pool = ThreadPoolExecutor(1)
pool.submit(int)
"""
    assert run_stoppable(code) == (0, "stopped by 15\n")


def test_a_terminal_that_closes_ends_a_program_in_order():
    assert run_stoppable("os.kill(os.getpid(), signal.SIGHUP)") == (0, "stopped by 1\n")


def test_one_signal_is_enough_where_a_thread_never_comes_back():
    status, said = run("""
import threading
from streamkern.cli import signals
signals._PATIENCE = 1.0
with stoppable(), ThreadPoolExecutor(1) as pool:
    pool.submit(threading.Event().wait)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)
""")
    assert status == 143
    assert said == "Error: interrupted, while a read did not come back.\n"


def test_a_program_that_goes_on_after_it_was_stopped_is_not_ended():
    code = """
from streamkern.cli import signals
signals._PATIENCE = 0.3
try:
    with stoppable():
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
        finally:
            with held():
                time.sleep(0.9)
except Stopped:
    pass
time.sleep(0.9)
print('went on')
"""
    assert run(code) == (0, "went on\n")


def test_one_signal_is_enough_where_labels_in_a_damaged_heap_are_read_for_ever(tmp_path):
    path, rng = tmp_path / "a.h5", np.random.default_rng(0)
    with h5py.File(path, "w") as file:
        file["X"] = rng.standard_normal((300, 3))
        labels = np.array(["dear", "cheap"], dtype=object)[rng.integers(0, 2, 300)]
        file.create_dataset("y", data=labels, dtype=h5py.string_dtype())
    content = bytearray(path.read_bytes())
    size = content.index(b"GCOL") + 24  # of the first object of the heap
    content[size : size + 8] = (2**64 - 16).to_bytes(8, "little")
    path.write_bytes(content)
    status, said = run(f"""
import sys, threading
from streamkern.cli import main, signals
signals._PATIENCE = 1.0
def interrupt():
    looks = 0
    while looks < 20:  # for two seconds a thread is at a read
        time.sleep(0.1)
        files = [frame.f_code.co_filename for frame in sys._current_frames().values()]
        looks = looks + 1 if any("h5py" in file for file in files) else 0
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
main(["fit", {str(path)!r}, "--classify", "--out", {str(tmp_path / "m.h5")!r}])
""")
    assert status == 130
    assert said.endswith("Error: interrupted, while a read did not come back.\n")
