"""Tasks on shards: no more compute than a process has threads for, and they tell of their time."""

import operator
import pickle
import threading
import time
from contextlib import nullcontext
from typing import ClassVar

import dask
import h5py
import numpy as np
import pytest
from commandline import write
from distributed import Client, LocalCluster
from rows_read import ReadBy

import streamkern
from streamkern.engine import shard_task
from streamkern.engine.reduction import accumulate
from streamkern.engine.shard_task import ComputeSlots
from streamkern.engine.task_stream import map_shards
from streamkern.features import RandomFourierFeatures
from streamkern.kernels import Gaussian
from streamkern.runtime.events import observed
from streamkern.sources import ArraySource, Block
from streamkern.statistics import (
    ColumnStatistics,
    Moments,
    Statistic,
    maximum,
    merged_by,
    moment_strips,
    total,
)

# Of a block, that it is read or computed: long beside what a busy machine takes to begin with it.
SECONDS = 0.08


class AtOnce(Statistic):
    """Counts how many threads of this process are at it."""

    most: int = maximum(start=0)
    present: ClassVar = []

    def update(self, blocks):
        for _ in blocks:
            self.present.append(1)
            time.sleep(SECONDS)
            self.most = max(self.most, len(self.present))
            self.present.pop()


class Busy(Statistic):
    """Counts rows slowly, and remembers how many threads were at it and with what memory."""

    n_rows: int = total(dtype=int)
    spans: list = merged_by(operator.add)
    reads: list = merged_by(operator.add)
    held: set = merged_by(operator.or_)

    def update(self, blocks):
        self.spans, self.reads, self.held = self.spans or [], self.reads or [], self.held or set()
        for block in blocks:
            begun = time.monotonic()
            self.held.add((threading.get_ident(), id(self.scratch)))
            time.sleep(SECONDS)
            self.n_rows += len(block)
            self.spans.append((begun, time.monotonic()))
            self.reads.append((block.X[0, 0], block.X[-1, 0]))


def most_at_once(spans):
    ends = sorted([(begun, 1) for begun, _ in spans] + [(ended, -1) for _, ended in spans])
    return int(np.cumsum([step for _, step in ends]).max())


def shared_seconds(some, others):
    return sum(max(min(b, d) - max(a, c), 0) for a, b in some for c, d in others)


def slow(seconds=SECONDS, lock=None):
    """What makes reading take so long; inputs are the times at which rows are read."""

    def read(blocks, _):
        for block in blocks:
            with lock or nullcontext():
                begun = time.monotonic()
                time.sleep(seconds)
                times = np.linspace(begun, time.monotonic(), len(block))
            yield Block(times[:, None], block.y, block.start)

    return read


def ones(n=80):
    return np.ones((n, 1)), np.ones(n)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_no_more_shards_compute_than_threads_and_memory_is_used_again(n_threads):
    with dask.config.set(scheduler="threads"):
        found = accumulate(
            ArraySource(*ones(40)), Busy(), shard_rows=8, block_rows=4, n_threads=n_threads
        )
    assert found.statistic.n_rows == 40
    assert most_at_once(found.statistic.spans) <= n_threads
    assert len({scratch for _, scratch in found.statistic.held}) == n_threads


@pytest.mark.parametrize(
    ("what", "reading"), [("accumulating", SECONDS), ("mapping", SECONDS), ("mapping", 2 * SECONDS)]
)
def test_storage_that_is_throttled_is_hidden_behind_the_work_or_hides_it(what, reading):
    source = ReadBy(*ones(24), slow(reading, threading.Lock()))
    busy = Busy()

    def mapped(blocks, *_):
        busy.update(blocks)

    with dask.config.set(scheduler="threads", num_workers=1):
        if what == "accumulating":
            busy = accumulate(source, busy, shard_rows=8, block_rows=2, n_threads=1).statistic
        else:
            list(map_shards(source, mapped, shard_rows=8, block_rows=2, label="mapped"))
    assert len(busy.spans) == len(busy.reads) == 12
    assert most_at_once(busy.spans) == most_at_once(busy.reads) == 1
    # In turns, they would share no time; the shorter is hidden, but for its ends.
    read, worked = (sum(b - a for a, b in each) for each in (busy.reads, busy.spans))
    assert shared_seconds(busy.reads, busy.spans) > 0.6 * min(read, worked)


@pytest.mark.cluster
@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_worker_reads_for_one_shard_while_it_computes_another(n_threads):
    with Client(n_workers=1, threads_per_worker=n_threads, dashboard_address=":0"):
        found = accumulate(ReadBy(*ones(), slow()), Busy(), shard_rows=8, block_rows=8)
    assert found.statistic.n_rows == 80
    assert most_at_once(found.statistic.spans) == n_threads
    assert len({scratch for _, scratch in found.statistic.held}) == n_threads
    # Of ten shards, all but the first are read while another computes, on a quiet machine; and
    # none on one thread if the worker waited for the end of a task.
    read = sum(b - a for a, b in found.statistic.reads)
    assert shared_seconds(found.statistic.reads, found.statistic.spans) > 0.15 * read


@pytest.mark.cluster
def test_a_pass_inside_a_task_of_somebody_else_leaves_that_task_alone(external_scheduler):
    def fit():
        with dask.config.set(scheduler="synchronous"):
            model = streamkern.RandomFeatureRidge(n_components=8, alpha=1.0)
            return model.fit(np.arange(60.0).reshape(30, 2), np.arange(30.0)).coef_

    with Client(external_scheduler) as client:
        assert np.array_equal(client.submit(fit, pure=False).result(), fit())


def test_workers_of_one_process_compute_at_the_same_time():
    rows, options = np.zeros((40, 2)), {"processes": False, "dashboard_address": ":0"}
    with LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster, Client(cluster):
        at_once = accumulate(ArraySource(rows, rows[:, 0]), AtOnce(), shard_rows=4).statistic
    assert at_once.most == 2


def test_a_slot_comes_back_after_an_error_and_a_copy_elsewhere_has_memory_of_its_own():
    slots = ComputeSlots(1)
    with pytest.raises(ZeroDivisionError), slots.taken():
        raise ZeroDivisionError
    with slots.taken() as scratch:
        scratch.array("large", (1 << 20,), np.float64)
        sent = pickle.dumps(slots)
    assert len(sent) < 1000
    with pickle.loads(sent).taken() as other:  # noqa: S301  made here
        assert other is not scratch


def told_of(source, statistic):
    events = []
    with observed(events.append):
        accumulate(source, statistic, shard_rows=4096, block_rows=1024)
    return [event for event in events if event["kind"] == "shard done"]


def moments():
    return Moments(RandomFourierFeatures(Gaussian(1.0), 64, random_state=0).draw(3), 1)


def normal_rows(n=20_000):
    X = np.random.default_rng(0).standard_normal((n, 3))
    return X, X[:, 0]


def assert_seconds_add_up(events):
    for event in events:
        seconds = dict(event["seconds"])
        seconds.pop("reading")
        assert set(seconds) == {"waiting", "features", "products", "other"}
        assert sum(seconds.values()) == pytest.approx(event["elapsed"])
        assert all(value >= 0 for value in seconds.values())


@pytest.mark.cluster
def test_seconds_add_up_on_workers_too_where_a_task_begins_within_another(
    tmp_path, external_scheduler
):
    X, y = normal_rows(200_000)
    write(tmp_path / "data.h5", X, y)
    with streamkern.connect(scheduler=external_scheduler):
        events = told_of(streamkern.open_hdf5(tmp_path / "data.h5"), moments())
    assert len(events) > 10
    assert_seconds_add_up(events)


def test_seconds_add_up_and_products_are_compared_with_what_can_be_attained():
    source = ArraySource(*normal_rows())
    events = told_of(source, moments())
    assert_seconds_add_up(events)
    assert all(event["attainable"] > 1e8 for event in events)
    assert all(event["attainable"] == 0 for event in told_of(source, ColumnStatistics(4)))
    assert ColumnStatistics(3).work is None


def test_a_shard_that_takes_long_says_how_far_it_is(monkeypatch):
    monkeypatch.setattr(shard_task, "_TELLING", 0.0)
    events = []
    with observed(events.append), dask.config.set(scheduler="synchronous"):
        cut = {"shard_rows": 4096, "block_rows": 4096, "read_rows": 1024}
        accumulate(ArraySource(*normal_rows(4096)), moments(), **cut)
    told = [each["rows"] for each in events if each["kind"] == "rows read"]
    assert told == [0, 1024, 2048, 3072]


def test_operations_are_those_of_the_products():
    # Of 64 features with each other, half of them, and with a target and a one.
    assert moments().work.flops_per_row == 64 * 65 + 2 * 64 * 2
    wide = Moments(RandomFourierFeatures(Gaussian(1.0), 1200, random_state=0).draw(3), 1)
    works = [strip.work for strip in moment_strips(wide, 2)]
    strips = [work.flops_per_row - 2 * work.order * 2 for work in works]
    assert sum(strips) == 1200 * 1201


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_decoding_is_told_from_reading_where_there_is_any(tmp_path, compression):
    X, y = normal_rows()
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(1024, 3), compression=compression)
        file.create_dataset("y", data=y, chunks=(1024,))
    for event in told_of(streamkern.open_hdf5(tmp_path / "data.h5"), moments()):
        assert event["seconds"]["reading"] > 0
        assert ("decoding" in event["seconds"]) == (compression is not None)
