"""What a fit takes is what was projected, and does not grow with the rows."""

from __future__ import annotations

import subprocess
import sys

import h5py
import numpy as np
import pytest

from streamkern.memory import in_words, usable_cores

FIT = """
import json, sys, dask
from streamkern import RandomFeatureRidge, connect, open_hdf5
if __name__ == "__main__":
    with connect(n_workers=2):
        report = RandomFeatureRidge(n_components=1024).fit(open_hdf5(sys.argv[1])).report_
    print(json.dumps([report["peak_worker_bytes"], report["projected_worker_bytes"]]))
"""
IN_PROCESS = """
import json, sys
from streamkern import RandomFeatureRidge, open_hdf5
report = RandomFeatureRidge(n_components=1024).fit(open_hdf5(sys.argv[1])).report_
print(json.dumps([report["peak_worker_bytes"], report["projected_worker_bytes"]]))
"""


def measured(tmp_path, program, n):
    path, script = tmp_path / f"{n}.h5", tmp_path / "fit.py"
    rng = np.random.default_rng(0)
    with h5py.File(path, "w") as file:
        X = file.create_dataset("X", (n, 8), "f4", chunks=(8192, 8))
        X[:] = rng.standard_normal((n, 8), dtype=np.float32)
        file["y"] = np.sin(X[:, 0])
    script.write_text(program)
    done = subprocess.run(
        [sys.executable, script, path], capture_output=True, text=True, check=True
    )
    peak, projected = map(int, done.stdout.strip("[]\n").split(","))
    return peak, projected


@pytest.mark.slow
@pytest.mark.cluster
def test_workers_take_no_more_than_projected_however_many_rows_there_are(tmp_path):
    few, projected = measured(tmp_path, FIT, 200_000)
    many, projected_for_many = measured(tmp_path, FIT, 1_600_000)
    assert 0 < few <= projected
    assert 0 < many <= projected_for_many
    # Twice the allowance that is measured at full size, because the matrices are small here.
    assert many <= 1.2 * few


def test_a_fit_in_this_process_takes_no_more_than_projected(tmp_path):
    peak, projected = measured(tmp_path, IN_PROCESS, 100_000)
    assert 0 < peak <= projected


def test_bytes_are_told_in_words():
    assert in_words(12) == "12 bytes"
    assert in_words(2_500) == "2.5 kB"
    assert in_words(3.2e10) == "32 GB"
    assert in_words(1.28e14) == "128 TB"


def test_there_is_at_least_one_core():
    assert usable_cores() >= 1
