"""The plan: known before the first read, and cut by the data and the options alone."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from streamkern.errors import InsufficientMemoryError
from streamkern.parameters import plan as planning
from streamkern.parameters.cost_estimate import solve_bytes
from streamkern.parameters.plan import plan_fit
from streamkern.runtime.memory import in_words
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
        monkeypatch.setattr(planning, "available_bytes", lambda n=1: free // n)

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


def accumulator(D):
    """A triangle of sums in double precision, its diagonal in blocks of 512."""
    return 8 * D * (D + 512) / 2


def with_folds(by, n_folds, *, D=4096, **options):
    """The projected bytes of a worker that cross-validates."""
    return on_workers(Described(), D, n_folds=n_folds, fold_by=by, **options).worker_bytes


def more(by, n_folds, *, n_threads=1):
    """What ten folds more take, in accumulators."""
    each = [with_folds(by, k, n_threads=n_threads) for k in (n_folds, n_folds + 10)]
    return (each[1] - each[0]) / accumulator(4096)


@pytest.mark.parametrize("by", ["shards", "blocks"])
def test_a_fold_of_whole_shards_costs_one_total(by):
    assert more(by, 20) == pytest.approx(10, rel=0.1)


def test_a_fold_of_rows_costs_a_sum_in_every_partial_that_is_held():
    # In the total, in the task, and in seven partials that wait.
    assert more("rows", 20) == pytest.approx(10 * 9, rel=0.1)


def test_a_task_holds_every_fold_by_rows_and_one_by_shards():
    for by, folds_held in (("rows", 40), ("shards", 1)):
        one, two = (with_folds(by, 40, n_threads=threads) for threads in (1, 2))
        assert folds_held <= (two - one) / accumulator(4096) < folds_held + 20
    none, some = (with_folds("shards", k, n_threads=2) for k in (20, 40))
    alone = [with_folds("shards", k, n_threads=1) for k in (20, 40)]
    assert none - alone[0] == some - alone[1]


@pytest.mark.parametrize(("D", "n_threads", "n_folds"), [(1024, 1, 1), (8192, 3, 5), (8192, 1, 5)])
def test_a_worker_is_projected_to_hold_what_solving_takes(D, n_threads, n_folds):
    needed = solve_bytes(D, 1, n_folds, n_threads) + (n_folds + 1) * accumulator(D)
    for by in ("shards", "rows", "blocks"):
        assert with_folds(by, n_folds, D=D, n_threads=n_threads) >= needed


def test_solving_takes_three_matrices_and_six_for_a_fold_that_is_scored():
    D = 8192
    assert solve_bytes(D, 0, 1, 4) == 3 * 8 * D * D
    one, two, many = (solve_bytes(D, 0, 5, threads) for threads in (1, 2, 100))
    assert two - one == pytest.approx(6.5 * 8 * D * D, rel=0.01)
    assert many == solve_bytes(D, 0, 5, 5)


def test_this_process_receives_one_model_whoever_makes_it():
    D = 8192
    one = on_workers(Described(), D).client_bytes
    for options in ({"n_folds": 40, "fold_by": "rows"}, {"n_threads": 9}, {"n_workers": 100}):
        assert on_workers(Described(), D, **options).client_bytes == one
    assert accumulator(D) <= one - on_workers(Described(), 2).client_bytes <= 1.1 * accumulator(D)
    assert one < on_workers(Described(), D).worker_bytes / 2


@pytest.mark.parametrize("process", ["worker_bytes", "client_bytes"])
def test_a_larger_sample_is_counted(process):
    source = Described(p=100)
    small, large = (
        getattr(on_workers(source, 64, n_sample=rows), process) for rows in (2048, 16_384)
    )
    assert large - small >= (16_384 - 2048) * 8 * 101


def test_rows_cost_memory_where_they_are_to_be_known_again_only():
    plans = [on_workers(Described(n), 2048, indexed=True) for n in (10**6, 10**8)]
    for process in ("worker_bytes", "client_bytes"):
        assert getattr(plans[1], process) - getattr(plans[0], process) >= 9 * 99 * 10**6
    assert plans[1].index_bytes == 100 * plans[0].index_bytes
    assert on_workers(Described(), 2048).index_bytes == 0


@pytest.mark.parametrize(
    ("n_shards", "n_folds", "by"),
    [(18, 6, "shards"), (17, 6, "rows"), (9, 3, "shards"), (8, 3, "rows"), (1, 1, "rows")],
)
def test_rows_are_dealt_where_there_are_fewer_than_three_shards_a_fold(n_shards, n_folds, by):
    sources = (Described(8192 * i) for i in range(1, 60))
    source = next(s for s in sources if len(s.shards(32768, 8192)) == n_shards)
    plan = plan_fit(source, 64, n_folds=n_folds)
    assert plan.n_shards == n_shards
    assert plan.fold_by == by


@pytest.mark.parametrize("by", ["shards", "rows", "blocks"])
@pytest.mark.parametrize("n", [1000, 10**7])
def test_a_way_to_deal_rows_that_is_given_is_taken(by, n):
    assert plan_fit(Described(n), 64, n_folds=5, fold_by=by).fold_by == by


def test_folds_change_no_cut():
    source = Described(3_000_000, chunk_rows=1000)
    cuts = {
        tuple(getattr(plan_fit(source, 2048, n_folds=k, fold_by=by), name) for name in CUTS)
        for k in (1, 2, 10)
        for by in ("shards", "rows", "blocks")
    }
    assert len(cuts) == 1


def test_folds_are_work_for_the_solve_only():
    D = 2048
    none, five = (on_workers(Described(), D, n_folds=k).flops for k in (1, 5))
    assert none == pytest.approx(1e6 * D * (D + 10) + D**3 / 3)
    assert five - none == pytest.approx(6 * 5 * D**3 - D**3 / 3)


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
            plan = plan_fit(source, 2048, n_folds=5, **place)
            cuts.add(tuple(getattr(plan, name) for name in [*CUTS, "fold_by"]))
    assert len(cuts) == 1


def test_shards_are_those_of_the_source():
    source = Described(3_000_000, chunk_rows=777)
    plan = plan_fit(source, 512)
    assert plan.n_shards == len(source.shards(plan.shard_rows, plan.block_rows))
    assert 64 <= plan.n_shards <= 192


@pytest.mark.parametrize("n", [1, 100, 16_384, 16_385, 10**6, 10**9])
def test_shards_are_neither_tiny_nor_huge(n):
    plan = plan_fit(Described(n), 1024)
    assert plan.n_shards <= min(-(-n // plan.block_rows), n // plan.shard_rows + 24)
    assert 32768 <= plan.shard_rows <= 1 << 20
    sizes = [shard.n_rows for shard in Described(n).shards(plan.shard_rows, plan.block_rows)]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == n


@pytest.mark.parametrize(
    ("D", "chunk_rows"), [(1, 1024), (64, 333), (2048, 2), (16_384, 100), (100_000, 1000)]
)
def test_blocks_are_whole_chunks_and_shards_whole_blocks(D, chunk_rows):
    plan = plan_fit(Described(10**7, chunk_rows=chunk_rows), D)
    assert plan.block_rows % chunk_rows == 0
    assert plan.shard_rows % plan.block_rows == 0
    assert 512 < plan.block_rows <= 8192


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
    # Three would fit, but with two threads each two of eight cores would idle.
    assert (plan.n_workers, plan.n_threads, plan.blas_threads) == (2, 1, 4)
    assert plan.worker_bytes <= plan.allowed_bytes
    assert plan.n_workers * plan.allowed_bytes <= 3 * need + need // 2
    plan.check()


def test_one_process_has_no_more_threads_than_its_interpreter_serves(machine):
    machine(64, 1 << 38)
    plan = plan_fit(Described(50_000), 4096)
    assert (plan.n_workers, plan.n_threads, plan.blas_threads) == (0, 16, 1)


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


def test_a_worker_without_room_is_refused_with_both_numbers(machine):
    plan = on_workers(Described(), 40_000, allowed_bytes=2 * GB)
    message = (
        f"40,000 components need {in_words(plan.worker_bytes)} in a worker, but "
        f"{in_words(2 * GB)} may be used; take fewer components"
    )
    with pytest.raises(InsufficientMemoryError, match=re.escape(message)):
        plan.check()


def test_a_model_without_room_to_receive_it_is_refused_with_both_numbers(machine):
    machine(8, 4 * GB)
    plan = on_workers(Described(), 40_000, allowed_bytes=1000 * GB)
    message = (
        f"40,000 components needs {in_words(plan.client_bytes)} in this process, but "
        f"{in_words(4 * GB)} is free; take fewer components"
    )
    with pytest.raises(InsufficientMemoryError, match=re.escape(message)):
        plan.check()


def test_an_index_without_room_is_refused_with_its_rows(machine):
    plan = on_workers(Described(10**9), 64, indexed=True)
    with pytest.raises(InsufficientMemoryError, match="64 components and an index of 1,000,000,00"):
        plan.check()


@pytest.mark.parametrize(("D", "n_folds"), [(64, 5), (2048, 1), (16_384, 5)])
def test_a_job_that_runs_in_one_process_counts_all_of_it(n_folds, D, machine):
    plan = plan_fit(Described(10**6), D, n_folds=n_folds, n_workers=0, n_threads=1)
    assert plan.worker_bytes >= plan.client_bytes


def test_a_plan_is_json():
    plan = plan_fit(Described(), 2048)
    said = json.loads(json.dumps(plan.as_dict()))
    assert said == plan.as_dict()
    assert said["n_rows"] == 1_000_000
    assert said["worker_bytes"] == plan.worker_bytes
    assert said["fold_by"] == "shards"
    assert said["seconds"] > 0


def test_a_person_is_told_memory_projected_and_allowed():
    said = dict(on_workers(Described(), 2048).rows())
    plan = on_workers(Described(), 2048)
    assert said["memory of a worker"].startswith(in_words(plan.worker_bytes))
    assert said["memory allowed"] == in_words(GB)
    assert said["runs in"] == "2 worker processes"
