"""Rows in other files, through links: all of these are known, watched, and plain files."""

import os
import socket
from pathlib import Path

import h5py
import numpy as np
import pytest
from rows_read import python
from tlz import partition

import streamkern
from streamkern.errors import DataError

N = 300


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 3))
    return X, np.sin(X[:, 0])


def store(path, **datasets):
    with h5py.File(path, "w") as file:
        for name, value in datasets.items():
            file[name] = value
    return path


def all_of(name, dataset, end=None):
    """Return the layout of a virtual dataset that is one of another file."""
    layout = h5py.VirtualLayout((N, 3), "f8", maxshape=(None if end else N, 3))
    part = h5py.VirtualSource(name, dataset, (N, 3), maxshape=(None if end else N, 3))
    layout[:end] = part[:end]
    return layout


@pytest.mark.parametrize("name", ["X", "group/X", "soft"])
def test_a_link_to_another_file_is_refused_and_named(tmp_path, rows, name):
    there = store(tmp_path / "there.h5", X=rows[0], y=rows[1])
    links = {"X": h5py.ExternalLink("there.h5", "X"), "group": h5py.ExternalLink("there.h5", "/")}
    path = store(tmp_path / "a.h5", y=rows[1], soft=h5py.SoftLink("group/X"), **links)
    with pytest.raises(DataError, match=r"a link to .* in there\.h5, .*; name that file and data"):
        streamkern.open_hdf5(path, name)
    assert len(streamkern.open_hdf5(there).files) == 1


def test_links_in_a_circle_lead_to_no_dataset(tmp_path, rows):
    path = store(tmp_path / "a.h5", X=h5py.SoftLink("Y"), Y=h5py.SoftLink("X"), y=rows[1])
    with pytest.raises(DataError, match=r"a\.h5 has no dataset 'X'; it holds: y\."):
        streamkern.open_hdf5(path)


def test_a_virtual_dataset_is_refused_and_soft_links_are_followed(tmp_path, rows):
    path = store(tmp_path / "a.h5", y=rows[1], rows=rows[0], again=h5py.SoftLink("rows"))
    with h5py.File(path, "r+") as file:
        file.create_virtual_dataset("X", all_of(".", "rows"))
    assert streamkern.open_hdf5(path, "again").n_samples == N
    with pytest.raises(DataError, match=r"X is a virtual dataset, .* name these files"):
        streamkern.open_hdf5(path)


def pipe(path):
    os.mkfifo(path)


def listening(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def device(path):
    path.symlink_to("/dev/zero")


READ = """
import sys
from streamkern import open_hdf5
from streamkern.errors import DataError
from streamkern.sources.headers import describe_file
for path in sys.argv[1:]:
    for read in (open_hdf5, lambda path: open_hdf5(path, labels=True), describe_file):
        try:
            print(read(path) and "read")
        except DataError as error:
            print(error)
"""


@pytest.mark.parametrize("kind", [pipe, listening, device])
def test_pipes_devices_and_sockets_are_refused_and_never_opened(tmp_path, rows, kind, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a socket has a short name
    odd, end = Path("odd"), h5py.h5s.UNLIMITED
    kind(odd)
    X, y = rows
    store("link.h5", X=h5py.ExternalLink("odd", "X"), y=y)
    store("deeper.h5", X=h5py.SoftLink("group/X"), group=h5py.ExternalLink("odd", "/"), y=y)
    store("labels.h5", X=X, y=h5py.ExternalLink("odd", "y"))
    for name, layout in (
        ("virtual.h5", all_of("odd", "X")),
        ("endless.h5", all_of("odd", "X", end)),
    ):
        with h5py.File(name, "w", libver="latest") as file:
            file.create_virtual_dataset("X", layout)
            file["y"] = y
    with h5py.File("raw.h5", "w") as file:
        file.create_dataset("X", (N, 3), "f8", external=[("odd", 0, N * 24)])
        file["y"] = y
    names = ["odd", *sorted(path.name for path in tmp_path.glob("*.h5"))]
    done = python(READ, *names)
    assert not done.stderr
    said = dict(zip(names, partition(3, done.stdout.splitlines()), strict=True))
    ways = {"raw": "in files beside it", "odd": "odd is a pipe, a dev"}
    ways |= dict.fromkeys(("link", "deeper", "labels"), "links to other files are not")
    ways |= dict.fromkeys(("virtual", "endless"), "is a virtual dataset")
    for name, (rows_refused, labels_refused, listed) in said.items():
        assert ways[Path(name).stem] in rows_refused
        assert ways[Path(name).stem] in labels_refused
        assert ways["odd"] in listed if name == "odd" else listed == "read"
