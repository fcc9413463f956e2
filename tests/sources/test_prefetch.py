"""Bytes asked for before HDF5 reads them: the right ones, side by side, only where slow."""

import os
import threading
import time

import h5py
import numpy as np
import pytest
from rows_read import STORED, N, P, write

from streamkern import open_hdf5
from streamkern.sources import Shard, chunks
from streamkern.sources.chunks import Prefetch, StoredRows


class SlowReads:
    """`os.pread` of a disk that takes long to answer."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.asked, self.now, self.most = [], 0, 0
        self.read = os.pread
        self.lock = threading.Lock()

    def __call__(self, file, size, offset):
        with self.lock:
            self.asked.append((offset, size))
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(self.seconds)
        with self.lock:
            self.now -= 1
        return self.read(file, size, offset)


def slow_reads(monkeypatch, seconds):
    reads = SlowReads(seconds)
    monkeypatch.setattr(os, "pread", reads)
    return reads


def stored(path, first, last):
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
    expected, reads = stored(path, 1000, 4000), slow_reads(monkeypatch, 0.01)
    blocks = [
        (block.X.copy(), block.y.copy())
        for block in source.reader(Shard(0, 1000, 4000)).blocks(999)
    ]
    assert np.array_equal(np.concatenate([X for X, _ in blocks]), X[1000:4000])
    assert np.array_equal(np.concatenate([y for _, y in blocks])[:, 0], y[1000:4000])
    covered = {byte for start, size in reads.asked for byte in range(start, start + size)}
    assert covered <= {byte for start, size in expected for byte in range(start, start + size)}
    if name in ("chunks", "chunks of columns"):
        assert 1 < reads.most <= chunks._AT_ONCE
    assert len(reads.asked) <= 2 * len(expected) + 8


def test_fast_rows_are_left_to_hdf5(tmp_path, monkeypatch):
    reads = slow_reads(monkeypatch, 0.0)
    monkeypatch.setattr(chunks, "_SLOW_SECONDS", 10.0)
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
    assert set(reads.asked) == set(stored(path, 0, 1000))
    list(blocks)
    time.sleep(0.2)
    assert set(reads.asked) <= set(stored(path, 0, 2000))


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
