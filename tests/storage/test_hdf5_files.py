"""Tables written a piece at a time."""

import os
import tempfile
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkern.storage import hdf5_files as module
from streamkern.storage.hdf5_files import RowWriter


@settings(max_examples=30)
@given(
    sizes=st.lists(st.integers(0, 20), min_size=1, max_size=6),
    columns=st.sampled_from([(), (1,), (3,)]),
    dtype=st.sampled_from(["f4", "f8", ">f4", "u1", "i8"]),
)
def test_pieces_put_together_are_the_dataset(sizes, columns, dtype):
    rows = np.random.default_rng(0).integers(0, 200, (sum(sizes), *columns)).astype(dtype)
    with tempfile.TemporaryDirectory() as folder:
        with RowWriter.create(Path(folder) / "a.h5") as writer:
            for stop, size in zip(np.cumsum(sizes), sizes, strict=True):
                writer.append("rows", rows[stop - size : stop])
        with h5py.File(Path(folder) / "a.h5") as file:
            written = file["rows"][:]
    assert written.dtype == rows.dtype
    np.testing.assert_array_equal(written, rows)


@pytest.mark.parametrize("columns", [(), (90,), (400_000,)])
def test_a_chunk_is_whole_rows_of_about_a_mebibyte_without_compression(tmp_path, columns):
    row_bytes = int(np.prod(columns))
    with RowWriter.create(tmp_path / "a.h5") as writer:
        writer.append("rows", np.zeros(((2 << 20) // row_bytes, *columns), "i1"))
        writer.append("few", np.zeros((10, 3)))
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["rows"].chunks == ((1 << 20) // row_bytes, *columns)
        assert file["rows"].maxshape == (None, *columns)
        assert file["rows"].compression is None
        assert file["few"].chunks == (10, 3)


@pytest.mark.parametrize("length", [4, 60_000, 60_002])
def test_a_note_is_an_attribute_unless_it_is_too_long(tmp_path, length):
    text = "ä" * (length // 2)
    with RowWriter.create(tmp_path / "a.h5") as writer:
        writer.note("names", text)
    with h5py.File(tmp_path / "a.h5") as file:
        assert ("names" in file) == (length > 60_000)
        found = file["names"].asstr()[()] if "names" in file else file.attrs["names"]
    assert found == text


@pytest.mark.parametrize("supported", [True, False])
def test_what_is_let_go_of_is_in_the_file_all_the_same(tmp_path, monkeypatch, supported):
    monkeypatch.setattr(module, "_RELEASED_BYTES", 1000)
    if not supported:
        monkeypatch.delattr(os, "posix_fadvise", raising=False)
    pieces = np.random.default_rng(0).standard_normal((7, 50, 3))
    with RowWriter.create(tmp_path / "a.h5", release=True) as writer:
        for piece in pieces:
            writer.append("rows", piece)
    with h5py.File(tmp_path / "a.h5") as file:
        assert np.array_equal(file["rows"][:], pieces.reshape(350, 3))
