"""A fit that was stopped goes on where it was, to the same bits, or says why it cannot."""

import math
import re
import shutil
import time
from contextlib import suppress
from pathlib import Path

import dask
import h5py
import numpy as np
import pytest
from rows_read import chunked

import streamkern
from streamkern import RandomFeatureRidge
from streamkern.errors import CheckpointError, OutputError, StreamkernWarning
from streamkern.features import random_fourier
from streamkern.features.projection import Frequencies
from streamkern.kernels import Gaussian
from streamkern.parameters.footprint import Footprint
from streamkern.parameters.planning import plan_system
from streamkern.passes import checkpoint_job
from streamkern.registry import extension
from streamkern.sources.shard_reader import HDF5Reader
from streamkern.statistics import triangle
from streamkern.storage.checkpoints import SavedPass

N = 4000
WAYS = {
    "one penalty": {"alpha": 1.0},
    "folds by shards": {"alpha": "cv", "fold_by": "shards"},
    "folds by rows": {"alpha": "cv", "fold_by": "rows"},
    "bad rows": {"alpha": 1.0, "on_bad_rows": "skip"},
}


pytestmark = pytest.mark.usefixtures("small_shards")


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 3)).astype(np.float32)
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(N)
    bad = X.copy()
    bad[7] = np.nan
    return chunked(tmp_path / "data.h5", 100, good=X, bad=bad, y=y)


def opened(data, way="bad rows"):
    return streamkern.open_hdf5(data, "bad" if way == "bad rows" else "good")


def model(way="one penalty", **options):
    usual = {"n_components": 16, "kernel": "gaussian"}
    return RandomFeatureRidge(**(usual | WAYS[way] | options))


SHARDS = 23  # of 200 rows, the last ones of 100, in groups of five
LAST = "up-to-00004.h5"


class Stopped(KeyboardInterrupt):
    pass


@pytest.fixture
def stopping(monkeypatch):
    """Let readers stop the program after so many of them."""
    usual, left = HDF5Reader.blocks, [math.inf]

    def blocks(reader, n_rows):
        left[0] -= 1
        if left[0] < 0:
            raise Stopped
        yield from usual(reader, n_rows)

    def after(count):
        left[0] = count

    monkeypatch.setattr(HDF5Reader, "blocks", blocks)
    return after


def saved_files(folder):
    """The names, without the tokens in them."""
    return sorted(re.sub("-[0-9a-f]{12}-", "-", path.name) for path in Path(folder).glob("*.h5"))


@pytest.mark.parametrize(
    ("count", "way", "scheduler"),
    [
        (3, "one penalty", "threads"),
        (17, "folds by shards", "synchronous"),
        (29, "folds by rows", "threads"),
        (37, "bad rows", "synchronous"),
    ],
)
def test_a_stopped_fit_goes_on_to_the_same_bits(  # noqa: PLR0917  fixtures and parameters
    data, tmp_path, stopping, scheduler, way, count
):
    with dask.config.set(scheduler=scheduler):
        quiet = model(way).fit(opened(data, way))
        stopping(count)
        with pytest.raises(KeyboardInterrupt):
            model(way).fit(opened(data, way), checkpoint=tmp_path / "saved")
        stopping(math.inf)
        deadline = time.monotonic() + 10
        while list((tmp_path / "saved").glob(".*.partial")):  # of threads that end their task
            assert time.monotonic() < deadline
            time.sleep(0.01)
        again = model(way).fit(opened(data, way), checkpoint=tmp_path / "saved")
    assert np.array_equal(again.coef_, quiet.coef_)
    assert again.report_["rows"] == quiet.report_["rows"]
    assert again.report_["skipped_rows"] == quiet.report_["skipped_rows"]
    # Eight readers look at samples first; what is lost is less than two groups of five.
    assert again.report_["resumed_shards"] >= count - 8 - 10
    assert quiet.report_["resumed_shards"] == 0
    assert saved_files(tmp_path / "saved") == [f"columns-{LAST}", f"moments-{LAST}"]


@pytest.mark.parametrize("what", ["moments", "tune", "strips"])
def test_whatever_reads_twice_goes_on(data, tmp_path, stopping, monkeypatch, what):
    if what == "strips":
        monkeypatch.setattr(triangle, "PANEL", 4)
        monkeypatch.setattr("streamkern.parameters.planning._STRIPS", (2,))

    def made(**options):
        way, method = {
            "moments": ("folds by rows", RandomFeatureRidge.moments),
            "tune": ("folds by rows", RandomFeatureRidge.tune),
            "strips": ("one penalty", RandomFeatureRidge.fit),
        }[what]
        if what == "tune":
            options["kernels"] = "gaussian"
        return method(model(way), opened(data, ""), **options)

    def result(found):
        return found if what != "moments" else RandomFeatureRidge(n_components=16).solve(found)

    quiet = result(made())
    stopping(40)
    with pytest.raises(KeyboardInterrupt):
        made(checkpoint=tmp_path / "saved")
    stopping(math.inf)
    again = result(made(checkpoint=tmp_path / "saved"))
    assert np.array_equal(again.coef_, quiet.coef_)
    assert again.report_["resumed_shards"] >= SHARDS
    last = "moments-2-of-2" if what == "strips" else "moments"
    assert f"{last}-{LAST}" in saved_files(tmp_path / "saved")


@pytest.mark.parametrize("name", ["columns", "moments"])
def test_what_was_damaged_is_computed_again_and_said(data, tmp_path, name):
    first = model().fit(opened(data, ""), checkpoint=tmp_path / "saved")
    (path,) = (tmp_path / "saved").glob(f"{name}-*-{LAST}")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.warns(StreamkernWarning, match="1 of the files"):
        again = model().fit(opened(data, ""), checkpoint=tmp_path / "saved")
    assert np.array_equal(first.coef_, again.coef_)
    assert again.report_["resumed_shards"] == SHARDS


def test_changed_data_or_options_are_refused_with_what_differs(data, tmp_path):
    model().fit(opened(data, ""), checkpoint=tmp_path / "saved")
    for options, words in (
        ({"n_components": 32}, "n_components was 16, now 32"),
        ({"random_state": 1}, "random_state was 0, now 1"),
        ({"kernel": Gaussian(2.0)}, 'kernel length_scale was "median", now 2.0'),
    ):
        with pytest.raises(CheckpointError, match=words):
            model(**options).fit(opened(data, ""), checkpoint=tmp_path / "saved")
    one, other = (model(random_state=seed).fit(opened(data, "")) for seed in (0, 1))
    model().fit(opened(data, ""), like=one, checkpoint=tmp_path / "like")
    with pytest.raises(CheckpointError, match="like was"):
        model().fit(opened(data, ""), like=other, checkpoint=tmp_path / "like")
    with h5py.File(data, "r+") as file:
        file["good"][0, 0] = 9.0
    with pytest.raises(CheckpointError, match=r"data files 1 .* was"):
        model().fit(opened(data, ""), checkpoint=tmp_path / "saved")


@pytest.mark.parametrize("what", ["X", "y", "sample_weight"])
def test_one_other_value_in_memory_is_refused(tmp_path, what):
    X = np.random.default_rng(0).standard_normal((2000, 3))
    rows = {"X": X, "y": X[:, 0].copy(), "sample_weight": np.ones(len(X))}
    model().fit(**rows, checkpoint=tmp_path / "saved")
    rows = {name: values.copy() for name, values in rows.items()}
    again = model().fit(**rows, checkpoint=tmp_path / "saved")
    assert again.report_["resumed_shards"] > 0
    rows[what][1234] += 1
    with pytest.raises(CheckpointError, match="data values was"):
        model().fit(**rows, checkpoint=tmp_path / "saved")


def test_sums_of_another_map_are_not_taken(data, tmp_path, stopping, monkeypatch):
    """As where a processor draws frequencies that differ in their last bits."""
    usual = random_fourier.RandomFourierFeatures._drawn
    stopping(8 + SHARDS + 12)
    with pytest.raises(KeyboardInterrupt):
        model().fit(opened(data, ""), checkpoint=tmp_path / "saved")
    stopping(math.inf)
    monkeypatch.setattr(
        random_fourier.RandomFourierFeatures,
        "_drawn",
        lambda drawn, projection, *more: usual(
            drawn, Frequencies(np.nextafter(projection.frequencies, 9.0)), *more
        ),
    )
    quiet = model().fit(opened(data, ""))
    again = model().fit(opened(data, ""), checkpoint=tmp_path / "saved")
    assert np.array_equal(again.coef_, quiet.coef_)
    assert again.report_["resumed_shards"] == SHARDS  # those of the columns


@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_what_a_checkpoint_takes_is_in_the_plan(data, tmp_path, monkeypatch, solver):
    largest = [0]
    usual = SavedPass.write_total

    def watched(saved, number, sums):
        usual(saved, number, sums)
        with suppress(FileNotFoundError):  # another thread has moved what it wrote
            size = sum(path.stat().st_size for path in Path(saved.folder).iterdir())
            largest[0] = max(largest[0], size)

    monkeypatch.setattr(SavedPass, "write_total", watched)
    needs = Footprint
    if solver == "cg":
        needs = extension("gradients", "iterative_plan").IterativeFootprint
    planned = plan_system(opened(data, ""), 128, n_folds=5, needs_of=needs)
    fitted = model("folds by shards", n_components=128, solver=solver)
    fitted.fit(opened(data, ""), checkpoint=tmp_path / "saved")
    assert planned.checkpoint_bytes / 10 < largest[0] <= planned.checkpoint_bytes


def test_too_little_space_is_refused_before_the_first_read(data, tmp_path, monkeypatch):
    monkeypatch.setattr(
        checkpoint_job.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9, 8, 1)
    )
    with pytest.raises(OutputError, match=r"a checkpoint needs up to .* but 1 bytes is free"):
        model().fit(opened(data, ""), checkpoint=tmp_path / "saved")


@pytest.mark.cluster
def test_a_fit_on_workers_goes_on_where_another_was(data, tmp_path, stopping):
    quiet = model("folds by shards").fit(opened(data, ""))
    stopping(40)
    with pytest.raises(KeyboardInterrupt):
        model("folds by shards").fit(opened(data, ""), checkpoint=tmp_path / "saved")
    stopping(math.inf)
    with streamkern.connect(n_workers=2):
        again = model("folds by shards").fit(opened(data, ""), checkpoint=tmp_path / "saved")
    assert np.array_equal(again.coef_, quiet.coef_)
    assert again.report_["resumed_shards"] >= SHARDS
