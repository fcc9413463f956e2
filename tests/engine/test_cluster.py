"""Where a job runs: every place that can be named, what starts there, and what is left of it."""

import json
import logging
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import dask
import numpy as np
import psutil
import pytest
from conftest import running_scheduler, wait_until

from streamkern import connect
from streamkern.engine import cluster
from streamkern.engine.scheduler import compute, delayed
from streamkern.errors import ClusterError, ParameterError

REPOSITORY = Path(__file__).parents[2]
NOBODY = "tcp://127.0.0.1:9"
NO_WORKERS = {"n_workers": 0, "threads_per_worker": 1}


def listening() -> set[tuple[str, int]]:
    me = psutil.Process()
    found = [each.net_connections() for each in (me, *me.children(recursive=True))]
    return {tuple(c.laddr) for each in found for c in each if c.status == psutil.CONN_LISTEN}


def worker_pids(client) -> set[int]:
    return set(client.run(os.getpid).values())


def enter(**options):
    with connect(**options):
        pytest.fail("connected")


@pytest.mark.cluster
def test_the_cluster_file_of_the_repository_runs_tasks_in_other_processes():
    with connect(cluster=REPOSITORY / "cluster.yaml") as client:
        assert len(client.scheduler_info()["workers"]) == 2
        assert dask.delayed(os.getpid)().compute() in worker_pids(client) - {os.getpid()}


@pytest.mark.cluster
def test_a_local_cluster_listens_on_loopback_and_leaves_nothing_behind(capfd):
    before, pids = listening(), set()

    def fail():
        with connect(n_workers=1) as client:
            pids.update(worker_pids(client))
            opened = listening() - before
            assert client.scheduler.address.startswith("tcp://127.0.0.1:")
            assert {host for host, _ in opened} == {"127.0.0.1"}
            assert set(client.nthreads().values()) == {1}
            assert dask.config.get("distributed.scheduler.no-workers-timeout")
            large = dask.config.get("distributed.admin.large-graph-warning-threshold")
            assert large >= 256 << 20
            with pytest.raises(ZeroDivisionError):
                client.submit(divmod, 1, 0).result()
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fail()
    assert listening() <= before
    wait_until(lambda: not any(map(psutil.pid_exists, pids)), "the end of the workers")
    assert dask.config.get("distributed.scheduler.no-workers-timeout") is None
    assert capfd.readouterr().err == ""


@pytest.mark.cluster
@pytest.mark.parametrize(("chosen", "expected"), [(65536, None), (1 << 30, str(1 << 30))])
def test_workers_keep_memory_unless_somebody_said_otherwise(chosen, expected, monkeypatch):
    name = "MALLOC_TRIM_THRESHOLD_"
    monkeypatch.delenv(name, raising=False)
    spawn = {f"distributed.nanny.pre-spawn-environ.{name}": chosen}
    with dask.config.set(spawn), connect(n_workers=1) as client:
        (found,) = client.run(os.environ.get, name).values()
    assert found == expected


@pytest.mark.cluster
def test_a_worker_that_takes_most_of_what_the_plan_may_use_is_not_paused(cluster_file):
    kwargs = {"n_workers": 1, "threads_per_worker": 1}
    with connect(cluster=cluster_file(kwargs=kwargs | {"memory_limit": 0})) as client:
        taken = client.submit(lambda: psutil.Process().memory_info().rss).result()
    limit = 3 * taken  # of which what is held is more than half, whatever a worker loads

    def hold():
        held = bytes(range(1, 101)) * int((0.86 * limit - psutil.Process().memory_info().rss) / 100)
        time.sleep(1.0)  # workers look ten times a second
        return len(held)

    with connect(cluster=cluster_file(kwargs=kwargs | {"memory_limit": limit})) as client:
        assert client.submit(hold).result() > 0.4 * limit
        logged = [event for log in client.get_events().values() for _, event in log]
    assert not any(isinstance(e, dict) and e.get("status") == "paused" for e in logged)


@pytest.mark.cluster
def test_without_any_place_a_local_cluster_has_a_worker_for_so_many_cores(monkeypatch):
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS", raising=False)
    monkeypatch.setattr(cluster, "usable_cores", lambda: 5)
    with connect(blas_threads=2) as client:
        assert list(client.nthreads().values()) == [1, 1]


@pytest.mark.cluster
def test_a_cluster_file_may_scale_and_adapt(cluster_file):
    with connect(cluster=cluster_file(kwargs=NO_WORKERS, scale=1)) as client:
        assert len(client.nthreads()) == 1
    with connect(cluster=cluster_file(kwargs=NO_WORKERS, adapt={"minimum": 0, "maximum": 1})):
        assert dask.delayed(os.getpid)().compute() != os.getpid()  # adaptive, when there is work


@pytest.mark.cluster
@pytest.mark.parametrize("how", ["scheduler", "scheduler_file", "environment"])
def test_a_running_scheduler_is_reached_and_left_running(
    how, external_scheduler, external_scheduler_file, monkeypatch
):
    options = {"scheduler": external_scheduler, "scheduler_file": external_scheduler_file}
    if how == "environment":
        monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", external_scheduler)
    for _ in range(2):
        with connect(**{key: value for key, value in options.items() if key == how}) as client:
            assert client.scheduler.address == external_scheduler
            assert dask.delayed(os.getpid)().compute() != os.getpid()


@pytest.mark.cluster
def test_the_first_place_given_counts_and_must_be_a_scheduler(
    external_scheduler, external_scheduler_file, monkeypatch
):
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", NOBODY)
    with connect(scheduler_file=external_scheduler_file, n_workers=1) as client:
        assert client.scheduler.address == external_scheduler
    with connect(scheduler=external_scheduler, scheduler_file="/nowhere", n_workers=1) as client:
        assert client.scheduler.address == external_scheduler
        worker = next(iter(client.scheduler_info()["workers"]))
    with pytest.raises(ClusterError, match=r"is a Dask Worker; give the address of its scheduler"):
        enter(scheduler=worker)
    with pytest.raises(ParameterError, match="name a cluster file"):
        enter(cluster="/nowhere", scheduler=external_scheduler)


@pytest.mark.cluster
def test_a_large_result_comes_from_its_worker_and_not_through_the_scheduler(external_scheduler):
    def most_bytes():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

    large = 400 << 20
    with connect(scheduler=external_scheduler) as client:
        before = client.run_on_scheduler(most_bytes)
        found = compute(delayed(np.ones, large // 8, name="large"))
        assert found.nbytes == large
        assert client.run_on_scheduler(most_bytes) - before < large // 4


def refused_within(seconds: float, match: str, **options: object) -> None:
    begun = time.monotonic()
    with pytest.raises(ClusterError, match=match):
        enter(**options)
    assert time.monotonic() - begun < seconds


def test_an_address_where_nobody_answers_is_refused_in_time(tmp_path):
    said = "no Dask scheduler answers at"
    refused_within(3, rf"{said} {NOBODY} within 0.5 s", scheduler=NOBODY, timeout=0.5)
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        refused_within(3, f"{said} {address}", scheduler=address, timeout=0.5)
    path = tmp_path / "scheduler.json"
    path.write_text(json.dumps({"address": NOBODY}))
    refused_within(3, said, scheduler_file=path, timeout=0.5)


def test_a_failed_connection_writes_nothing_but_the_exception():
    code = f"""
import gc, time
from streamkern import connect
from streamkern.errors import ClusterError
try:
    with connect(scheduler={NOBODY!r}, timeout=0.5): pass
except ClusterError as error:
    print(error)
gc.collect(); time.sleep(0.5); gc.collect()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("no Dask scheduler answers")
    assert done.stderr == ""


@pytest.mark.cluster
def test_a_scheduler_without_workers_is_refused_in_time(tmp_path):
    with running_scheduler(tmp_path) as file:
        said = r"no worker joined the scheduler at tcp.* at least one"
        refused_within(4, said, scheduler_file=file, timeout=1)


@pytest.mark.cluster
def test_a_started_cluster_without_workers_is_refused_in_time(cluster_file):
    refused_within(
        5, r"joined the LocalCluster .* scale", cluster=cluster_file(kwargs=NO_WORKERS), timeout=1
    )
    waiting = {"distributed.scheduler.no-workers-timeout": "100ms"}
    with dask.config.set(waiting):
        refused_within(5, r"within 0\.1 s", cluster=cluster_file(kwargs=NO_WORKERS), timeout=20)


MALFORMED = ["", "foo bar", "10.0.0.1", "tcp://10.0.0.1", "tcp://h:99999", "http://h:80", "h:x"]
REFUSED = [
    *(({"scheduler": address}, r"looks like tcp://host:8786, but") for address in MALFORMED),
    ({"n_workers": 0}, "n_workers must be 1 or more"),
    ({"blas_threads": 0}, "blas_threads must be 1 or more"),
    ({"timeout": 0}, "timeout must be positive"),
    ({"timeout": float("nan")}, "timeout must be positive"),
]


@pytest.mark.parametrize(("options", "why"), REFUSED, ids=range(len(REFUSED)))
def test_options_that_are_none_are_refused_at_once(options, why):
    with pytest.raises(ParameterError, match=why):
        enter(**options)


@pytest.mark.parametrize("content", [None, "not JSON", "[]", '{"workers": {}}', "[" * 30_000])
def test_a_scheduler_file_that_is_none_is_refused(content, tmp_path):
    path = tmp_path / "scheduler.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ParameterError, match="--scheduler-file"):
        enter(scheduler_file=path)


def test_what_is_missing_is_named_as_pip_or_dask_names_it(cluster_file, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask_kubernetes.operator", None)
    with pytest.raises(ClusterError, match="pip install dask-kubernetes"):
        enter(cluster=cluster_file(module="dask_kubernetes.operator", class_="KubeCluster"))
    with pytest.raises(ClusterError, match=r"needs TLS certificates.*distributed\.comm\.tls"):
        enter(scheduler="tls://127.0.0.1:8786")


@pytest.mark.cluster
def test_a_cluster_that_fails_to_start_is_refused(cluster_file, monkeypatch):
    # What the scheduler logs about its failed start is its own affair.
    monkeypatch.setattr(logging.getLogger("distributed"), "handlers", [])
    path = cluster_file(kwargs={"n_workers": 1, "memory_limit": "1 tonne"})
    with pytest.raises(ClusterError, match=r"the LocalCluster of .* could not be started"):
        enter(cluster=path)


def test_ctrl_c_is_heard_while_a_scheduler_that_stands_still_is_called():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port, begun = silent.getsockname()[1], time.monotonic()
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt), connect(scheduler=f"tcp://127.0.0.1:{port}"):
            pass
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("option", ["cluster", "scheduler_file"])
def test_a_pipe_in_the_place_of_a_cluster_or_scheduler_file_is_not_waited_for(tmp_path, option):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ParameterError, match=r"no plain file|must be the JSON"):
        enter(**{option: tmp_path / "pipe"})
