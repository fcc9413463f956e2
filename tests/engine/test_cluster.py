"""Where a job runs: every place that can be named, what starts there, and what is left of it."""

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import dask
import psutil
import pytest
from conftest import running_scheduler, wait_until

from streamkern import connect
from streamkern.cli.signals import Stopped, stoppable
from streamkern.engine import cluster
from streamkern.engine.cluster_file import read_cluster_file
from streamkern.engine.heartbeat import Heartbeat
from streamkern.engine.running_scheduler import read_scheduler_file
from streamkern.errors import ClusterError, ParameterError
from streamkern.runtime.stopping import stopping

REPOSITORY = Path(__file__).parents[2]
NOBODY = "tcp://127.0.0.1:9"
NO_WORKERS = {"n_workers": 0, "threads_per_worker": 1}


def listening() -> set[tuple[str, int]]:
    me = psutil.Process()
    found = [each.net_connections() for each in (me, *me.children(recursive=True))]
    return {tuple(c.laddr) for each in found for c in each if c.status == psutil.CONN_LISTEN}


def settings() -> dict[str, str]:
    ends = ("_THREADS", "SEED", "THRESHOLD_", "_MAX")
    return {key: value for key, value in os.environ.items() if key.endswith(ends)}


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
@pytest.mark.parametrize(
    ("chosen", "heaps", "expected"),
    [(65536, None, (None, "1")), (65536, "3", (None, "3")), (1 << 30, None, (str(1 << 30), None))],
)
def test_workers_have_blas_threads_and_memory_as_somebody_said_and_nobody_else_has(
    chosen, heaps, expected, monkeypatch
):
    names = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_ARENA_MAX")
    for name, value in zip(names, (None, heaps), strict=True):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    spawn = {"distributed.nanny.pre-spawn-environ": {names[0]: chosen}}
    before = settings()
    with dask.config.set(spawn), connect(n_workers=1, blas_threads=3) as client:
        (environ,) = client.run(lambda: dict(os.environ)).values()
        assert settings() == before
    assert settings() == before
    assert tuple(environ.get(name) for name in names) == expected
    assert [environ[f"{name}_NUM_THREADS"] for name in ("OMP", "MKL", "OPENBLAS")] == ["3"] * 3


@pytest.mark.cluster
def test_without_any_place_a_local_cluster_has_a_worker_for_so_many_cores(monkeypatch):
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS", raising=False)
    monkeypatch.setattr(cluster, "usable_cores", lambda: 5)
    with connect(blas_threads=2) as client:
        assert list(client.nthreads().values()) == [1, 1]


@pytest.mark.cluster
def test_a_cluster_file_may_scale_adapt_and_configure(cluster_file):
    failures, wait = "distributed.scheduler.allowed-failures", "distributed.adaptive.wait-count"
    config = {"distributed": {"scheduler": {"allowed-failures": 7}}, wait: 5}
    with connect(cluster=cluster_file(kwargs=NO_WORKERS, scale=1, config=config)) as client:
        assert (dask.config.get(failures), dask.config.get(wait)) == (7, 5)
        assert dask.config.get("distributed.scheduler.work-stealing") is not None
        assert len(client.nthreads()) == 1
    assert dask.config.get(failures) == 3
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
    path = cluster_file(kwargs=NO_WORKERS, config=waiting)
    refused_within(3, r"within 0\.1 s", cluster=path, timeout=20)


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
    path = cluster_file(kwargs={"n_workers": 1, "memory_limit": "1 ton"})
    with pytest.raises(ClusterError, match=r"the LocalCluster of .* could not be started"):
        enter(cluster=path)


def heard(seconds, number, **options):
    """How long after a signal, sent so many seconds from now, connecting is given up."""
    sent = []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), number)

    threading.Timer(seconds, send).start()
    with pytest.raises(Stopped), stoppable():
        enter(**options)
    stopping.clear()  # of which every thread of this process hears
    return time.monotonic() - sent[0]


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_cluster_starts_is_heard_and_nothing_is_left(number, cluster_file):
    pytest.importorskip("asyncssh", reason="SSHCluster needs the package asyncssh")
    before = set(psutil.Process().children(recursive=True))
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        own = {"hosts": ["127.0.0.1"] * 2, "connect_options": {"port": silent.getsockname()[1]}}
        path = cluster_file(class_="SSHCluster")
        with dask.config.set({"streamkern.cluster-options.SSHCluster": own}):
            assert heard(3, number, cluster=path, timeout=60) < 10
    assert set(psutil.Process().children(recursive=True)) <= before


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.parametrize("seconds", [3, 100], ids=["slowly", "never"])
def test_a_job_that_is_being_submitted_when_a_signal_comes_is_cancelled(
    seconds, cluster_file, tmp_path, monkeypatch
):
    pytest.importorskip("dask_jobqueue", reason="SLURMCluster needs the package dask-jobqueue")
    commands = {
        "sbatch": f"sleep {seconds}; echo Submitted batch job 17",
        "scancel": f"echo $* >> {tmp_path}/cancelled",
    }
    for name, text in commands.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    kwargs = {"cores": 1, "memory": "1GB", "n_workers": 1}
    path = cluster_file(module="dask_jobqueue", class_="SLURMCluster", kwargs=kwargs)
    assert heard(4, signal.SIGINT, cluster=path, timeout=60) < 20
    assert (tmp_path / "cancelled").exists() == (seconds == 3)
    assert not [each for each in psutil.Process().children() if "sbatch" in str(each.cmdline())]


def test_ctrl_c_is_heard_while_a_scheduler_that_stands_still_is_called():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port, begun = silent.getsockname()[1], time.monotonic()
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt), connect(scheduler=f"tcp://127.0.0.1:{port}"):
            pass
    assert time.monotonic() - begun < 10


class Watched:
    """A client, and its scheduler, that is closed after some looks at its status."""

    scheduler_comm, address = None, "tcp://here"

    def __init__(self, n_looks, silence):
        self.n_looks, self.silence, self.scheduler = n_looks, silence, self

    @property
    def status(self):
        self.n_looks -= 1
        return "running" if self.n_looks > 0 else "closed"

    async def echo(self, **_):
        await asyncio.sleep(self.silence)


@pytest.mark.parametrize(("is_left", "n_looks", "silence"), [(True, 2, 0), (False, 20, 60)])
def test_a_client_stays_open_that_was_left_if_its_scheduler_answers_or_for_which_nobody_waits(
    is_left, n_looks, silence
):
    heartbeat = Heartbeat()
    heartbeat.is_left, heartbeat.n_waiting = is_left, int(is_left)
    asyncio.run(heartbeat.watch(Watched(n_looks, silence), 2.0 if is_left else 0.1))
    assert not heartbeat.is_left
    assert heartbeat.given_up is None


@pytest.mark.parametrize("read", [read_cluster_file, read_scheduler_file])
def test_a_pipe_in_the_place_of_a_cluster_or_scheduler_file_is_not_waited_for(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ParameterError, match=r"no plain file|must be the JSON"):
        read(tmp_path / "pipe")
