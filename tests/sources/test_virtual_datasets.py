"""Virtual datasets: whole datasets of files beside them, one below the other, and nothing else."""

import h5py
import numpy as np
import pytest
import rows_read
from rows_read import store, together

import streamkern
from streamkern.errors import DataError
from streamkern.sources import Shard

N = 60
ENDLESS = h5py.h5s.UNLIMITED


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, 3)), rng.standard_normal(N)


@pytest.fixture
def folder(tmp_path, rows):
    """A folder with all rows in one file, and in two."""
    for name, part in (("all", slice(None)), ("a", slice(0, 40)), ("b", slice(40, N))):
        store(tmp_path / f"{name}.h5", rows[0][part], rows[1][part])
    return tmp_path


def virtual(path, *mapped, fill=None):
    return rows_read.virtual(path, (N, 3), *mapped, fill=fill, y=np.arange(float(N)))


A, B = ("a.h5", "X", (40, 3), np.s_[:40]), ("b.h5", "X", (20, 3), np.s_[40:])
NOT_PLAIN = "X is a virtual dataset, which must consist of whole datasets of that shape in local"


def read(path):
    return together(streamkern.open_hdf5(path))[0]


def refused(path):
    with pytest.raises(DataError) as error:
        streamkern.open_hdf5(path)
    said = str(error.value)
    assert said.startswith(f"{path}: ")
    assert said.endswith(".")
    assert "\n" not in said
    return said


@pytest.mark.parametrize("order", [(A, B), (B, A)])
def test_whole_datasets_one_below_the_other_are_read(folder, rows, order):
    path = virtual(folder / "v.h5", *order)
    np.testing.assert_array_equal(read(path), rows[0])
    (file,) = streamkern.open_hdf5(path).files
    assert file.storage == "virtual"
    assert sorted(file.paths) == [str(folder / name) for name in ("a.h5", "b.h5", "v.h5")]


@pytest.mark.parametrize("fill", [None, 0.0, np.nan])
def test_rows_that_no_mapping_names_are_refused_whatever_their_fill_value(folder, fill):
    path = virtual(folder / "v.h5", ("a.h5", "X", (40, 3), np.s_[10:50]), fill=fill)
    assert NOT_PLAIN in refused(path)
    path = virtual(folder / "v.h5", A, fill=fill)
    assert NOT_PLAIN in refused(path)
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_layout(h5py.h5d.VIRTUAL)
    with h5py.File(path, "r+") as file:
        file.move("X", "old")
        space = h5py.h5s.create_simple((N, 3))
        h5py.h5d.create(file.id, b"X", h5py.h5t.NATIVE_DOUBLE, space, made)
    assert NOT_PLAIN in refused(path)


def beside(layout, whole):
    layout[:, :2], layout[:, 2:] = whole[:, :2], whole[:, 2:]


def interleaved(layout, whole):
    layout[::2], layout[1::2] = whole[::2], whole[1::2]


def overlapping(layout, whole):
    layout[:50], layout[40:] = whole[:50], whole[40:]


def turned(layout, whole):
    layout[:30], layout[30:] = whole[30:], whole[:30]


@pytest.mark.parametrize("mapped", [beside, interleaved, overlapping, turned])
def test_other_mappings_are_refused(folder, mapped):
    layout = h5py.VirtualLayout((N, 3), "f8")
    mapped(layout, h5py.VirtualSource("all.h5", "X", (N, 3)))
    with h5py.File(folder / "v.h5", "w") as file:
        file.create_virtual_dataset("X", layout)
        file["y"] = np.zeros(N)
    assert NOT_PLAIN in refused(folder / "v.h5")


@pytest.mark.parametrize("n_rows", [19, 21])
def test_a_part_whose_dataset_has_another_shape_now_is_refused(folder, n_rows):
    path = virtual(folder / "v.h5", A, B)
    store(folder / "b.h5", np.ones((n_rows, 3)), np.ones(n_rows))
    assert NOT_PLAIN in refused(path)


def test_a_part_that_was_not_written_to_its_end_is_refused(folder):
    with h5py.File(folder / "b.h5", "w") as file:
        file.create_dataset("X", (20, 3), "f8", chunks=(5, 3))[:10] = 1.0
    said = refused(virtual(folder / "v.h5", A, B))
    assert f"X in {folder / 'b.h5'} has 4 chunks, but 2 were written" in said


def test_a_part_that_is_gone_or_elsewhere_again_is_refused(folder):
    path = virtual(folder / "v.h5", A, B)
    with h5py.File(folder / "b.h5", "r+") as file:
        file.move("X", "Z")
    assert NOT_PLAIN in refused(path)
    with h5py.File(folder / "b.h5", "r+") as file:
        file["X"] = h5py.ExternalLink("all.h5", "X")
    assert "links to other files are not followed" in refused(path)
    (folder / "b.h5").unlink()
    assert f"{folder / 'b.h5'} does not exist" in refused(path)
    virtual(folder / "b.h5", ("all.h5", "X", (N, 3), np.s_[:]))
    assert NOT_PLAIN in refused(path)


@pytest.mark.parametrize("name", [".", "v.h5", "part%%.h5"])
def test_a_virtual_dataset_of_itself_or_with_percent_signs_is_refused(folder, name):
    store(folder / "part%.h5", np.zeros((N, 3)), np.zeros(N))
    path = virtual(folder / "v.h5", (name, "X", (N, 3), np.s_[:]))
    assert NOT_PLAIN in refused(path) or "is a folder" in refused(path)


def test_folders_of_the_environment_are_not_looked_through(folder, monkeypatch):
    path = virtual(folder / "v.h5", A, B)
    monkeypatch.setenv("HDF5_VDS_PREFIX", str(folder / "other"))
    assert NOT_PLAIN in refused(path)


@pytest.mark.parametrize("series", [False, True])
def test_mappings_without_an_end_are_refused(folder, series):
    space = h5py.h5s.create_simple((1, 3), (ENDLESS, 3))
    taken = h5py.h5s.create_simple((1, 3), (ENDLESS, 3))
    if series:
        taken.select_hyperslab((0, 0), (1, 1), None, (10, 3))
        space.select_hyperslab((0, 0), (ENDLESS, 1), (10, 1), (10, 3))
    else:
        taken.select_hyperslab((0, 0), (1, 1), None, (ENDLESS, 3))
        space.select_hyperslab((0, 0), (1, 1), None, (ENDLESS, 3))
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_virtual(space, b"part-%b.h5" if series else b"all.h5", b"X", taken)
    with h5py.File(folder / "v.h5", "w", libver="latest") as file:
        h5py.h5d.create(file.id, b"X", h5py.h5t.NATIVE_DOUBLE, space, made)
        file["y"] = np.arange(float(N))
    assert NOT_PLAIN in refused(folder / "v.h5")


def test_a_part_that_a_worker_does_not_find_is_an_error_there(folder):
    source = streamkern.open_hdf5(virtual(folder / "v.h5", A, B))
    (folder / "b.h5").rename(folder / "c.h5")
    list(source.reader(Shard(0, 0, 40)).blocks(10))
    with pytest.raises(DataError, match=r"v\.h5: .*b\.h5 does not exist"):
        list(source.reader(Shard(1, 30, 50)).blocks(10))


def test_the_largest_chunk_of_parts_counts_in_the_plan(folder, rows):
    for name, part, n_rows in (("a", slice(0, 40), 10), ("b", slice(40, N), 20)):
        store(folder / f"{name}.h5", rows[0][part], rows[1][part], chunks=(n_rows, 3))
    for parts in ((A, B), (B, A)):
        path = virtual(folder / "v.h5", *parts)
        assert streamkern.open_hdf5(path).chunk_bytes == 20 * 3 * 8
