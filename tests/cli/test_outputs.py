"""No output of a command replaces what the command reads, whatever leads to it, even by force."""

import os

import numpy as np
import pytest
from commandline import invoke, rows, streamkern, unchanged_by, write

COMPONENTS = ("--components", 8)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a file of every kind that a command reads."""
    folder = tmp_path_factory.mktemp("made")
    X, y = rows()
    write(folder / "rows.h5", X, y)
    write(folder / "y.h5", X, y)
    lines = [",".join(map(str, [*row, target])) for row, target in zip(X, y, strict=True)]
    (folder / "table.csv").write_text("\n".join(["a,b,c,y", *lines]))
    (folder / "cluster.yaml").write_text(
        "version: 1\nmodule: dask.distributed\nclass: LocalCluster\n"
        "kwargs: {n_workers: 1, threads_per_worker: 1, processes: false}\n"
    )
    (folder / "scheduler.json").write_text("{}")
    streamkern("convert", folder / "table.csv", folder / "converted.h5", "--target", "y")
    streamkern("fit", folder / "converted.h5", *COMPONENTS, "--out", folder / "model.h5")
    streamkern("moments", folder / "rows.h5", *COMPONENTS, "--out", folder / "moments.h5")
    streamkern("pca", folder / "rows.h5", "--random-features", 8, "--out", folder / "pca.h5")
    (folder / "folder").mkdir()
    (folder / "folder" / "comparison.json").symlink_to(folder / "rows.h5")
    (folder / "model.onnx").symlink_to(folder / "model.h5")
    (folder / "soft.h5").symlink_to(folder / "rows.h5")
    os.link(folder / "rows.h5", folder / "hard.h5")
    return folder


FIT = ("fit", "rows.h5", "y.h5", *COMPONENTS)
CASES = [
    *[(*FIT, "--out", out) for out in ("rows.h5", "y.h5", "soft.h5", "hard.h5")],
    *[(*FIT, "--out", "new.h5", "--report", out) for out in ("rows.h5", "y.h5", "hard.h5")],
    ("fit", "rows.h5", "--like", "model.h5", "--out", "model.h5"),
    (*FIT, "--cluster", "cluster.yaml", "--out", "cluster.yaml"),
    (*FIT, "--scheduler-file", "scheduler.json", "--out", "new.h5", "--report", "scheduler.json"),
    ("fit", "rows.h5", *COMPONENTS, "--boost", "2", "--classify", "--out", "hard.h5"),
    ("tune", "rows.h5", *COMPONENTS, "--out", "rows.h5"),
    ("moments", "rows.h5", *COMPONENTS, "--out", "soft.h5"),
    ("pca", "rows.h5", "--out", "rows.h5"),
    ("pca", "moments.h5", "--cluster", "cluster.yaml", "--out", "cluster.yaml"),
    ("solve", "moments.h5", "--out", "moments.h5"),
    ("solve", "moments.h5", "--cluster", "cluster.yaml", "--out", "cluster.yaml"),
    ("merge", "moments.h5", "model.h5", "--out", "moments.h5"),
    ("forget", "moments.h5", "rows.h5", "--out", "rows.h5"),
    ("export", "model.h5", "--out", "model.onnx"),
    ("predict", "model.h5", "rows.h5", "--out", "rows.h5"),
    ("predict", "model.h5", "rows.h5", "--cluster", "cluster.yaml", "--out", "cluster.yaml"),
    ("predict", "model.h5", "table.csv", "--out", "table.csv"),
    ("transform", "pca.h5", "rows.h5", "--out", "hard.h5"),
    ("compare", "rows.h5", "--components", 4, "--seeds", 1, "--out", "folder"),
    ("convert", "table.csv", "model.h5", "--like", "model.h5"),
    ("convert", "table.csv", "converted.h5", "--like", "converted.h5"),
]


@pytest.mark.parametrize("arguments", CASES, ids=lambda case: " ".join(map(str, case)))
def test_what_a_command_reads_is_not_replaced_even_by_force(made, monkeypatch, arguments):
    monkeypatch.chdir(made)
    sentence = unchanged_by(made, *arguments, "--force", "--quiet")
    assert "is an input of this job; name another" in sentence


def test_a_checkpoint_is_not_replaced(made, monkeypatch):
    monkeypatch.chdir(made)
    (made / "checkpoint").mkdir()
    write(made / "checkpoint" / "first-0123456789ab-group-00000.h5", np.ones(3))
    out = "checkpoint/first-0123456789ab-group-00000.h5"
    done = invoke(*FIT, "--checkpoint", "checkpoint", "--out", out, "--force")
    assert "is an input of this job" in done.stderr
