"""A disk that is full, at everything that writes: the target is whole, absent, or the old one."""

import json
import os
import re
from pathlib import Path

import h5py
import numpy as np
import pytest
from commandline import contents, invoke, rows, small_files, streamkern, unchanged_by, write

N = 4000
FIT = ("data.h5", "--components", 64, "--alpha", 1.0, "--kernel", "gaussian")
SMALL = ("data.h5", "--components", 16, "--rows", 100)
# What writes, and how many bytes a file may have then; less than the target and what is beside it.
WRITERS = {
    "fit": ("fit", *FIT, "--out", "out.h5"),
    "tune": ("tune", *FIT[:3], *FIT[5:], "--out", "out.h5"),
    "fit with a checkpoint": ("fit", *FIT, "--checkpoint", "saved", "--out", "out.h5"),
    "moments": ("moments", *FIT[:3], *FIT[5:], "--out", "out.h5"),
    "merge": ("merge", "A.h5", "B.h5", "--out", "out.h5"),
    "forget": ("forget", "A.h5", "some.h5", "--out", "out.h5"),
    "solve": ("solve", "A.h5", "--alpha", 1.0, "--out", "out.h5"),
    "predict": ("predict", "model.h5", "data.h5", "--out", "out.h5"),
    "convert": ("convert", "data.csv", "out.h5", "--target", "y"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    X, y = rows(N)
    write(folder / "data.h5", X, y)
    write(folder / "more.h5", X + 1, y)
    write(folder / "some.h5", X[:9], y[:9])
    lines = ["a,b,c,y", *(",".join(map(str, (*row, t))) for row, t in zip(X, y, strict=True))]
    (folder / "data.csv").write_text("\n".join(lines))
    usual = (folder / "data.h5", "--components", 64, "--kernel", "gaussian")
    streamkern("fit", *usual, "--out", folder / "model.h5")
    streamkern("moments", *usual, "--out", folder / "A.h5")
    like = ("--like", folder / "A.h5", "--out", folder / "B.h5")
    streamkern("moments", folder / "more.h5", *like)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    for name, content in made.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "old"), [*((name, b"old") for name in WRITERS), ("fit", None), ("predict", None)]
)
def test_what_cannot_be_written_is_one_sentence_and_leaves_what_was(folder, name, old):
    arguments = (*WRITERS[name], "--quiet")
    if old is not None:
        (folder / "out.h5").write_bytes(old)
        assert "out.h5 exists already; give --force" in unchanged_by(folder, *arguments)
        arguments = (*arguments, "--force")
    before = contents(folder)
    with small_files():
        result = invoke(*arguments)
    assert result.exit_code == 1, result.output
    (line,) = result.stderr.strip().splitlines()
    assert "cannot be written: the disk or quota is full; the partial file was removed" in line
    after = contents(folder)
    left = set(after) - set(before)
    assert {Path(each).name for each in left} <= {"job.json", "lock", "saved"}
    assert not left or name == "fit with a checkpoint"
    assert {each: after[each] for each in before} == before
    streamkern(*arguments)
    assert h5py.is_hdf5("out.h5")


OTHERS = {
    "report": ("fit", *FIT, "--out", "new.h5", "--report", "out.html"),
    "CSV": ("predict", "model.h5", "data.h5", "--out", "out.csv"),
    "Parquet": ("predict", "model.h5", "data.h5", "--out", "out.parquet"),
    "pca": ("pca", "A.h5", "--out", "out.h5"),
    "export": ("export", "model.h5", "--out", "out.onnx"),
}


@pytest.mark.parametrize("name", ["fit", "moments", "forget", "predict", "convert", *OTHERS])
def test_what_another_job_wrote_meanwhile_is_kept(folder, monkeypatch, name):
    link = os.link

    def late(path, target):
        if target.name.startswith("out."):
            target.write_bytes(b"first")
        link(path, target)

    monkeypatch.setattr(os, "link", late)
    result = invoke(*{**WRITERS, **OTHERS}[name], "--quiet")
    assert result.exit_code == 1, result.output
    assert "was made by another job meanwhile, and is kept; give another name" in result.stderr
    (kept,) = folder.glob("out.*")
    assert kept.read_bytes() == b"first"
    assert not list(folder.glob(".*"))


def test_a_checkpoint_on_a_disk_that_was_full_goes_on_when_there_is_room(folder, small_shards):
    fit = ("fit", "data.h5", "--components", 256, "--alpha", 1.0, "--kernel", "gaussian", "--quiet")
    arguments = (*fit, "--checkpoint", "saved")
    streamkern(*fit, "--out", "quiet.h5")
    # The sums of the survey are small enough, those of the products are not.
    with small_files(230_000):
        result = invoke(*arguments, "--out", "out.h5")
    assert re.search("moments-[0-9a-f]{12}-group-", result.stderr)
    assert "the disk or quota is full" in result.stderr
    (survey,) = (folder / "saved").glob("columns-*.h5")
    assert re.fullmatch("columns-[0-9a-f]{12}-up-to-00004.h5", survey.name)
    done = streamkern(*arguments, "--out", "out.h5", "--json")
    # All of the survey, and what a task that was still at work wrote when there was room again.
    assert json.loads(done.stdout)["resumed_shards"] >= 23
    with h5py.File("out.h5") as found, h5py.File("quiet.h5") as expected:
        assert np.array_equal(found["coef"], expected["coef"])


def test_pictures_that_cannot_be_written_leave_none(folder):
    with small_files():
        result = invoke("compare", *SMALL, "--out", "folder", "--quiet")
    assert result.exit_code == 1, result.output
    assert "the disk or quota is full" in result.stderr
    assert "Traceback" not in result.output
    assert [path for path in (folder / "folder").glob("*") if path.suffix != ".json"] == []
