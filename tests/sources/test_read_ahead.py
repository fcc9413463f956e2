"""Reading ahead: the same blocks, one at most beyond the one in use, errors where they belong."""

import os
import threading
import time
from contextlib import suppress
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from rows_read import STORED, N, P, write

from streamkern import open_hdf5
from streamkern.sources import Block, Shard, read_ahead, reading_ahead
from streamkern.sources.chunks import StoredRows
from streamkern.sources.read_ahead import Prefetch


def blocks(n=5):
    for i in range(n):
        yield Block(np.full((1, 2), i), np.zeros((1, 0)), i)


@pytest.mark.parametrize("n", [0, 1, 2, 8])
def test_the_same_blocks_come_in_order_one_at_most_beyond_the_one_in_use(n):
    begun, used = [], []

    def counted():
        for block in blocks(n):
            begun.append(block.start)
            yield block

    with reading_ahead(counted()) as read:
        for block in read:
            time.sleep(0.02)
            assert max(begun) <= block.start + 1
            used.append(block.start)
    assert begun == used == list(range(n))


def test_a_block_is_read_while_another_is_in_use():
    reading, in_use = threading.Event(), threading.Event()

    def waiting():
        yield from blocks(1)
        reading.set()
        # Would wait in vain if nothing were in use meanwhile.
        assert in_use.wait(10)
        yield from blocks(1)

    with reading_ahead(waiting()) as read:
        next(read)
        assert reading.wait(10)
        in_use.set()
        next(read)


def test_what_reading_raises_is_raised_where_the_block_is_asked_for():
    def failing():
        yield from blocks(2)
        raise OSError("the disk is gone")

    with reading_ahead(failing()) as read:
        assert [next(read).start, next(read).start] == [0, 1]
        with pytest.raises(OSError, match="the disk is gone"):
            next(read)


def test_what_is_read_from_is_closed_however_it_is_left_and_no_thread_stays():
    before, closed = threading.active_count(), []

    def file():
        try:
            yield from blocks(9)
        finally:
            closed.append(True)

    with suppress(ZeroDivisionError), reading_ahead(file()) as read:
        next(read)
        raise ZeroDivisionError
    with reading_ahead(file()) as read:
        next(read)
    assert closed == [True, True]
    assert threading.active_count() == before


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
    assert max(sizes) == 1 << 20
    assert 1 << 20 < sum(sizes) <= 3000 * 200 * 8  # the last may be there before it is asked for


def test_what_cannot_be_read_ahead_is_no_error_here(tmp_path):
    with Prefetch(str(tmp_path / "missing.h5"), [], 10, 10) as ahead:
        assert ahead._file < 0
