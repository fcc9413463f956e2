"""Which bytes hold which rows, all of them and no others."""

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows_read import STORED, N, P, virtual, write

from streamkern.sources.chunks import ByteRange, StoredRows, requests, stored_rows


def stored(X, first, last):
    """Every chunk that holds some of these rows, as HDF5 finds it by its coordinates."""
    if X.chunks is None:
        origin, row_bytes = X.id.get_offset(), 4 * P
        return [(origin + first * row_bytes, origin + last * row_bytes)]
    tall, wide = X.chunks
    found = [
        X.id.get_chunk_info_by_coord((row, column))
        for row in range(first - first % tall, last, tall)
        for column in range(0, P, wide)
    ]
    return sorted((chunk.byte_offset, chunk.byte_offset + chunk.size) for chunk in found)


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("name", STORED)
def test_the_bytes_of_rows_are_those_that_hdf5_says(tmp_path, name, libver):
    path = write(tmp_path / "a.h5", libver=libver, userblock=512, **STORED[name])
    with h5py.File(path) as file:
        X = file["X"]
        for first, last in ((0, N), (1000, 1001), (1000, 2048), (4999, N)):
            pieces = StoredRows.of(X).between(first, last)
            ranges = sorted((piece.start, piece.stop) for piece in pieces)
            assert ranges == stored(X, first, last)


@pytest.mark.parametrize("name", ["contiguous", "chunks"])
def test_the_bytes_are_the_rows_whatever_is_before_them(tmp_path, name):
    path = write(tmp_path / "a.h5", userblock=4096, **STORED[name])
    whole = path.read_bytes()
    with h5py.File(path) as file:
        pieces = list(StoredRows.of(file["X"]).between(0, N))
        found = b"".join(whole[piece.start : piece.stop] for piece in pieces)
        assert np.array_equal(np.frombuffer(found, "f4")[: N * P].reshape(N, P), file["X"][:])


@pytest.mark.parametrize("name", ["chunks", "chunks of columns", "many chunks"])
def test_every_piece_says_which_rows_it_holds(tmp_path, name):
    tall = STORED[name]["chunks"][0]
    with h5py.File(write(tmp_path / "a.h5", **STORED[name])) as file:
        table = StoredRows.of(file["X"])
    assert table.ends(1) == table.ends(tall) == tall
    assert table.ends(tall + 1) == 2 * tall
    for piece in table.between(1000, 3000):
        assert piece.last - piece.first == tall
        assert piece.first < 3000
        assert piece.last > 1000


def test_an_index_is_read_once_in_a_process(tmp_path):
    with h5py.File(write(tmp_path / "a.h5", chunks=(100, P))) as file:
        assert stored_rows("one", file["X"]) is stored_rows("one", file["X"])
        assert stored_rows("one", file["X"]) is not stored_rows("another", file["X"])


def test_rows_that_were_never_written_or_are_elsewhere_have_no_bytes(tmp_path):
    part = str(write(tmp_path / "b.h5")), "X", (N, P), np.s_[:]
    with h5py.File(virtual(tmp_path / "a.h5", (N, P), part, dtype="f4"), "r+") as file:
        file.create_dataset("unwritten", (N, P), "f4")
        file.create_dataset("unwritten chunks", (N, P), "f4", chunks=(10, P))
        for empty in file.values():
            assert list(StoredRows.of(empty).between(0, N)) == []


PIECES = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 90)), min_size=1, max_size=12)


@settings(max_examples=100, deadline=None)
@given(gaps_and_sizes=PIECES, most=st.integers(1, 100), gap=st.integers(0, 30))
def test_requests_ask_for_every_byte_once(gaps_and_sizes, most, gap):
    pieces, at = [], 0
    for row, (space, size) in enumerate(gaps_and_sizes):
        first = 5 * row % 12  # chunks are stored in any order
        pieces.append(ByteRange(first, first + 1, at + space, at + space + size))
        at += space + size
    asked = list(requests(iter(reversed(pieces)), most, gap))
    wanted = [byte for piece in pieces for byte in range(piece.start, piece.stop)]
    found = [byte for request in asked for byte in range(request.start, request.stop)]
    assert len(set(found)) == len(found)
    assert set(wanted) <= set(found)
    assert len(found) - len(wanted) <= gap * len(pieces)
    for request in asked:
        assert 0 < request.stop - request.start <= most
        inside = [p for p in pieces if p.start < request.stop and request.start < p.stop]
        assert request.first == min(piece.first for piece in inside)
        assert request.last == max(piece.last for piece in inside)


def test_chunks_beside_each_other_are_one_request(tmp_path):
    with h5py.File(write(tmp_path / "a.h5", chunks=(100, P))) as file:
        table = StoredRows.of(file["X"])
    whole = sum(piece.stop - piece.start for piece in table.between(0, N))
    assert len(list(requests(table.between(0, N), 1 << 20, 16 << 10))) == 1
    assert len(list(requests(table.between(0, N), 1 << 14, 0))) >= whole >> 14
