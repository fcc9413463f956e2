"""The plan: known before the first read, and cut by the data and the options alone."""

import json
import re

import numpy as np
import pytest
from rows_read import python

from streamkern.errors import InsufficientMemoryError
from streamkern.features import LEVELS
from streamkern.parameters import cost_estimate
from streamkern.parameters.footprint import Footprint, solve_bytes
from streamkern.parameters.parameters import Parameters
from streamkern.parameters.planning import plan_fit, plan_system
from streamkern.registry import extension
from streamkern.runtime.memory import in_words
from streamkern.sources import ArraySource
from streamkern.sources.base import Segment, Source

GB = 1 << 30
PROCESSES = ("worker_bytes", "client_bytes")


def by_passes(name):
    """The memory of conjugate gradients, where they are installed."""
    return getattr(extension("gradients", "iterative_plan"), name)


def by_sums():
    """The memory of conjugate gradients by sums of waves, where both are installed."""
    own = extension("fields", "toeplitz").Toeplitz
    return extension("gradients", "iterative_plan").footprint_of(own)


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
        for module in ("plan", "planning"):
            name = f"streamkern.parameters.{module}.available_bytes"
            monkeypatch.setattr(name, lambda n=1: free // n)

    set_up(8, 512 * GB)
    return set_up


def on_workers(source, D, *, precision="single", **options):
    needs = Footprint
    if precision in LEVELS:
        needs = extension("integers", "integer_system").IntegerFootprint
    place = {"n_workers": 2, "n_threads": 1, "allowed_bytes": GB}
    return plan_system(source, D, needs_of=needs, precision=precision, **place | options)


def where(plan):
    return plan.n_workers, plan.n_threads, plan.blas_threads


@pytest.mark.parametrize("precision", ["single", "double", "int8", "int16"])
def test_projected_bytes_grow_with_the_square_of_the_components(precision):
    plans = [on_workers(Described(), D, precision=precision) for D in (8192, 16384, 32768)]
    for process in PROCESSES:
        sizes = [getattr(plan, process) for plan in plans]
        assert (sizes[2] - sizes[1]) / (sizes[1] - sizes[0]) == pytest.approx(4, rel=0.05)
    assert plans[1].worker_bytes > (8 / 2 + 4) * 16384**2  # sums, and one product


def test_projected_bytes_do_not_grow_with_the_rows_unless_they_are_to_be_known_again():
    plans = [on_workers(Described(n), 2048) for n in (10**6, 10**7, 10**9)]
    assert len({(plan.worker_bytes, plan.client_bytes) for plan in plans}) == 1
    assert plans[0].flops < plans[1].flops < plans[2].flops
    assert plans[0].index_bytes == 0
    few, many = (on_workers(Described(n), 2048, indexed=True) for n in (10**6, 10**8))
    for process in PROCESSES:
        assert getattr(many, process) - getattr(few, process) >= 9 * 99 * 10**6
    assert many.index_bytes == 100 * few.index_bytes


@pytest.mark.parametrize(
    "more",
    [{"p": 100_000}, {"q": 500}, {"chunk_rows": 100_000, "p": 1000}, {"p": 100_000, "dtype": "f8"}],
    ids=["inputs", "targets", "tall chunks", "wide rows in double"],
)
def test_projected_bytes_grow_with_what_a_block_holds(more):
    plain, larger = (on_workers(Described(**each), 2048).worker_bytes for each in ({}, more))
    assert larger > 1.01 * plain


def test_integers_are_counted_in_three_words_and_as_digits():
    for q, more in ((1, 4 * 2048 * 8192), (500, 7 * 8 * 2048 * 500)):
        one, two = (on_workers(Described(q=q), 2048, precision=p) for p in ("single", "int8"))
        assert two.worker_bytes > one.worker_bytes + more


def accumulator(D):
    """A triangle of sums in double precision, its diagonal in blocks of 512."""
    return 8 * D * (D + 512) / 2


def with_folds(by, n_folds, *, n=1_000_000, D=4096, **options):
    """The projected bytes of a worker that cross-validates."""
    return on_workers(Described(n), D, n_folds=n_folds, fold_by=by, **options).worker_bytes


# A total, and what it is made to; of rows that are dealt one by one a sum in the task, in six
# partials and in the totals of three groups, too, and of few shards in fewer of these.
@pytest.mark.parametrize(
    ("by", "n", "each"),
    [
        ("shards", 10**6, 2),
        ("blocks", 10**6, 2),
        ("rows", 10**6, 12),
        ("rows", 150_000, 9),
        ("rows", 20_000, 6),
        ("rows", 8192, 2),
    ],
)
def test_a_fold_costs_two_totals_and_by_rows_a_sum_in_every_partial_that_is_held(by, n, each):
    more = with_folds(by, 30, n=n) - with_folds(by, 20, n=n)
    assert more / accumulator(4096) == pytest.approx(10 * each, rel=0.1)


def test_a_task_holds_every_fold_by_rows_and_one_by_shards():
    for by, folds_held in (("rows", 40), ("shards", 1)):
        one, two = (with_folds(by, 40, n_threads=threads) for threads in (1, 2))
        assert folds_held <= (two - one) / accumulator(4096) < folds_held + 20
    few, many = (
        with_folds("shards", k, n_threads=2) - with_folds("shards", k, n_threads=1)
        for k in (20, 40)
    )
    assert few == many


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


@pytest.mark.parametrize(
    ("n", "D", "given", "by_passes"),
    [
        (40_000, 8192, {}, True),
        (40_000, 8192, {"feature_map": "nystroem", "kernel": "matern52"}, True),
        (40_000, 4096, {}, False),
        (5_000, 8192, {}, False),  # fewer rows than features
        (1_000_000, 8192, {}, False),  # readings of so many rows take longer than D^3
        (1_000_000, 8194, {}, True),
        (40_000, 8192, {"alpha": 1.0}, False),  # one system
        (40_000, 8192, {"alpha": "gcv"}, False),  # of moments alone
        (40_000, 8192, {"solver": "direct"}, False),
        (40_000, 8192, {"precision": "double"}, False),  # for small penalties
        (40_000, 8192, {"feature_map": "grid"}, False),
        (100, 64, {"solver": "cg"}, True),
    ],
    ids=str,
)
def test_conjugate_gradients_solve_where_they_cost_less(n, D, given, by_passes):
    extension("gradients", "iterative_plan")
    parameters = Parameters(n_components=D, **given)
    options = parameters.pass_options()
    plans = [
        plan_fit(Described(n, p=2), options, n_workers=k, n_threads=1, allowed_bytes=1 << 40, **how)
        for how in [parameters.solution_by_passes(options)]
        for k in (1, 64)
    ]
    assert [plan.solves_by_passes for plan in plans] == [by_passes, by_passes]


def test_this_process_receives_one_model_whoever_makes_it():
    D = 8192
    one = on_workers(Described(), D).client_bytes
    for options in ({"n_folds": 40, "fold_by": "rows"}, {"n_threads": 9}, {"n_workers": 100}):
        assert on_workers(Described(), D, **options).client_bytes == one
    assert accumulator(D) <= one - on_workers(Described(), 2).client_bytes <= 1.1 * accumulator(D)
    assert one < on_workers(Described(), D).worker_bytes / 2


def test_a_larger_sample_is_counted():
    small, large = (on_workers(Described(p=100), 64, n_sample=rows) for rows in (2048, 16_384))
    for process in PROCESSES:
        more = getattr(large, process) - getattr(small, process)
        assert more >= (16_384 - 2048) * 8 * 101


@pytest.mark.parametrize(
    ("n_shards", "n_folds", "by"),
    [(18, 6, "shards"), (17, 6, "rows"), (9, 3, "shards"), (8, 3, "rows"), (1, 1, "rows")],
)
def test_rows_are_dealt_where_there_are_fewer_than_three_shards_a_fold(n_shards, n_folds, by):
    sources = (Described(8192 * i) for i in range(1, 60))
    source = next(s for s in sources if len(s.shards(32768, 8192)) == n_shards)
    plan = plan_system(source, 64, n_folds=n_folds)
    large = plan_system(source, 65_536, n_folds=n_folds, needs_of=by_passes("IterativeFootprint"))
    assert (plan.n_shards, plan.fold_by, large.fold_by) == (n_shards, by, by)


CUTS = ["shard_rows", "n_shards", "block_rows", "column_block_rows", "graph_tasks"]


def cuts(source, **options):
    return tuple(getattr(plan_system(source, 2048, **options), name) for name in CUTS)


def test_folds_are_work_for_the_solve_only():
    D = 2048
    none, five = (on_workers(Described(), D, n_folds=k).flops for k in (1, 5))
    assert none == pytest.approx(1e6 * D * (D + 10) + D**3 / 3)
    assert five - none == pytest.approx(6 * 5 * D**3 - D**3 / 3)


def test_cuts_do_not_depend_on_who_does_the_work(machine):
    source = Described(3_000_000, chunk_rows=1000)
    places = [
        {},
        {"n_workers": 0, "n_threads": 1},
        {"n_workers": 0, "n_threads": 64},
        {"n_workers": 1000, "n_threads": 4, "allowed_bytes": 10 * GB},
        {"allowed_bytes": 1},
    ]
    found = set()
    for cores, free in ((1, GB), (128, 4096 * GB)):
        machine(cores, free)
        for place in places:
            dealt = plan_system(source, 2048, n_folds=5, **place).fold_by
            found.add((*cuts(source, n_folds=5, **place), dealt))
    assert len(found) == 1


@pytest.mark.parametrize("n", [1, 100, 16_384, 16_385, 10**6, 10**9])
def test_shards_are_those_of_the_source_and_neither_tiny_nor_huge(n):
    plan = plan_system(Described(n), 1024)
    sizes = [shard.n_rows for shard in Described(n).shards(plan.shard_rows, plan.block_rows)]
    assert plan.n_shards == len(sizes)
    assert plan.n_shards <= min(-(-n // plan.block_rows), n // plan.shard_rows + 24)
    assert plan.n_shards >= min(n // 40_000, 64)
    assert 32768 <= plan.shard_rows <= 1 << 20
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == n


@pytest.mark.parametrize(
    ("D", "chunk_rows"), [(1, 1024), (64, 333), (2048, 2), (16_384, 100), (100_000, 1000)]
)
def test_blocks_are_whole_chunks_and_shards_whole_blocks(D, chunk_rows):
    plan = plan_system(Described(10**7, chunk_rows=chunk_rows), D)
    assert plan.block_rows % chunk_rows == 0
    assert plan.shard_rows % plan.block_rows == 0
    assert 512 < plan.block_rows <= 8192


@pytest.mark.parametrize(("n", "by"), [(400_000, "rows"), (600_000, "shards"), (10**7, "rows")])
def test_folds_of_waves_are_dealt_by_the_shards_that_waves_have(n, by):
    plan = plan_system(Described(n, 2), 20_000, needs_of=by_sums(), n_folds=5)
    assert plan.fold_by == by == ("shards" if plan.n_shards >= 3 * 5 else "rows")


@pytest.mark.parametrize(("n", "D", "n_shards"), [(4e6, 300_000, 2), (1e7, 300_000, 4)])
def test_large_lattices_have_few_shards_which_are_one_transform_each(n, D, n_shards):
    plan = plan_system(Described(int(n), 2), D, needs_of=by_sums())
    assert plan.n_shards == n_shards
    assert plan.shard_rows <= extension("fields", "toeplitz_moments").MOST_ROWS
    assert plan.block_rows < plan.shard_rows


def test_memory_of_transforms_follows_the_rows_that_go_into_one():
    few = plan_system(Described(10**8, 2), 65_536, needs_of=by_sums())
    many = plan_system(Described(10**8, 2, 31), 65_536, needs_of=by_sums())
    assert many.worker_bytes < 4 * few.worker_bytes


def test_small_work_is_done_in_this_process_and_large_work_by_a_worker_a_core(machine):
    assert where(plan_system(Described(10_000), 64)) == (0, 8, 1)
    assert where(plan_system(Described(10**8), 2048)) == (8, 1, 1)


def test_workers_are_fewer_where_memory_is_short_and_have_more_blas_threads(machine):
    need = plan_system(Described(10**8), 8192).worker_bytes
    machine(8, 3 * need + need // 2)
    plan = plan_system(Described(10**8), 8192)
    # Three would fit, but with two threads each two of eight cores would idle.
    assert where(plan) == (2, 1, 4)
    assert plan.worker_bytes <= plan.allowed_bytes
    assert plan.n_workers * plan.allowed_bytes <= 3 * need + need // 2
    plan.check()


def test_one_process_has_no_more_threads_than_its_interpreter_serves(machine):
    machine(64, 1 << 38)
    assert where(plan_system(Described(50_000), 4096)) == (0, 16, 1)


def test_threads_of_this_process_are_fewer_where_memory_is_short(machine):
    source, D = Described(50_000), 4096
    roomy = plan_system(source, D)
    assert where(roomy) == (0, 8, 1)
    machine(8, roomy.worker_bytes // 2)
    plan = plan_system(source, D)
    assert 1 <= plan.n_threads < 8
    assert where(plan) == (0, plan.n_threads, 8 // plan.n_threads)
    assert plan.worker_bytes <= plan.allowed_bytes


def test_what_has_no_room_is_refused_with_both_numbers(machine):
    machine(8, 4 * GB)
    for allowed, words in (
        (2 * GB, "need {worker} in a worker, but {allowed} may be used"),
        (1000 * GB, "needs {client} in this process, but {free} is free"),
    ):
        plan = on_workers(Described(), 40_000, allowed_bytes=allowed)
        sizes = {"worker": plan.worker_bytes, "client": plan.client_bytes, "free": 4 * GB}
        sizes = {name: in_words(size) for name, size in (sizes | {"allowed": allowed}).items()}
        message = f"40,000 components {words.format(**sizes)}; take fewer components"
        with pytest.raises(InsufficientMemoryError, match=re.escape(message)):
            plan.check()
    plan = on_workers(Described(10**9), 64, indexed=True)
    with pytest.raises(InsufficientMemoryError, match="64 components and an index of 1,000,000,00"):
        plan.check()


@pytest.mark.parametrize(("D", "n_folds"), [(64, 5), (2048, 1), (16_384, 5)])
def test_a_job_that_runs_in_one_process_counts_all_of_it(n_folds, D, machine):
    plan = plan_system(Described(10**6), D, n_folds=n_folds, n_workers=0, n_threads=1)
    assert plan.worker_bytes >= plan.client_bytes


def test_a_plan_is_json_and_a_person_is_told_memory_projected_and_allowed():
    plan = on_workers(Described(), 2048)
    said = json.loads(json.dumps(plan.as_dict()))
    assert said == plan.as_dict()
    assert (said["n_rows"], said["worker_bytes"]) == (1_000_000, plan.worker_bytes)
    assert (said["fold_by"], said["seconds"] > 0) == ("shards", True)
    said = dict(plan.rows())
    assert said["memory of a worker"].startswith(in_words(plan.worker_bytes))
    assert said["memory allowed"] == in_words(GB)
    assert said["runs in"] == "2 worker processes"
    form = r"about (\S+)( s)?, if each core does (\S+) thousand million multiply-adds a second"
    shown, _, rate = re.match(form, said["time of the pass"]).groups()
    seconds = sum(60**i * float(part) for i, part in enumerate(reversed(shown.split(":"))))
    assert seconds == pytest.approx(plan.flops / (2e9 * float(rate)), rel=0.05, abs=1.0)


def test_a_plan_for_a_cluster_says_what_each_part_takes():
    source = Described(n=10**12, p=20)
    plans = {n: plan_system(source, 16384, n_workers=n, allowed_bytes=64 * GB) for n in (10, 1000)}
    few, many = (cost_estimate.cluster_time(plan, 1e11) for plan in plans.values())
    assert plans[1000].n_shards < 200_000
    assert many.products == pytest.approx(few.products / 100)
    assert many.reading == pytest.approx(10**12 * 80 / (1000 * cost_estimate.LINK))
    assert many.solving == few.solving
    longest = max(many.products + many.merging, many.reading, many.scheduling)
    assert many.total == longest + many.ending + many.solving
    said = dict(plans[1000].rows())
    assert said["at the same time"].startswith("products ")
    assert " days " in said["on so many workers"]
    assert said["after that"].startswith("ending ")
    alone = plan_system(source, 16384, n_workers=0, n_threads=1, allowed_bytes=64 * GB)
    assert "on so many workers" not in dict(alone.rows())


def test_a_shard_of_many_features_takes_minutes_of_one_core():
    rows = {D: plan_system(Described(n=10**9), D).shard_rows for D in (1024, 4096, 16384)}
    assert rows[1024] == rows[4096] == 1 << 20
    assert rows[16384] == 1 << 17


def test_a_sample_is_planned_for_no_more_rows_than_there_are():
    X = np.broadcast_to(0.0, (100, 100_000))
    how = {"n_workers": 0, "n_threads": 1, "allowed_bytes": 1 << 40}
    plan = plan_system(ArraySource(X, np.zeros(100)), 64, **how)
    assert plan.worker_bytes < 2 << 30  # 80 MB of rows


KMEANS = """
from pathlib import Path
import streamkern.fit
def resident():
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmRSS:")[2].split()[0])
before = resident()
import sklearn.cluster
print(resident() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("process", PROCESSES)
def test_a_fit_at_landmarks_plans_for_the_library_that_finds_them(process):
    pytest.importorskip("sklearn")
    at_landmarks, others = (
        getattr(on_workers(Described(), 2, from_rows=k), process) for k in (True, False)
    )
    assert int(python(KMEANS).stdout) < at_landmarks - others


@pytest.mark.parametrize("precision", ["single", "int8"])
def test_the_library_of_landmarks_is_planned_once_where_one_process_does_all(precision):
    def plan(**more):
        return on_workers(Described(), 2, precision=precision, n_workers=0, **more)

    at_landmarks, others = plan(from_rows=True), plan()
    worker, client = (getattr(at_landmarks, k) - getattr(others, k) for k in PROCESSES)
    assert worker == client > 0


def test_rows_of_arrays_are_planned_for_workers_which_keep_them_and_not_for_this_process():
    def plan(source, n_workers):
        how = {"n_threads": 1, "allowed_bytes": 1 << 40}
        return plan_system(source, 64, n_workers=n_workers, **how).worker_bytes

    arrays, files = (
        ArraySource(np.broadcast_to(0.0, (10**6, 100)), np.zeros(10**6)) for _ in range(2)
    )
    files.comes_with_tasks = False
    assert plan(arrays, 0) == plan(files, 0)
    one, four, many = (plan(arrays, k) - plan(files, k) for k in (1, 4, 1000))
    assert one == 8 * 101 * 10**6
    assert one / 4 < four < one / 2
    assert 0 < many < one / 8


def test_rows_of_arrays_that_take_most_of_a_worker_are_refused_as_such():
    rows = ArraySource(np.broadcast_to(0.0, (10**6, 200)), np.zeros(10**6))
    plan = on_workers(rows, 64)
    words = (
        f"1,000,000 rows in memory need {in_words(plan.carried_bytes)} of "
        f"{in_words(plan.worker_bytes)} in a worker, but 1.07 GB may be used; write the rows to "
        f"a file, or take more workers."
    )
    with pytest.raises(InsufficientMemoryError, match=f"^{re.escape(words)}$"):
        plan.check()
    on_workers(rows, 64, n_workers=8).check()
    with pytest.raises(InsufficientMemoryError, match="take fewer components"):
        on_workers(rows, 16_384).check()


def test_rows_of_arrays_stay_in_this_process_unless_workers_are_given(machine):
    machine(8, 64 * GB)
    rows = ArraySource(np.broadcast_to(np.float32(0), (10**7, 10)), np.zeros(10**7))
    assert where(plan_system(rows, 4096)) == (0, 8, 1)
    rows.comes_with_tasks = False
    assert plan_system(rows, 4096).n_workers > 1


def test_rows_of_intervals_are_planned_where_the_model_is_received():
    def plan(n_targets, n_workers=0):
        y = np.broadcast_to(0.0, (4096, n_targets))
        how = {"n_workers": n_workers, "n_threads": 1, "allowed_bytes": 1 << 40}
        return plan_system(ArraySource(np.broadcast_to(0.0, (4096, 3)), y), 64, **how)

    many = plan(4000)
    assert many.client_bytes >= 12 * 8 * 2048 * 4000
    assert many.worker_bytes >= many.client_bytes
    assert plan(4000, n_workers=2).client_bytes == many.client_bytes
