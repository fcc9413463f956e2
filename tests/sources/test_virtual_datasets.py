"""Virtual datasets whose parts are not all there: HDF5 reads zeros, or a fill value, there."""

import shutil

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


@pytest.mark.parametrize("fill", [None, 0.0, -1.0])
def test_rows_that_no_mapping_names_are_refused_whatever_their_fill_value(folder, fill):
    path = virtual(folder / "v.h5", ("a.h5", "X", (40, 3), np.s_[10:50]), fill=fill)
    assert "rows 0 to 10 of X are in no part of this virtual dataset" in refused(path)
    path = virtual(folder / "v.h5", A, fill=fill)
    assert "rows 40 to 60 of X are in no part" in refused(path)
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_layout(h5py.h5d.VIRTUAL)
    with h5py.File(path, "r+") as file:
        file.move("X", "old")
        space = h5py.h5s.create_simple((N, 3))
        h5py.h5d.create(file.id, b"X", h5py.h5t.NATIVE_DOUBLE, space, made)
    assert "rows 0 to 60 of X are in no part" in refused(path)


def test_rows_that_no_mapping_names_are_bad_rows_where_they_are_read_as_nan(folder):
    source = streamkern.open_hdf5(virtual(folder / "v.h5", A, fill=np.nan))
    model = streamkern.RandomFeatureRidge(n_components=8, alpha=1.0, on_bad_rows="skip")
    with pytest.raises(DataError, match="row 40"):
        streamkern.RandomFeatureRidge(n_components=8, alpha=1.0).fit(source)
    model.fit(source)
    assert model.report_["rows"] == 40


def test_columns_that_no_mapping_names_are_refused(folder):
    path = folder / "v.h5"
    layout = h5py.VirtualLayout((N, 3), "f8")
    layout[:, :2] = h5py.VirtualSource("all.h5", "X", (N, 3))[:, :2]
    layout[:50, 2:] = h5py.VirtualSource("all.h5", "X", (N, 3))[:50, 2:]
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("X", layout)
        file["y"] = np.zeros(N)
    assert "rows 50 to 60, columns 2 to 3, of X are in no part" in refused(path)


def test_a_part_whose_dataset_is_smaller_now_is_refused(folder, rows):
    path = virtual(folder / "v.h5", A, B)
    np.testing.assert_array_equal(read(path), rows[0])
    assert streamkern.open_hdf5(path).describe()["files"][0]["storage"] == "virtual"
    store(folder / "b.h5", np.ones((19, 3)), np.ones(19))
    assert "rows 40 to 60 of X are not as many as X in b.h5 has with its shape" in refused(path)


def test_a_part_that_was_not_written_to_its_end_is_refused(folder):
    with h5py.File(folder / "b.h5", "w") as file:
        file.create_dataset("X", (20, 3), "f8", chunks=(5, 3))[:10] = 1.0
    said = refused(virtual(folder / "v.h5", A, B))
    assert "rows 40 to 60 of X are made of X in b.h5: X has 4 chunks, but 2 were written" in said


@pytest.mark.parametrize("gone", ["b.h5", "X", "link"])
def test_a_virtual_dataset_of_a_virtual_dataset_whose_part_is_gone_is_refused(folder, rows, gone):
    virtual(folder / "middle.h5", A, B)
    path = virtual(folder / "v.h5", ("middle.h5", "X", (N, 3), np.s_[:]))
    np.testing.assert_array_equal(read(path), rows[0])
    if gone == "b.h5":
        (folder / "b.h5").unlink()
    else:
        with h5py.File(folder / "b.h5", "r+") as file:
            file.move("X", "Z")
            if gone == "link":
                file["X"] = h5py.ExternalLink("nowhere.h5", "X")
    said = refused(path)
    assert "rows 0 to 60 of X are made of X in middle.h5: rows 40 to 60 of X are made of X" in said
    words = {"b.h5": "b.h5 does not exist", "X": "it has no such", "link": "nowhere.h5 does not"}
    assert words[gone] in said


@pytest.mark.parametrize("name", [".", "other.h5"])
def test_a_virtual_dataset_of_itself_is_refused(folder, name):
    path = virtual(folder / "v.h5", (name, "X", (N, 3), np.s_[:]))
    shutil.copy(path, folder / "other.h5")
    assert "more than 8 deep, or of itself" in refused(path)


def test_mappings_may_be_interleaved_overlap_and_stand_side_by_side(folder, rows):
    path, whole = folder / "v.h5", h5py.VirtualSource("all.h5", "X", (N, 3))
    layout = h5py.VirtualLayout((N, 3), "f8")
    layout[::2, :2], layout[1::2, :2] = whole[::2, :2], whole[1::2, :2]
    layout[:50, 2], layout[40:, 2] = whole[:50, 2], whole[40:, 2]
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("X", layout)
        file["y"] = np.zeros(N)
    np.testing.assert_array_equal(read(path), rows[0])


def endless(path, *mapped, series=False):
    """Write a virtual dataset whose mappings grow with their datasets, some columns each."""
    space = h5py.h5s.create_simple((1, 3), (ENDLESS, 3))
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    for name, columns in mapped:
        width = columns.stop - columns.start
        taken = h5py.h5s.create_simple((1, width), (ENDLESS, width))
        if series:
            taken.select_hyperslab((0, 0), (1, 1), None, (10, width))
            space.select_hyperslab((0, columns.start), (ENDLESS, 1), (10, 1), (10, width))
        else:
            taken.select_hyperslab((0, 0), (1, 1), None, (ENDLESS, width))
            space.select_hyperslab((0, columns.start), (1, 1), None, (ENDLESS, width))
        made.set_virtual(space, name, b"X", taken)
    with h5py.File(path, "w", libver="latest") as file:
        h5py.h5d.create(file.id, b"X", h5py.h5t.NATIVE_DOUBLE, space, made)
        file["y"] = np.arange(float(N))
    return path


def test_mappings_without_an_end_are_read_where_their_datasets_are_equally_long(folder, rows):
    X, y = rows
    sizes = {"maxshape": (None, None), "chunks": (10, 1)}
    store(folder / "left.h5", X[:, :2], y, **sizes)
    store(folder / "right.h5", X[:, 2:], y, **sizes)
    parts = (b"left.h5", slice(0, 2)), (b"right.h5", slice(2, 3))
    path = endless(folder / "v.h5", *parts)
    np.testing.assert_array_equal(read(path), X)
    store(folder / "right.h5", X[:50, 2:], y, **sizes)
    assert "rows from 0 of X are not as many as X in right.h5 has" in refused(path)
    (folder / "left.h5").unlink()
    assert "rows from 0 of X are made of X in left.h5: left.h5 does not exist" in refused(path)


def test_a_series_of_files_with_numbers_in_their_names_is_refused(folder, rows):
    for i in range(6):
        if i != 4:
            store(folder / f"part-{i}.h5", rows[0][10 * i : 10 * i + 10], rows[1])
    path = endless(folder / "v.h5", (b"part-%b.h5", slice(0, 3)), series=True)
    assert "are in a series of datasets without an end; write X again" in refused(path)


def test_a_part_that_a_worker_does_not_find_is_an_error_there(folder):
    source = streamkern.open_hdf5(virtual(folder / "v.h5", A, B))
    (folder / "b.h5").rename(folder / "c.h5")
    list(source.reader(Shard(0, 0, 40)).blocks(10))
    with pytest.raises(DataError, match=r"rows 40 to 60 of X are made of X in b\.h5: b\.h5 does"):
        list(source.reader(Shard(1, 30, 50)).blocks(10))


def test_the_largest_chunk_of_parts_counts_in_the_plan(folder, rows):
    for name, part, n_rows in (("a", slice(0, 40), 10), ("b", slice(40, N), 20)):
        store(folder / f"{name}.h5", rows[0][part], rows[1][part], chunks=(n_rows, 3))
    for parts in ((A, B), (B, A)):
        path = virtual(folder / "v.h5", *parts)
        assert streamkern.open_hdf5(path).chunk_bytes == 20 * 3 * 8
