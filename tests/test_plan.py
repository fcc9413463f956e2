"""The plan: known before the first read, and cut by the data and the options alone."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from streamkern import plan as planning
from streamkern.errors import InsufficientMemoryError
from streamkern.memory import in_words
from streamkern.plan import plan_fit
from streamkern.sources.base import Segment, Source

GB = 1 << 30


class Described(Source):
    """Rows that are described, and nowhere."""

    def __init__(self, n=1_000_000, p=10, q=1, dtype="f4", chunk_rows=1):
        self.n_samples, self.n_features, self.n_targets = n, p, q
        self.target_ndim = 2
        self.dtype = np.dtype(dtype)
        self.chunk_rows = chunk_rows
        self.chunk_bytes = chunk_rows * self.row_bytes

    def segments(self):
        return [Segment(0, self.n_samples, self.chunk_rows)]

    def reader(self, shard):
        pytest.fail(f"a plan read {shard}")

    def check_unchanged(self):
        raise NotImplementedError

    def locate(self, row):
        return f"row {row}"

    def describe(self):
        return {}


@pytest.fixture
def machine(monkeypatch):
    """Say how many cores there are, and how much memory is free."""

    def set_up(cores, free):
        monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(cores)), raising=False)
        monkeypatch.setattr(planning, "available_bytes", lambda: free)

    set_up(8, 512 * GB)
    return set_up


def on_workers(source, D, **options):
    return plan_fit(source, D, **{"n_workers": 2, "n_threads": 1, "allowed_bytes": GB} | options)


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("process", ["worker_bytes", "client_bytes"])
def test_projected_bytes_grow_with_the_square_of_the_components(precision, process):
    sizes = [
        getattr(on_workers(Described(), D, precision=precision), process)
        for D in (8192, 16384, 32768)
    ]
    assert (sizes[2] - sizes[1]) / (sizes[1] - sizes[0]) == pytest.approx(4, rel=0.05)


def test_a_worker_is_projected_to_hold_at_least_its_sums_and_one_product():
    D = 16384
    assert on_workers(Described(), D).worker_bytes > 8 * D * D / 2 + 4 * D * D


def test_projected_bytes_do_not_grow_with_the_rows():
    plans = [on_workers(Described(n), 2048) for n in (10**6, 10**7, 10**9)]
    assert len({plan.worker_bytes for plan in plans}) == 1
    assert len({plan.client_bytes for plan in plans}) == 1
    assert plans[0].flops < plans[1].flops < plans[2].flops


@pytest.mark.parametrize(
    "more",
    [{"p": 100_000}, {"q": 500}, {"chunk_rows": 100_000, "p": 1000}, {"p": 100_000, "dtype": "f8"}],
    ids=["inputs", "targets", "tall chunks", "wide rows in double"],
)
def test_projected_bytes_grow_with_what_a_block_holds(more):
    assert (
        on_workers(Described(**more), 2048).worker_bytes
        > 1.01 * on_workers(Described(), 2048).worker_bytes
    )


def test_a_process_with_more_threads_is_projected_to_need_more():
    one, four = (on_workers(Described(), 2048, n_threads=n).worker_bytes for n in (1, 4))
    assert four > one + 3 * (4 * 2048**2)


CUTS = ["shard_rows", "n_shards", "block_rows", "column_block_rows", "graph_tasks"]


def test_cuts_do_not_depend_on_who_does_the_work(machine):
    source = Described(3_000_000, chunk_rows=1000)
    places = [
        {},
        {"n_workers": 0, "n_threads": 1},
        {"n_workers": 0, "n_threads": 64},
        {"n_workers": 1},
        {"n_workers": 1000, "n_threads": 4, "allowed_bytes": 10 * GB},
        {"allowed_bytes": 1},
    ]
    cuts = set()
    for cores, free in ((1, GB), (128, 4096 * GB)):
        machine(cores, free)
        for place in places:
            plan = plan_fit(source, 2048, **place)
            cuts.add(tuple(getattr(plan, name) for name in CUTS))
    assert len(cuts) == 1


def test_shards_are_those_of_the_source():
    source = Described(3_000_000, chunk_rows=777)
    plan = plan_fit(source, 512)
    assert plan.n_shards == len(source.shards(plan.shard_rows))
    assert 64 <= plan.n_shards <= 192


@pytest.mark.parametrize("n", [1, 100, 16_384, 16_385, 10**6, 10**9])
def test_shards_are_neither_tiny_nor_huge(n):
    plan = plan_fit(Described(n), 1024)
    assert plan.n_shards <= max(-(-n // 16384), 1)
    assert 16384 <= plan.shard_rows <= 1 << 20


@pytest.mark.parametrize("D", [1, 64, 2048, 16_384, 100_000])
@pytest.mark.parametrize("chunk_rows", [2, 100, 333, 1000, 1024])
def test_blocks_are_whole_chunks_and_shards_whole_blocks(D, chunk_rows):
    plan = plan_fit(Described(10**7, chunk_rows=chunk_rows), D)
    assert plan.block_rows % chunk_rows == 0
    assert plan.shard_rows % plan.block_rows == 0
    assert 512 < plan.block_rows <= 8192


def test_a_block_is_no_taller_than_the_data():
    assert plan_fit(Described(100), 16).block_rows == 100


def test_small_work_is_done_in_this_process(machine):
    plan = plan_fit(Described(10_000), 64)
    assert (plan.n_workers, plan.n_threads, plan.blas_threads) == (0, 8, 1)


def test_large_work_is_done_by_a_worker_process_a_core(machine):
    plan = plan_fit(Described(10**8), 2048)
    assert (plan.n_workers, plan.n_threads, plan.blas_threads) == (8, 1, 1)


def test_workers_are_fewer_where_memory_is_short_and_have_more_blas_threads(machine):
    need = plan_fit(Described(10**8), 8192).worker_bytes
    machine(8, 3 * need + need // 2)
    plan = plan_fit(Described(10**8), 8192)
    assert (plan.n_workers, plan.n_threads, plan.blas_threads) == (3, 1, 2)
    assert plan.worker_bytes <= plan.allowed_bytes
    assert plan.n_workers * plan.allowed_bytes <= 3 * need + need // 2
    plan.check()


def test_threads_of_this_process_are_fewer_where_memory_is_short(machine):
    source, D = Described(50_000), 4096
    roomy = plan_fit(source, D)
    assert (roomy.n_workers, roomy.n_threads) == (0, 8)
    machine(8, roomy.worker_bytes // 2)
    plan = plan_fit(source, D)
    assert plan.n_workers == 0
    assert 1 <= plan.n_threads < 8
    assert plan.blas_threads == 8 // plan.n_threads
    assert plan.worker_bytes <= plan.allowed_bytes


def test_places_that_are_given_are_taken(machine):
    plan = plan_fit(Described(10**8), 2048, n_workers=5, n_threads=3, allowed_bytes=7 * GB)
    assert (plan.n_workers, plan.n_threads, plan.allowed_bytes) == (5, 3, 7 * GB)


def test_a_job_that_fits_is_not_refused(machine):
    plan_fit(Described(), 2048).check()


def test_a_worker_without_room_is_refused_with_both_numbers(machine):
    plan = on_workers(Described(), 40_000, allowed_bytes=2 * GB)
    message = (
        f"40,000 components need {in_words(plan.worker_bytes)} in a worker, but "
        f"{in_words(2 * GB)} may be used; take fewer components"
    )
    with pytest.raises(InsufficientMemoryError, match=re.escape(message)):
        plan.check()


def test_a_solve_without_room_is_refused_with_both_numbers(machine):
    machine(8, 4 * GB)
    plan = on_workers(Described(), 40_000, allowed_bytes=1000 * GB)
    message = f"needs {in_words(plan.client_bytes)} in this process, but {in_words(4 * GB)} is free"
    with pytest.raises(InsufficientMemoryError, match=re.escape(message)):
        plan.check()


def test_a_job_that_runs_and_solves_in_one_process_counts_the_solve(machine):
    plan = plan_fit(Described(1000), 16_384, n_workers=0, n_threads=1)
    assert plan.worker_bytes >= plan.client_bytes


def test_a_plan_is_json():
    plan = plan_fit(Described(), 2048)
    said = json.loads(json.dumps(plan.as_dict()))
    assert said == plan.as_dict()
    assert said["n_rows"] == 1_000_000
    assert said["worker_bytes"] == plan.worker_bytes
    assert said["seconds"] > 0


def test_more_cores_are_thought_to_be_faster(machine):
    seconds = [on_workers(Described(), 2048, n_workers=workers).seconds for workers in (1, 2, 10)]
    assert seconds[0] == pytest.approx(2 * seconds[1]) == pytest.approx(10 * seconds[2])


def test_a_person_is_told_memory_projected_and_allowed():
    said = dict(on_workers(Described(), 2048).rows())
    plan = on_workers(Described(), 2048)
    assert said["memory of a worker"].startswith(in_words(plan.worker_bytes))
    assert said["memory allowed"] == in_words(GB)
    assert said["runs in"] == "2 worker processes"
