"""Which bytes hold which rows, all of them and no others; and bytes that are asked for ahead."""

import os
import time
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows_read import STORED, N, P, virtual, write

from streamkern import open_hdf5
from streamkern.sources import Shard, read_ahead
from streamkern.sources.chunks import ByteRange, StoredRows, requests, stored_rows
from streamkern.sources.read_ahead import Prefetch


def ranges(pieces):
    return sorted((piece.start, piece.stop) for piece in pieces)


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
            assert ranges(StoredRows.of(X).between(first, last)) == stored(X, first, last)


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


@settings(max_examples=200, deadline=None)
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


# Bytes asked for before HDF5 reads them.


def slow_reads(monkeypatch, seconds):
    """Have `os.pread` take long, and note what it is asked for, and how often at once."""
    pread, reads, under_way = os.pread, SimpleNamespace(asked=[], at_once=[]), []

    def read(file, size, offset):
        reads.asked.append((offset, size))
        under_way.append(offset)
        reads.at_once.append(len(under_way))
        time.sleep(seconds)
        under_way.remove(offset)
        return pread(file, size, offset)

    monkeypatch.setattr(os, "pread", read)
    return reads


def stored_bytes(path, first, last):
    """What is stored of rows of both datasets, as offsets and sizes of at most 1 MiB."""
    with h5py.File(path) as file:
        return [
            (start, min(1 << 20, piece.stop - start))
            for dataset in (file["X"], file["y"])
            for piece in StoredRows.of(dataset).between(first, last)
            for start in range(piece.start, piece.stop, 1 << 20)
        ]


@pytest.mark.parametrize("name", STORED)
def test_slow_rows_are_asked_for_once_and_side_by_side(tmp_path, monkeypatch, name):
    path = write(tmp_path / "a.h5", **STORED[name])
    source = open_hdf5(path)
    with h5py.File(path) as file:
        X, y = file["X"][:], file["y"][:]
    expected, reads = stored_bytes(path, 1000, 4000), slow_reads(monkeypatch, 0.01)
    at = 1000
    for block in source.reader(Shard(0, 1000, 4000)).blocks(999):
        rows = slice(at, at := at + len(block))
        assert np.array_equal(block.X, X[rows])
        assert np.array_equal(block.y[:, 0], y[rows])
    assert at == 4000
    covered = {byte for start, size in reads.asked for byte in range(start, start + size)}
    assert covered <= {byte for start, size in expected for byte in range(start, start + size)}
    if name in ("chunks", "chunks of columns"):
        assert 1 < max(reads.at_once) <= read_ahead._AT_ONCE
    assert len(reads.asked) <= 2 * len(expected) + 8


def test_fast_rows_are_left_to_hdf5(tmp_path, monkeypatch):
    reads = slow_reads(monkeypatch, 0.0)
    monkeypatch.setattr(read_ahead, "_SLOW_SECONDS", 10.0)
    source = open_hdf5(write(tmp_path / "a.h5", chunks=(100, P)))
    assert sum(len(block) for block in source.reader(Shard(0, 0, N)).blocks(500)) == N
    # It looks once a block and dataset.
    assert len(reads.asked) == 2 * 10


def test_no_more_is_asked_for_than_two_blocks_and_the_end_of_the_shard(tmp_path, monkeypatch):
    path = write(tmp_path / "a.h5", chunks=(100, P))
    source = open_hdf5(path)
    reads = slow_reads(monkeypatch, 0.01)
    blocks = source.reader(Shard(0, 0, 2000)).blocks(500)
    next(blocks)
    time.sleep(0.2)
    assert set(reads.asked) == set(stored_bytes(path, 0, 1000))
    list(blocks)
    time.sleep(0.2)
    assert set(reads.asked) <= set(stored_bytes(path, 0, 2000))


def test_large_chunks_are_asked_for_in_pieces(tmp_path, monkeypatch):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", data=np.zeros((3000, 200)), chunks=(3000, 200))
    reads = slow_reads(monkeypatch, 0.01)
    source = open_hdf5(tmp_path / "a.h5", y=None)
    list(source.reader(Shard(0, 0, 3000)).blocks(1500))
    sizes = [size for _, size in set(reads.asked)]
    assert (max(sizes), sum(sizes)) == (1 << 20, 3000 * 200 * 8)


def test_what_cannot_be_read_ahead_is_no_error_here(tmp_path):
    with Prefetch(str(tmp_path / "missing.h5"), [], 10, 10) as ahead:
        assert ahead._file < 0
