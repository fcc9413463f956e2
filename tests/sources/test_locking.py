"""Files that are locked, and file systems without locks."""

import os
import subprocess
import sys
from contextlib import contextmanager

import h5py
import numpy as np
import pytest
from rows_read import python, store

from streamkern import open_hdf5
from streamkern.errors import DataError
from streamkern.sources import hdf5_opening

HOLD = """
import sys, h5py
with h5py.File(sys.argv[1], "r+", locking=True):
    print("held", flush=True)
    sys.stdin.read()
"""
HOLD_SWMR = HOLD.replace("locking=True):", "libver='latest') as file:\n    file.swmr_mode = True")
READ = "import sys, streamkern; print(streamkern.open_hdf5(sys.argv[1]).n_samples)"


@pytest.fixture
def path(tmp_path):
    return store(tmp_path / "a.h5", np.zeros((7, 2)), np.zeros(7))


@contextmanager
def held(path, hold=HOLD):
    """Have another process write to a file, as it may on a shared file system."""
    process = subprocess.Popen(
        [sys.executable, "-c", hold, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout.readline() == b"held\n"
        yield


def test_a_file_that_is_written_to_is_refused_with_what_to_do(path, monkeypatch):
    monkeypatch.setattr(hdf5_opening, "_WAITS", (0.0,))
    with held(path), pytest.raises(DataError) as error:
        open_hdf5(path)
    assert str(error.value) == (
        f"{path} cannot be locked (Resource temporarily unavailable); let the program that writes "
        f"to it end, or set HDF5_USE_FILE_LOCKING=FALSE where there is none."
    )
    assert open_hdf5(path).n_samples == 7


def test_locking_is_what_the_environment_variable_of_hdf5_says(path):
    with held(path):
        done = python(READ, path, env={**os.environ, "HDF5_USE_FILE_LOCKING": "FALSE"})
    assert done.stdout == "7\n"


def test_a_file_that_a_writer_has_open_for_swmr_is_refused_with_what_to_do(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file["X"], file["y"] = np.zeros((7, 2)), np.zeros(7)
    words = (
        r"a\.h5 is open in a program that writes to it \(SWMR\).*; let it end, or run `h5clear -s`"
    )
    with held(path, HOLD_SWMR), pytest.raises(DataError, match=words):
        open_hdf5(path)
    assert open_hdf5(path).n_samples == 7


def test_a_file_system_without_locks_is_read_from(path, monkeypatch):
    usual = h5py.File

    def refuse(*given, locking=None, **named):
        if locking:
            raise OSError(37, "unable to lock file, errno = 37")
        return usual(*given, locking=locking, **named)

    monkeypatch.setattr(h5py, "File", refuse)
    assert open_hdf5(path).n_samples
