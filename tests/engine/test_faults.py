"""A pass on real workers and schedulers that hang, die or are cut off, one way a test."""

import json
import os
import pickle
import signal
import threading
import time
from functools import partial
from types import SimpleNamespace

import dask
import distributed
import numpy as np
import psutil
import pytest
from conftest import running_scheduler, running_worker
from hearing import When
from troubles import (
    SHARD_ROWS,
    SHARDS,
    Troubled,
    die,
    fill_memory,
    moments,
    once,
    segfault,
    stop,
    sums,
)

import streamkern
from streamkern.engine.scheduler import compute, delayed, scatter
from streamkern.errors import ClusterError, WorkersLostError
from streamkern.runtime.events import observed
from streamkern.runtime.resources import current_resources, reaching
from streamkern.sources.base import naming_rows
from streamkern.storage.checkpoints import opened_checkpoint

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def expected():
    with dask.config.set(scheduler="synchronous"):
        return sums(moments())


def lose_network(dask_worker):
    dask_worker.loop.add_callback(dask_worker.batched_stream.comm.abort)


def leave(dask_worker):
    dask_worker.loop.add_callback(dask_worker.close_gracefully, restart=True)


SOON = {"distributed.scheduler.worker-ttl": "5s", "distributed.scheduler.allowed-failures": 2}
TROUBLES = [stop, segfault, die, fill_memory]


@pytest.fixture
def workers(cluster_file):
    kwargs = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "600MB"}
    with dask.config.set(SOON), streamkern.connect(cluster=cluster_file(kwargs=kwargs)) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.mark.slow
@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.__name__)
def test_what_happens_to_a_worker_once_is_survived(workers, expected, tmp_path, trouble):
    begun = time.monotonic()
    with dask.config.set(SOON):
        result = moments(partial(once, str(tmp_path / "mark"), trouble), 0.05)
    assert (tmp_path / "mark").exists()
    assert time.monotonic() - begun < 60
    assert sums(result) == expected
    assert result.n_rows == SHARDS * SHARD_ROWS
    assert result.retried_shards >= 1


@pytest.mark.slow
@pytest.mark.parametrize("trouble", [lose_network, leave], ids=["network", "graceful"])
def test_a_worker_that_goes_is_survived(workers, expected, trouble):
    begun = time.monotonic()
    victim = min(workers.nthreads())
    ask = partial(workers.run, trouble, workers=[victim], on_error="ignore")
    # In another thread than the client's own, which would not wait for itself.
    with observed(When(lambda: threading.Thread(target=ask).start(), after=4)):
        result = moments(seconds=0.2)
    assert time.monotonic() - begun < 60
    assert sums(result) == expected
    assert victim not in workers.nthreads()


@pytest.mark.slow
@pytest.mark.parametrize("trouble", [segfault, fill_memory], ids=["segfault", "memory"])
def test_a_shard_that_kills_workers_again_and_again_is_named(workers, trouble):
    with pytest.raises(WorkersLostError) as error:
        moments(trouble)
    said = str(error.value)
    assert said.startswith(
        "the workers that ran shard 10 of 16, from row 9,000, to row 9,999, or one"
    )
    assert "died 3 times" in said
    assert error.value.tasks[0] in error.value.tasks[1:]  # as the scheduler has it too


def test_the_shard_is_named_that_was_given_up_with_a_merge_of_others():
    source = Troubled()
    tasks = "merge-moments-job-group-0-1", "accumulate-moments-other-3", "accumulate-moments-job-9"
    with (
        pytest.raises(
            WorkersLostError, match=r"shard 10 of 16, from row 9,000, .* died 3 times"
        ) as error,
        naming_rows(source, source.shards(SHARD_ROWS, SHARD_ROWS), "accumulate-moments-job"),
    ):
        raise WorkersLostError(tasks, 3)
    sent = pickle.loads(pickle.dumps(error.value))  # noqa: S301  our own
    assert (str(sent), sent.tasks, sent.times) == (str(error.value), tasks, 3)


@pytest.fixture
def cluster(tmp_path):
    with (
        running_scheduler(tmp_path) as file,
        running_worker(file, "--memory-limit", "2GB") as process,
    ):
        yield json.loads(file.read_text())["address"], process


@pytest.mark.slow
@pytest.mark.parametrize("lacking", ["scheduler", "worker"])
def test_a_cluster_without_streamkern_is_told_to_install_it(tmp_path, lacking):
    (tmp_path / "lacking.py").write_text("import sys\nsys.modules['streamkern'] = None\n")
    without = {lacking: ("--preload", tmp_path / "lacking.py")}
    with (
        running_scheduler(tmp_path, *without.get("scheduler", ())) as file,
        running_worker(file, *without.get("worker", ())),
        streamkern.connect(scheduler_file=file),
        dask.config.set({"distributed.scheduler.no-workers-timeout": "2s"}),
        pytest.raises(ClusterError, match=r"has no streamkern .*; install it there: pip install"),
    ):
        moments()


def killed(process):
    for each in [*psutil.Process(process.pid).children(recursive=True), process]:
        each.kill()


@pytest.mark.slow
def test_without_workers_a_pass_stops_when_its_patience_ends(cluster):
    address, worker = cluster
    patience = {"distributed.scheduler.no-workers-timeout": "3s"}
    with streamkern.connect(scheduler=address):
        begun = time.monotonic()
        with (
            dask.config.set(patience),
            observed(When(partial(killed, worker))),
            pytest.raises(ClusterError, match="has had no workers for 3 s; start some"),
        ):
            moments(seconds=0.3)
        assert 3 < time.monotonic() - begun < 30


def scheduler_process(address):
    port = int(address.rpartition(":")[2])
    (found,) = {
        each.pid
        for each in psutil.net_connections("tcp")
        if each.status == psutil.CONN_LISTEN and each.laddr.port == port
    }
    return psutil.Process(found)


@pytest.mark.slow
def test_a_pass_whose_scheduler_dies_stops_and_goes_on_elsewhere(cluster, tmp_path, expected):
    address, _ = cluster
    kill = When(lambda: scheduler_process(address).kill(), after=10)
    begun = time.monotonic()
    with (
        streamkern.connect(scheduler=address),
        opened_checkpoint(tmp_path / "saved", {}) as checkpoint,
        observed(kill),
        pytest.raises(ClusterError, match="lost its workers or its scheduler"),
    ):
        moments(seconds=0.2, checkpoint=checkpoint)
    assert time.monotonic() - begun < 60
    with opened_checkpoint(tmp_path / "saved", {}) as checkpoint:
        result = moments(checkpoint=checkpoint)
    assert result.resumed_shards >= 4
    assert sums(result) == expected


@pytest.mark.slow
def test_ctrl_c_is_heard_while_the_scheduler_stands_still(cluster):
    address, _ = cluster
    process, sent = scheduler_process(address), []

    def interrupt():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    def stand_still():
        process.suspend()
        threading.Timer(0.5, interrupt).start()

    try:
        with (
            dask.config.set({"distributed.comm.timeouts.connect": "4s"}),
            pytest.raises(KeyboardInterrupt),
            streamkern.connect(scheduler=address),
            observed(When(stand_still)),
        ):
            moments(seconds=0.3)
        assert time.monotonic() - sent[0] < 15
    finally:
        process.resume()


def test_a_pass_is_in_the_span_of_its_caller_and_what_dask_measures_does_not_grow(
    external_scheduler,
):
    def names(dask_scheduler):
        return [
            span.name for span in dask_scheduler.extensions["spans"].spans.values() if span.groups
        ]

    def kept(dask_scheduler):
        return len(dask_scheduler.extensions["spans"].spans)

    with streamkern.connect(scheduler=external_scheduler) as client:

        def measured():
            digests = client.run(lambda dask_worker: len(dask_worker.digests_total))
            return client.run_on_scheduler(kept), sum(digests.values())

        with distributed.span("mine"):
            moments()
        assert ("mine",) in client.run_on_scheduler(names)
        moments()
        assert ("streamkern",) in client.run_on_scheduler(names)
        before = measured()
        for _ in range(5):
            moments()
        after = measured()
    assert after[0] <= before[0]
    assert after[1] < 1.5 * before[1]


def summed(values, pids=(), mark=None):
    """Kill workers, this one last, unless that was done."""
    if pids and not mark.exists():
        mark.touch()
        for pid in sorted(pids, key=os.getpid().__eq__):
            os.kill(pid, signal.SIGKILL)
    return float(values.sum())


@pytest.mark.slow
def test_what_was_sent_to_workers_is_sent_again_when_all_of_them_die(workers, tmp_path):
    values = np.arange(1000.0)
    sent = scatter(values)
    for died in ("while idle", "at the task"):
        pids, mark = list(workers.run(os.getpid).values()), tmp_path / died
        if died == "while idle":
            summed(values, pids, mark)
        assert compute(delayed(summed, sent, pids, mark, name="sum")) == values.sum()
        workers.wait_for_workers(1, timeout=60)  # Dask may give one up that is killed as it starts
        assert not set(pids) & set(workers.run(os.getpid).values())


@pytest.mark.parametrize(
    ("status", "error", "expected"),
    [
        ("running", AttributeError("a mistake"), AttributeError),
        ("closed", AttributeError("no scheduler"), ClusterError),
        ("running", OSError("a connection that was cut"), ClusterError),
    ],
)
def test_a_lost_scheduler_is_known_by_its_client_and_no_mistake_is_taken_for_it(
    status, error, expected
):
    client = SimpleNamespace(status=status)
    with pytest.raises(expected, match=r"lost its|a mistake"), reaching(client):
        raise error


def test_a_scheduler_that_is_gone_when_something_is_sent_is_told_in_one_sentence(tmp_path):
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
        running_scheduler(tmp_path) as file,
        running_worker(file),
    ):
        address = json.loads(file.read_text())["address"]
        with streamkern.connect(scheduler=address):
            scheduler_process(address).kill()
            sending = partial(scatter, 1), partial(compute, delayed(sum, [1], name="one")), moments
            for use in (*sending, current_resources):
                with pytest.raises(ClusterError, match="lost its workers or its scheduler"):
                    use()
