"""Fits of the same rows at many places, and cluster files of the repository adjusted to here."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import yaml
from conftest import wait_until
from rows_read import chunked

FILES = Path(__file__).parents[1] / "jobs" / "clusters"
N, P, N_COMPONENTS = 300_000, 5, 512
OPTIONS = ("--components", str(N_COMPONENTS), "--alpha", "0.1")
STREAMKERN = Path(sys.executable).with_name("streamkern")


def write_rows(path, n=N):
    """Write rows that are several shards."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, P), dtype=np.float32)
    chunked(path, 4096, X=X, y=np.sin(X[:, 0]))


def bits(path):
    """Those of the coefficients in a file."""
    with h5py.File(path) as file:
        return file["coef"][()].tobytes()


def started(folder, *arguments, **options):
    """Start a program in a folder, and hear what it says."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([str(each) for each in arguments], cwd=folder, **pipes | options)


def fit_started(folder, rows, *place, **options):
    """Start a fit of rows that writes `model.h5` in a folder, at a place named by options."""
    out = folder / "model.h5"
    command = (STREAMKERN, "fit", rows, "--out", out, *OPTIONS, "--json", "--quiet")
    return started(folder, *command, *place, **options)


def output_of(process, seconds=120):
    """Return what a program writes that must end well."""
    output, errors = process.communicate(timeout=seconds)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert "Warning" not in errors
    return output


def report_of(process, seconds=120):
    """Return what a fit reports that must end well."""
    report: dict[str, Any] = json.loads(output_of(process, seconds).splitlines()[-1])
    return report


def adjusted(name, folder, changes, **top):
    """Write a cluster file of the repository with some values changed; None leaves one out."""
    content = yaml.safe_load((FILES / name).read_text())
    kwargs = content["kwargs"] | changes
    content |= {"kwargs": {k: v for k, v in kwargs.items() if v is not None}} | top
    path = folder / name
    path.write_text(yaml.safe_dump({k: v for k, v in content.items() if v is not None}))
    return path


def configured(folder, **configuration):
    """Write a user's own Dask configuration, and return the environment that names it."""
    (folder / "dask").mkdir(exist_ok=True)
    (folder / "dask" / "own.yaml").write_text(yaml.safe_dump(configuration))
    return {"DASK_CONFIG": str(folder / "dask")}


def stopped_fit(folder, rows, *place, number, **options):
    """Send a signal to a fit with a checkpoint when it has saved sums, and return its status."""
    fit = fit_started(folder, rows, *place, "--checkpoint", folder / "saved", **options)
    wait_until(
        lambda: list(folder.glob("saved/*moments*")) or fit.poll() is not None, "a group", 120
    )
    fit.send_signal(number)
    fit.communicate(timeout=60)
    return fit.returncode


def check_it_goes_on(folder, rows, expected, *place, **options):
    """Go on with a fit that was stopped."""
    place = (*place, "--checkpoint", folder / "saved")
    assert report_of(fit_started(folder, rows, *place, **options))["resumed_shards"] >= 1
    assert bits(folder / "model.h5") == expected
