"""The pass: every row once, in a fixed tree, on any scheduler, with a small graph."""

import errno
import operator
import re
from itertools import accumulate as accumulated
from types import SimpleNamespace
from typing import Any

import cloudpickle
import dask
import numpy as np
import pytest
from hearing import Passes
from rows_read import ReadBy

from streamkern.engine import partials
from streamkern.engine.reduction import accumulate
from streamkern.engine.task_stream import map_shards
from streamkern.errors import CheckpointError, DataError, IncompletePassError
from streamkern.features import RandomFourierFeatures
from streamkern.kernels import Gaussian
from streamkern.parameters.planning import plan_system
from streamkern.runtime import events
from streamkern.runtime.events import observed
from streamkern.sources import Block, Shard
from streamkern.sources.arrays import ArraySource
from streamkern.statistics import (
    ColumnStatistics,
    Composite,
    Moments,
    RowSample,
    Statistic,
    merged_by,
    total,
)
from streamkern.statistics.folds import FoldStatistics, block_folds
from streamkern.storage import checkpoints
from streamkern.storage.checkpoints import SavedPass
from streamkern.storage.plain_values import read_plain, write_plain

SCHEDULERS = ["synchronous", "threads"]


def rows(n=50, p=3):
    rng = np.random.default_rng(0)
    return rng.integers(-9, 9, (n, p)).astype(float), rng.standard_normal(n)


class Sums(Statistic):
    n_rows: int = total(dtype=int)
    summed: np.ndarray = total()

    def update(self, blocks):
        for block in blocks:
            self.n_rows += len(block)
            self.summed = self.summed + block.X.sum(axis=0)


class Tree(Statistic):
    """The first row of every shard, in the brackets of the merges."""

    text: str = merged_by("({} {})".format)

    def update(self, blocks):
        self.text = str(min(int(block.start) for block in blocks))


class Sizes(Statistic):
    sizes: list = merged_by(operator.add)

    def update(self, blocks):
        self.sizes = (self.sizes or []) + [len(block) for block in blocks]


class CutBy(ArraySource):
    def __init__(self, X, y, shards):
        super().__init__(X, y)
        self.cut = tuple(shards)

    def shards(self, n_rows, _fewest=None):
        return self.cut if n_rows else ()


class Recorder(Passes):
    def __init__(self):
        super().__init__()
        self.events, self.rows = [], []
        self.started = lambda *label_and_rows: self.events.append(label_and_rows)
        self.advanced = self.rows.append
        self.finished = lambda: self.events.append("finished")


def graph_of(source, statistic, **options):
    graphs = []

    def get(expression, keys, **kwargs):
        graphs.append(dict(expression.__dask_graph__()))
        return dask.local.get_sync(graphs[-1], keys, **kwargs)

    with dask.config.set(scheduler=get):
        accumulate(source, statistic, **options)
    (graph,) = graphs
    return graph


@pytest.mark.parametrize(
    ("scheduler", "n", "shard_rows", "block_rows"),
    [
        ("threads", 1, 1, 1),
        ("synchronous", 50, 7, 3),
        ("threads", 50, 50, 8),
        ("threads", 50, 99, 99),
    ],
)
def test_a_pass_adds_what_a_plain_loop_adds(scheduler, n, shard_rows, block_rows):
    X, y = rows(n)
    total = [0.0, 0.0, 0.0]
    for row in X.tolist():
        total = [a + b for a, b in zip(total, row, strict=True)]
    used = Sums()
    used.n_rows = 1000  # which do not count
    with dask.config.set(scheduler=scheduler):
        result = accumulate(ArraySource(X, y), used, shard_rows=shard_rows, block_rows=block_rows)
    assert result.statistic.summed.tolist() == total
    assert used.n_rows == 1000
    assert result.statistic.n_rows == result.n_rows == n
    assert result.n_skipped == result.retried_shards == 0
    assert result.n_shards == len(ArraySource(X, y).shards(shard_rows, block_rows))
    assert result.peak_worker_bytes > 1 << 20
    assert result.seconds > 0


def test_blocks_are_as_tall_as_asked_and_end_with_their_shard():
    result = accumulate(ArraySource(*rows(60)), Sizes(), shard_rows=9, block_rows=4)
    # Shards of 9, 9, 8 and 8 rows, then of 4 rows each.
    assert result.statistic.sizes == [4, 4, 1, 4, 4, 1, 4, 4, *[4] * 8, 2]
    how = {"shard_rows": 9, "block_rows": 4, "read_rows": 100}
    result = accumulate(ArraySource(*rows(60)), Sizes(), **how)
    assert result.statistic.sizes == [9, 9, 8, 8, *[4] * 6, 2]


def lost_block(blocks, shard):
    *rest, last = blocks
    return rest if shard.index == 1 else [*rest, last]


def block_twice(blocks, shard):
    for block in blocks:
        yield block
        if shard.index == 1:
            yield Block(block.X[:1], block.y[:1], block.start)


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (ReadBy(*rows(), lost_block), IncompletePassError, "50 rows, but the pass accounts for 46"),
        (ReadBy(*rows(), block_twice), DataError, "must give rows 14 to 18 in its next block"),
        (
            CutBy(*rows(), [Shard(0, 0, 20), Shard(1, 20, 40)]),
            IncompletePassError,
            "pass accounts for 40",
        ),
        (
            CutBy(*rows(), [Shard(0, 0, 25), Shard(0, 0, 25)]),
            IncompletePassError,
            "each of 2 shards once",
        ),
    ],
)
def test_a_source_that_loses_or_doubles_rows_or_shards_is_found_out(source, error, message):
    with pytest.raises(error, match=message):
        accumulate(source, Sums(), shard_rows=10, block_rows=4)


merge = partials.merge_partials


@pytest.mark.parametrize(
    ("wrong", "held"),
    [
        (lambda _zero, _job, left, _right: left, 1),
        (lambda *given: merge(*given[:2], *[merge(*given)] * 2), 16),
        (lambda zero, job, left, _right: merge(zero, job, left, left), 4),
    ],
    ids=["one lost", "all twice", "one lost and the other twice"],
)
def test_a_merge_that_loses_or_doubles_a_shard_is_found_out(monkeypatch, wrong, held):
    monkeypatch.setattr(partials, "merge_partials", wrong)
    source = ArraySource(*rows(40))
    message = f"must hold each of 4 shards once, but holds {held}; run it again"
    with pytest.raises(IncompletePassError, match=message):
        accumulate(source, Sums(), shard_rows=10)


@pytest.mark.parametrize(
    ("n_shards", "tree"),
    [
        (1, "0"),
        (2, "(0 10)"),
        (3, "((0 10) 20)"),
        (5, "(((0 10) 20) (30 40))"),
        (9, "((((0 10) 20) ((30 40) 50)) ((60 70) 80))"),
    ],
)
def test_shards_are_merged_one_after_the_other_into_groups_and_groups_into_the_whole(
    n_shards, tree
):
    source = ArraySource(*rows(10 * n_shards))
    assert accumulate(source, Tree(), shard_rows=10).statistic.text == tree


def test_a_large_group_is_merged_in_pairs():
    n_shards = 34**2  # groups of 34
    source = ArraySource(*rows(n_shards))
    text = accumulate(source, Tree(), shard_rows=1, block_rows=1).statistic.text
    depth = max(accumulated(1 if each == "(" else -(each == ")") for each in text))
    assert depth == 6 + 33  # pairs of a group, then a chain of groups
    assert text.count("(((((0 1) (2 3)) ((4 5) (6 7)))") == 1
    assert re.findall(r"\d+", text) == [str(i) for i in range(n_shards)]


def test_of_very_many_rows_the_first_shards_are_larger_and_all_workers_end_together():
    n = 100_000
    source = ArraySource(np.zeros((n, 1)), np.zeros(n))
    shards = source.shards(1, 1)
    sizes = [shard.n_rows for shard in shards]
    assert len(shards) < 20_000
    assert sizes[0] == n // 4096
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == n
    assert sizes[-8191:] == [1] * 8191
    assert len(source.shards(1)) == n  # whose results are kept until they are written


def test_tasks_that_merge_ask_for_no_map():
    feature_map = RandomFourierFeatures(Gaussian(3.0), 512).draw(100)
    rule, moments = block_folds(40, 2), Moments(feature_map)
    together = Composite(RowSample(5), FoldStatistics(rule, moments))
    graph = graph_of(ArraySource(np.ones((40, 100)), np.ones(40)), together, shard_rows=8)
    merges = [task for key, task in graph.items() if "-group-" in key]
    assert merges
    assert not any(each.startswith("pass-") for task in merges for each in task.dependencies)
    assert max(len(cloudpickle.dumps(task)) for task in merges) < 4000


class Aligned(Sums):
    """What is merged is first made to fit, by a parameter that is no plain one."""

    names: Any = None

    def compatible(self, other):
        assert self.names == ["a", "b"]
        return other


class AlsoColumns(ColumnStatistics):
    """A merge of its own, of a class that inherits one that asks for plain parameters."""

    names: Any = None

    def merged_jointly(self, other):
        assert self.names == ["a", "b"]
        return super().merged_jointly(other)


@pytest.mark.parametrize("statistic", [Aligned(["a", "b"]), AlsoColumns(4, ["a", "b"])])
def test_a_merge_of_ones_own_has_all_parameters(statistic):
    assert statistic.merging() is None
    accumulate(ArraySource(*rows(40)), statistic, shard_rows=10)


def test_plain_parameters_may_be_numbers_of_numpy():
    sample = accumulate(ArraySource(*rows(40)), RowSample(np.int64(5)), shard_rows=10).statistic
    assert len(sample.X) == 5


def added(folder, before, group):
    """Add the sums of group 3, of which None are saved in the folder, to those before them."""

    def partial(number, sums):
        return partials.SAVED if sums is None else partials.Partial(sums, 1, 0, (number,), 0)

    saved = SavedPass(str(folder), "sums")
    options = partials.PassOptions(1, False, 1, "job", False, None, saved)
    assignment = partials.Assignment(Sizes(), options, None)
    return partials.add_group(assignment, 3, partial(2, before), partial(3, group))


@pytest.mark.parametrize(
    ("file", "given", "found"),
    [
        ("group-00003", ([2], None), [2, 0]),
        ("up-to-00002", (None, [3]), [0, 3]),
        ("up-to-00003", (None, [3]), [0]),
        ("up-to-00004", (None, [3]), None),  # what follows finds them in the file
    ],
)
def test_sums_of_another_machine_that_are_seen_late_are_waited_for(
    tmp_path, monkeypatch, file, given, found
):
    monkeypatch.setattr(checkpoints, "_PAUSE", 0.01)
    write_plain(tmp_path / "hidden", partials.Partial([0], 1, 0, (2,), 0).saved())
    usual, looks = SavedPass.last_total, []

    def look(where):
        looks.append(where)
        if len(looks) == 3:
            (tmp_path / "hidden").rename(tmp_path / f"sums-{file}.h5")
        return usual(where)

    monkeypatch.setattr(SavedPass, "last_total", look)
    assert added(tmp_path, *given).statistic == found
    assert len(looks) == 3


def test_a_file_of_sums_has_its_shards_in_one_array(tmp_path):
    partial = partials.Partial([1.0], 5, 0, tuple(range(9000)), 7)
    write_plain(tmp_path / "sums.h5", partial.saved())
    assert (tmp_path / "sums.h5").stat().st_size < 100_000
    assert partials.Partial.restored(read_plain(tmp_path / "sums.h5")).shards == partial.shards


def test_workers_that_share_no_folder_are_told_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "_PAUSE", 0.01)
    monkeypatch.setattr(checkpoints, "_SEEN_WITHIN", 0.05)
    with pytest.raises(CheckpointError, match="give all workers one folder that they share"):
        added(tmp_path, None, [3])
    saved = SavedPass(str(tmp_path), "sums")
    options = partials.PassOptions(1, False, 1, "job", False, None, saved)
    with pytest.raises(CheckpointError, match="is not the folder of this job on"):
        partials.save_group(options, 0, partials.Partial([1], 1, 0, (0,), 0))


def test_a_handle_that_a_network_calls_stale_is_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "_PAUSE", 0.01)
    saved, tried, usual = SavedPass(str(tmp_path), "sums"), [], checkpoints.read_plain
    saved.write_total(2, partials.Partial([0], 1, 0, (2,), 0).saved())

    def read(path):
        tried.append(path)
        if len(tried) < 3:
            raise CheckpointError("damaged") from OSError(errno.ESTALE, "Stale file handle")
        return usual(path)

    monkeypatch.setattr(checkpoints, "read_plain", read)
    assert added(tmp_path, None, [3]).statistic == [0, 3]


class Counted(Sums):
    """The parameters of moments, without the work of 500 products."""

    def __init__(self, feature_map):
        super().__init__()
        self.moments = Moments(feature_map)

    def zero(self):
        return Counted(self.moments.feature_map)


def test_the_graph_of_a_pass_is_small_and_frequencies_are_in_one_task_of_it():
    feature_map = RandomFourierFeatures(Gaussian(3.0), 1024).draw(100)
    frequencies = max(array.nbytes for array in feature_map.arrays().values())
    source = ArraySource(np.zeros((500, 100)), np.zeros(500))
    graph = graph_of(source, Counted(feature_map), shard_rows=1)
    sizes = {key: len(cloudpickle.dumps(task)) for key, task in graph.items()}
    assert len(sizes) == 1000
    assert sum(sizes.values()) < 10 << 20
    assert frequencies > 400_000
    (key,) = [key for key, size in sizes.items() if size > 50_000]
    assert key.startswith("pass-")
    assert sizes[key] >= frequencies
    tasks = [size for key, size in sizes.items() if key.startswith("accumulate-")]
    assert len(tasks) == 500
    assert max(tasks) < 10_000


def test_a_plan_knows_how_many_tasks_its_graph_has():
    source = ArraySource(*rows(70_000))
    plan = plan_system(source, 16)
    assert plan.n_shards > 2
    cut = {"shard_rows": plan.shard_rows, "block_rows": plan.block_rows}
    assert len(graph_of(source, Sums(), **cut)) == plan.graph_tasks


@pytest.mark.parametrize(("scheduler", "n_shards"), [("synchronous", 5), ("threads", 1)])
def test_an_observer_hears_every_row_once_and_nothing_outside_its_context(scheduler, n_shards):
    X, y = rows(10 * n_shards - 3)
    X[3] = np.nan
    recorder, source = Recorder(), ArraySource(X, y)
    cut = {"shard_rows": 10, "block_rows": 4, "skip_bad_rows": True}
    with dask.config.set(scheduler=scheduler):
        with observed(recorder):
            accumulate(source, Sums(), **cut, label="sums")
        accumulate(source, Sums())
    assert recorder.events == [("sums", 10 * n_shards - 3), "finished"]
    assert sorted(recorder.rows) == sorted(shard.n_rows for shard in source.shards(10, 4))


def test_an_observer_hears_the_end_of_a_pass_that_failed_or_that_nobody_wants_any_more():
    def broken(blocks, shard):
        raise DataError("no such row.")

    recorder, cut = Recorder(), {"shard_rows": 5, "block_rows": 5}
    with observed(recorder):
        with pytest.raises(DataError, match="no such row"):
            accumulate(ReadBy(*rows(), broken), Sums())
        results = map_shards(ArraySource(*rows()), Doubled(), **cut, label="double")
        next(results)
        results.close()
    assert recorder.events == [("sums", 50), "finished", ("double", 50), "finished"]


def test_a_pass_that_a_scheduler_refuses_to_follow_has_an_end_too(monkeypatch):
    def refuse(*_):
        raise ZeroDivisionError("no topics here")

    topics = {"subscribe_topic": refuse, "unsubscribe_topic": refuse}
    client = SimpleNamespace(id="mine", status="running", **topics)
    heard = []
    with monkeypatch.context() as patch, observed(heard.append):
        patch.setattr(events, "current_client", lambda: client)
        with pytest.raises(ZeroDivisionError), events.passing("7", "sums"):
            pytest.fail("the pass began")
    assert [each["kind"] for each in heard[1:]] == ["pass begun", "pass ended", "job ended"]
    assert all(each["error"] == "no topics here" for each in heard[2:])
    events.tell_from_task("7", "shard begun", shard=0)  # of which nobody hears any more
    assert len(heard) == 4


def test_a_block_of_bad_rows_alone_is_not_handed_to_the_statistic_and_others_keep_their_places():
    X, y = rows(20)
    X[[0, 8, 9, 10, 11]] = np.nan
    cut = {"shard_rows": 20, "block_rows": 4, "skip_bad_rows": True}
    assert accumulate(ArraySource(X, y), Sizes(), **cut).statistic.sizes == [3, 4, 4, 4]
    sample = accumulate(ArraySource(X, y), RowSample(20), **cut).statistic
    assert sorted(sample.places) == sorted(set(range(20)) - {0, 8, 9, 10, 11})
    assert np.array_equal(sample.X, X[sample.places])


class Doubled:
    """What a shard's rows are, doubled; notes its calls, and the memory that it was lent."""

    def __init__(self):
        self.calls, self.lent, self.at_once = [], set(), []

    def __call__(self, blocks, n_rows, scratch):
        self.lent.add(id(scratch))
        self.at_once.append(id(scratch))
        assert self.at_once.count(id(scratch)) == 1  # nobody else has it now
        (block,) = blocks
        assert len(block) == n_rows
        self.calls.append(block.start)
        self.at_once.remove(id(scratch))
        return 2 * block.X


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_mapped_shards_come_in_order_with_every_row_once(scheduler):
    X, y = rows(57)
    recorder = Recorder()
    cut = {"shard_rows": 5, "block_rows": 5, "label": "double"}
    with dask.config.set(scheduler=scheduler, num_workers=3), observed(recorder):
        found = list(map_shards(ArraySource(X, y), Doubled(), **cut))
    assert [shard.index for shard, _ in found] == list(range(12))
    assert [shard.start for shard, _ in found] == list(range(0, 57, 5))
    assert np.array_equal(np.concatenate([result for _, result in found]), 2 * X)
    assert recorder.events == [("double", 57), "finished"]
    assert sorted(recorder.rows) == [2, *[5] * 11]


@pytest.mark.parametrize(("scheduler", "ahead"), [("synchronous", 1), ("threads", 5)])
def test_shards_are_mapped_only_when_they_are_asked_for(scheduler, ahead):
    function, cut = Doubled(), {"shard_rows": 5, "block_rows": 5, "label": "double"}
    with dask.config.set(scheduler=scheduler, num_workers=3):
        results = map_shards(ArraySource(*rows(100)), function, **cut)
        assert function.calls == []
        next(results)
        results.close()
    assert len(function.lent) <= (3 if scheduler == "threads" else 1)
    # A window of two more than there are threads is begun, in any order, and no more.
    assert 0 in function.calls
    assert set(function.calls) <= set(range(0, 5 * ahead, 5))
