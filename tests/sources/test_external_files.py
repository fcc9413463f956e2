"""Rows in other files, through links: all of these are known, watched, and plain files."""

import os
import socket
from pathlib import Path

import dask
import h5py
import numpy as np
import pytest
from rows_read import python
from tlz import partition

import streamkern
from streamkern import RandomFeatureRidge
from streamkern.errors import DataError
from streamkern.sources.shard_reader import HDF5Reader

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


def made_of(path, rows):
    """Write a file whose rows are in another of a folder beside it, and return both paths."""
    (path / "far").mkdir()
    inputs = store(path / "far" / "inputs.h5", X=rows[0])
    with h5py.File(path / "a.h5", "w") as file:
        file.create_virtual_dataset("V", all_of("far/inputs.h5", "X"))
        file["group/y"] = rows[1]
        file["X"], file["all"], file["y"] = map(h5py.SoftLink, ("V", "/group", "all/y"))
    return path / "a.h5", inputs


@pytest.mark.parametrize("labels", [False, True])
def test_a_file_behind_links_that_changes_during_a_pass_is_noticed(
    tmp_path, rows, monkeypatch, labels
):
    path, inputs = made_of(tmp_path, (rows[0], np.arange(N) % 2 if labels else rows[1]))
    usual, left = HDF5Reader.blocks, [2]

    def blocks(reader, n_rows):
        left[0] -= 1
        if not left[0]:
            with h5py.File(inputs, "r+") as file:
                file["more"] = 1.0
        yield from usual(reader, n_rows)

    monkeypatch.setattr(HDF5Reader, "blocks", blocks)
    model = streamkern.RandomFeatureClassifier if labels else RandomFeatureRidge
    source = streamkern.open_hdf5(path, labels=labels)
    changes = pytest.raises(DataError, match=r"a\.h5 changed while it was in use; start again")
    with dask.config.set(scheduler="synchronous"), changes:
        model(n_components=8, alpha=1.0).fit(source)
    assert left[0] <= 0


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


def test_parts_of_a_file_behind_a_symbolic_link_are_beside_the_file(tmp_path, rows):
    names = made_of(tmp_path, rows)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "link.h5").symlink_to(tmp_path / "a.h5")
    (tmp_path / "other" / "far").mkdir()
    source = streamkern.open_hdf5(tmp_path / "other" / "link.h5")
    assert sorted(source.files[0].paths) == sorted(map(str, names))


DEEP = """
import sys
from streamkern import open_hdf5
from streamkern.errors import DataError
from streamkern.sources.headers import describe_file
print([each.name for each in describe_file(sys.argv[1])])
try:
    open_hdf5(sys.argv[1], "Z")
except DataError as error:
    print(error)
"""


def test_groups_without_end_are_listed_up_to_a_depth(tmp_path, rows):
    """HDF5 takes minutes to walk through so many groups in each other."""
    path = store(tmp_path / "a.h5", X=rows[0], **{"g/g/y": rows[1]})
    with h5py.File(path, "r+") as file:
        file["again"] = file["g"]["circle"] = file["g"]
        group = file["g/g"]
        for _ in range(3000):
            group = group.create_group("g")
        group["far"] = 1.0
    names, refused = python(DEEP, path).stdout.splitlines()
    assert names == "['X', 'again/g/y']"
    assert refused.endswith(
        "has no dataset 'Z'; it holds: X, again/g/y. Name the datasets with x, y and weights "
        "(--x, --y, --weights)."
    )


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
    store("middle.h5", X=h5py.ExternalLink("odd", "X"))
    for name, layout in (
        ("virtual.h5", all_of("odd", "X")),
        ("nested.h5", all_of("middle.h5", "X")),
        ("endless.h5", all_of("odd", "X", end)),
    ):
        with h5py.File(name, "w", libver="latest") as file:
            file.create_virtual_dataset("X", layout)
            file["y"] = y
    with h5py.File("raw.h5", "w") as file:
        file.create_dataset("X", (N, 3), "f8", external=[("odd", 0, N * 24)])
        file["y"] = y
    names = ["odd", *sorted(path.name for path in tmp_path.glob("*.h5") if path.stem != "middle")]
    done = python(READ, *names)
    assert not done.stderr
    said = dict(zip(names, partition(3, done.stdout.splitlines()), strict=True))
    ways = {"raw": "in files beside it", "virtual": "odd is a pipe, a dev", "odd": "odd is a pipe"}
    ways |= dict.fromkeys(("link", "deeper", "labels", "nested"), "links to other files are not")
    ways |= {"endless": "whole datasets of that shape"}
    for name, (rows_refused, labels_refused, listed) in said.items():
        assert ways[Path(name).stem] in rows_refused
        assert ways[Path(name).stem] in labels_refused
        assert ways["odd"] in listed if name == "odd" else listed == "read"
