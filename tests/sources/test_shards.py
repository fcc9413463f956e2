"""Where rows are cut: between storage chunks, once, and by the data and the option alone."""

import os
import shutil
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows_read import store

from streamkern.sources import ArraySource, Shard, open_hdf5
from streamkern.sources.base import Segment


class Cuts(ArraySource):
    """Segments of given sizes and chunks."""

    def __init__(self, sizes):
        super().__init__(np.zeros((sum(n for n, _ in sizes), 1)))
        stops = np.cumsum([n for n, _ in sizes]).tolist()
        self.parts = [Segment(b - n, b, c) for b, (n, c) in zip(stops, sizes, strict=True)]

    def segments(self):
        return self.parts


def allowed_cuts(segments):
    """List every place where rows may be cut, one by one."""
    cuts = set()
    for segment in segments:
        cuts.update(range(segment.start, segment.stop, segment.chunk_rows))
        cuts.add(segment.stop)
    return cuts


sources = st.lists(st.tuples(st.integers(0, 200), st.integers(1, 60)), min_size=1, max_size=6)
sources = sources.filter(lambda sizes: sum(n for n, _ in sizes)).map(Cuts)


@settings(max_examples=100)
@given(source=sources, n_rows=st.integers(1, 300))
def test_shards_cover_every_row_once_and_are_as_large_as_chunks_allow(source, n_rows):
    shards, segments = source.shards(n_rows), source.segments()
    assert [shard.index for shard in shards] == list(range(len(shards)))
    assert (shards[0].start, shards[-1].stop) == (0, source.n_samples)
    assert all(before.stop == after.start for before, after in pairwise(shards))
    assert {shard.stop for shard in shards} <= allowed_cuts(segments)
    largest = max(segment.chunk_rows for segment in segments)
    assert all(0 < shard.n_rows <= max(n_rows, largest) for shard in shards)
    for shard in shards[:-1]:  # has no room for another whole chunk
        for segment in segments:
            if segment.start <= shard.stop <= segment.stop - segment.chunk_rows:
                assert shard.n_rows + segment.chunk_rows > n_rows


def test_the_last_shards_become_smaller_in_whole_steps():
    sizes = [shard.n_rows for shard in Cuts([(1000, 1)]).shards(200, 50)]
    assert sizes == [200, 200, 150, 100, *[50] * 7]


def test_small_files_share_a_shard():
    assert Cuts([(10, 4)] * 5).shards(25) == (Shard(0, 0, 24), Shard(1, 24, 48), Shard(2, 48, 50))


@pytest.mark.parametrize("n_rows", [1, 9, 64, 1000])
def test_shards_depend_on_the_data_and_the_option_alone(tmp_path, monkeypatch, n_rows):
    path = store(tmp_path / "a.h5", np.zeros((200, 2)), chunks=(9, 2))
    first = open_hdf5(path, y=None).shards(n_rows)
    shutil.copy(path, tmp_path / "moved.h5")
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", "tcp://nowhere:1")
    assert open_hdf5(tmp_path / "moved.h5", y=None).shards(n_rows) == first


def test_columns_of_chunks_do_not_change_where_rows_are_cut(tmp_path):
    wide, narrow = (
        open_hdf5(store(tmp_path / f"{n}.h5", np.zeros((100, 6)), chunks=(8, n)), y=None)
        for n in (6, 1)
    )
    assert wide.shards(30) == narrow.shards(30)
    assert wide.chunk_bytes == narrow.chunk_bytes == 8 * 6 * 8
