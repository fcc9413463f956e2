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


def linked(path, rows):
    """Datasets behind links of links, and a virtual one of virtual ones, in files of other folders.

    Returns
    -------
    dict of str to path
        Every file that rows are read from, by what it holds.
    """
    X, y = rows
    (path / "far").mkdir()
    names = {name: path / "far" / f"{name}.h5" for name in ("inputs", "middle", "y", "between")}
    store(names["inputs"], X=X)
    with h5py.File(names["middle"], "w") as file:
        file.create_virtual_dataset("V", all_of("inputs.h5", "X"))
    store(names["y"], **{"group/y": y, "weights": np.ones(N)})
    store(names["between"], alias=h5py.ExternalLink("y.h5", "group"))
    with h5py.File(path / "a.h5", "w") as file:
        file.create_virtual_dataset("X", all_of("far/middle.h5", "V"))
        file["all"] = h5py.ExternalLink("far/between.h5", "/alias")
        file["y"] = h5py.SoftLink("all/y")
        file["weights"] = h5py.ExternalLink("far/y.h5", "weights")
    return names | {"itself": path / "a.h5"}


def test_all_files_that_rows_come_from_are_known(tmp_path, rows):
    names = linked(tmp_path, rows)
    (file,) = streamkern.open_hdf5(tmp_path / "a.h5", weights="weights").files
    assert sorted(file.paths) == sorted(map(str, names.values()))
    (file,) = streamkern.open_hdf5(tmp_path / "a.h5", labels=True).files
    assert sorted(file.paths) == sorted(map(str, names.values()))


@pytest.mark.parametrize(
    ("changed", "labels"),
    [("inputs", False), ("middle", True), ("between", False), ("y", False), ("y", True)],
)
def test_a_file_behind_links_that_changes_during_a_pass_is_noticed(
    tmp_path, rows, monkeypatch, changed, labels
):
    names = linked(tmp_path, (rows[0], np.arange(N) % 2 if labels else rows[1]))
    usual, left = HDF5Reader.blocks, [2]

    def blocks(reader, n_rows):
        left[0] -= 1
        if not left[0]:
            with h5py.File(names[changed], "r+") as file:
                file["more"] = 1.0
        yield from usual(reader, n_rows)

    monkeypatch.setattr(HDF5Reader, "blocks", blocks)
    model = streamkern.RandomFeatureClassifier if labels else RandomFeatureRidge
    source = streamkern.open_hdf5(tmp_path / "a.h5", labels=labels)
    changes = pytest.raises(DataError, match=r"a\.h5 changed while it was in use; start again")
    with dask.config.set(scheduler="synchronous"), changes:
        model(n_components=8, alpha=1.0).fit(source)
    assert left[0] <= 0


def test_a_link_to_a_file_that_is_gone_names_it(tmp_path, rows):
    names = linked(tmp_path, rows)
    names["y"].unlink()
    with pytest.raises(DataError, match=r"a\.h5: y\.h5 does not exist; put it back\.$"):
        streamkern.open_hdf5(tmp_path / "a.h5")


def test_links_in_a_circle_lead_to_no_dataset(tmp_path, rows):
    path = store(tmp_path / "a.h5", X=h5py.SoftLink("Y"), Y=h5py.SoftLink("X"), y=rows[1])
    with pytest.raises(DataError, match=r"a\.h5 has no dataset 'X'; it holds: y\."):
        streamkern.open_hdf5(path)


def test_parts_are_looked_for_where_hdf5_looks_first(tmp_path, rows, monkeypatch):
    linked(tmp_path, rows)
    (tmp_path / "first").mkdir()
    store(tmp_path / "first" / "inputs.h5", X=rows[0] + 1)
    monkeypatch.setenv("HDF5_VDS_PREFIX", "${ORIGIN}/nowhere:" + str(tmp_path / "first"))
    source = streamkern.open_hdf5(tmp_path / "a.h5")
    assert str(tmp_path / "first" / "inputs.h5") in source.files[0].paths
    (block,) = source.reader(source.shards(N)[0]).blocks(N)
    np.testing.assert_array_equal(block.X, rows[0] + 1)


def test_parts_of_a_file_behind_a_symbolic_link_are_beside_the_file(tmp_path, rows):
    names = linked(tmp_path, rows)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "link.h5").symlink_to(tmp_path / "a.h5")
    (tmp_path / "other" / "far").mkdir()
    source = streamkern.open_hdf5(tmp_path / "other" / "link.h5")
    assert sorted(source.files[0].paths) == sorted(map(str, names.values()))


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
    for name, (rows_refused, labels_refused, listed) in said.items():
        refused = "in files beside it" if name == "raw.h5" else "odd is a pipe, a device or a sock"
        assert refused in rows_refused
        assert refused in labels_refused
        assert refused in listed if name == "odd" else listed == "read"
