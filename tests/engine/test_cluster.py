"""Where a job runs: every place that can be named, and every way of naming one wrongly."""

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
from contextlib import closing, suppress
from pathlib import Path

import dask
import psutil
import pytest
import yaml
from conftest import running_scheduler, wait_until

from streamkern import connect
from streamkern.engine.cluster_file import read_cluster_file, read_scheduler_file
from streamkern.engine.heartbeat import Heartbeat
from streamkern.errors import ClusterError, ParameterError
from streamkern.runtime.signals import Stopped, stoppable, stopping

REPOSITORY = Path(__file__).parents[2]
NOBODY = "tcp://127.0.0.1:9"


def listening(process: psutil.Process) -> set[tuple[str, int]]:
    """Where a process and its children accept connections."""
    found = set()
    for one in [process, *process.children(recursive=True)]:
        found |= {tuple(c.laddr) for c in one.net_connections() if c.status == psutil.CONN_LISTEN}
    return found


def settings() -> dict[str, str]:
    """What nannies set in the environment of the process that starts them."""
    return {k: v for k, v in os.environ.items() if k.endswith(("_THREADS", "SEED", "THRESHOLD_"))}


def worker_pids(client) -> set[int]:
    return set(client.run(os.getpid).values())


def enter(**options):
    with connect(**options):
        pytest.fail("connected")


@pytest.fixture
def cluster_file(tmp_path):
    """Write a cluster file: a valid one, changed by keywords; None leaves a key out."""

    def write(text: str | None = None, **changes: object) -> Path:
        content = {"version": 1, "module": "dask.distributed", "class": "LocalCluster"}
        changes = {key.rstrip("_"): value for key, value in changes.items()}
        content = {k: v for k, v in (content | changes).items() if v is not None}
        path = tmp_path / "cluster.yaml"
        path.write_text(yaml.safe_dump(content) if text is None else text)
        return path

    return write


@pytest.mark.cluster
def test_the_cluster_file_of_the_repository_runs_tasks_in_other_processes():
    with connect(cluster=REPOSITORY / "cluster.yaml") as client:
        assert len(client.scheduler_info()["workers"]) == 2
        assert dask.delayed(os.getpid)().compute() in worker_pids(client) - {os.getpid()}


@pytest.mark.cluster
def test_a_local_cluster_listens_on_loopback_and_leaves_nothing_behind():
    before = listening(psutil.Process())
    with connect(n_workers=1) as client:
        pids = worker_pids(client)
        opened = listening(psutil.Process()) - before
        assert client.scheduler.address.startswith("tcp://127.0.0.1:")
        assert {host for host, _ in opened} == {"127.0.0.1"}
        assert set(client.nthreads().values()) == {1}
        assert dask.config.get("distributed.scheduler.no-workers-timeout")
        large = dask.config.get("distributed.admin.large-graph-warning-threshold")
    assert large >= 256 << 20
    assert listening(psutil.Process()) <= before
    wait_until(lambda: not any(map(psutil.pid_exists, pids)), "the end of the workers")
    assert dask.config.get("distributed.scheduler.no-workers-timeout") is None


@pytest.mark.cluster
def test_an_exception_in_the_context_comes_out_and_closes_the_cluster():
    before = listening(psutil.Process())
    pids = set()

    def fail():
        with connect(n_workers=1) as client:
            pids.update(worker_pids(client))
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fail()
    assert pids
    wait_until(lambda: not any(map(psutil.pid_exists, pids)), "the end of the workers")
    assert listening(psutil.Process()) <= before


@pytest.mark.cluster
def test_blas_threads_reach_the_environment_of_the_workers_and_of_nobody_else(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    before = settings()
    with connect(n_workers=1, blas_threads=3) as client:
        (environ,) = client.run(lambda: dict(os.environ)).values()
        assert settings() == before
    assert settings() == before
    assert [environ[f"{name}_NUM_THREADS"] for name in ("OMP", "MKL", "OPENBLAS")] == ["3"] * 3


@pytest.mark.cluster
@pytest.mark.parametrize("chosen", [65536, 1 << 30], ids=["the default of Dask", "another"])
@pytest.mark.parametrize("heaps", [None, "3"])
def test_workers_keep_memory_unless_somebody_said_how_much(chosen, heaps, monkeypatch):
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    if heaps is not None:
        monkeypatch.setenv("MALLOC_ARENA_MAX", heaps)
    with (
        dask.config.set(
            {"distributed.nanny.pre-spawn-environ": {"MALLOC_TRIM_THRESHOLD_": chosen}}
        ),
        connect(n_workers=1) as client,
    ):
        (environ,) = client.run(lambda: dict(os.environ)).values()
    expected = heaps or ("1" if chosen == 65536 else None)
    assert environ.get("MALLOC_ARENA_MAX") == expected
    assert os.environ.get("MALLOC_ARENA_MAX") == heaps
    kept = None if chosen == 65536 else str(chosen)
    assert environ.get("MALLOC_TRIM_THRESHOLD_") == kept
    assert "MALLOC_TRIM_THRESHOLD_" not in os.environ


@pytest.mark.cluster
def test_a_task_that_fails_writes_nothing_but_its_exception(capfd):
    with connect(n_workers=1) as client:
        future = client.submit(divmod, 1, 0)
        with pytest.raises(ZeroDivisionError):
            future.result()
    assert capfd.readouterr().err == ""


@pytest.mark.cluster
def test_without_any_place_a_local_cluster_has_a_worker_a_core(monkeypatch):
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS", raising=False)
    monkeypatch.setattr(dask.system, "CPU_COUNT", 2)
    with connect() as client:
        assert set(client.nthreads().values()) == {1}
        assert len(client.nthreads()) == 2


@pytest.mark.cluster
def test_a_cluster_file_may_scale_and_configure(cluster_file):
    path = cluster_file(
        kwargs={"n_workers": 0, "threads_per_worker": 1},
        scale=1,
        config={
            "distributed": {"scheduler": {"allowed-failures": 7}},
            "distributed.adaptive.wait-count": 5,
        },
    )
    with connect(cluster=path) as client:
        assert dask.config.get("distributed.scheduler.allowed-failures") == 7
        assert dask.config.get("distributed.adaptive.wait-count") == 5
        assert dask.config.get("distributed.scheduler.work-stealing") is not None
        assert len(client.nthreads()) == 1
    assert dask.config.get("distributed.scheduler.allowed-failures") == 3


@pytest.mark.cluster
def test_an_adaptive_cluster_starts_workers_when_there_is_work(cluster_file):
    path = cluster_file(
        kwargs={"n_workers": 0, "threads_per_worker": 1}, adapt={"minimum": 0, "maximum": 1}
    )
    with connect(cluster=path):
        assert dask.delayed(os.getpid)().compute() != os.getpid()


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
def test_the_first_place_given_counts(external_scheduler, external_scheduler_file, monkeypatch):
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", NOBODY)
    with connect(scheduler_file=external_scheduler_file, n_workers=1) as client:
        assert client.scheduler.address == external_scheduler
    with connect(scheduler=external_scheduler, scheduler_file="/nowhere", n_workers=1) as client:
        assert client.scheduler.address == external_scheduler
    with connect(cluster=REPOSITORY / "cluster.yaml", scheduler=external_scheduler) as client:
        assert client.scheduler.address != external_scheduler


@pytest.mark.cluster
def test_the_address_of_a_worker_is_refused(external_scheduler):
    with connect(scheduler=external_scheduler) as client:
        worker = next(iter(client.scheduler_info()["workers"]))
    with pytest.raises(ClusterError, match=r"is a Dask Worker; give the address of its scheduler"):
        enter(scheduler=worker)


def refused_within(seconds: float, match: str, **options: object) -> None:
    begun = time.monotonic()
    with pytest.raises(ClusterError, match=match):
        enter(**options)
    assert time.monotonic() - begun < seconds


def test_an_address_where_nobody_answers_is_refused_in_time():
    refused_within(
        4, rf"no Dask scheduler answers at {NOBODY} within 2 s", scheduler=NOBODY, timeout=2
    )


def test_an_address_where_something_silent_listens_is_refused_in_time():
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        refused_within(4, f"no Dask scheduler answers at {address}", scheduler=address, timeout=2)


def test_the_default_patience_with_an_address_is_less_than_half_a_minute():
    assert connect.__wrapped__.__kwdefaults__["timeout"] < 25


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
        refused_within(
            5,
            r"no worker joined the scheduler at tcp.* at least one",
            scheduler_file=file,
            timeout=2,
        )


@pytest.mark.cluster
def test_a_started_cluster_without_workers_is_refused_in_time(cluster_file):
    path = cluster_file(kwargs={"n_workers": 0, "threads_per_worker": 1})
    refused_within(5, r"no worker joined the LocalCluster .* scale", cluster=path, timeout=1)
    waiting = {"distributed.scheduler.no-workers-timeout": "100ms"}
    path = cluster_file(kwargs={"n_workers": 0, "threads_per_worker": 1}, config=waiting)
    refused_within(3, r"within 0\.1 s", cluster=path, timeout=20)


@pytest.mark.parametrize(
    "address", ["", "foo bar", "10.0.0.1", "tcp://10.0.0.1", "tcp://h:99999", "http://h:80", "h:x"]
)
def test_a_malformed_address_is_refused_at_once(address):
    with pytest.raises(ParameterError, match=r"looks like tcp://host:8786, but"):
        enter(scheduler=address)


def test_a_tls_address_needs_certificates():
    with pytest.raises(ClusterError, match=r"needs TLS certificates.*distributed\.comm\.tls"):
        enter(scheduler="tls://127.0.0.1:8786")


@pytest.mark.parametrize("content", [None, "", "not JSON", "[]", '{"workers": {}}'])
def test_a_scheduler_file_that_is_none_is_refused(content, tmp_path):
    path = tmp_path / "scheduler.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ParameterError, match="--scheduler-file"):
        enter(scheduler_file=path)


def test_a_scheduler_file_of_a_scheduler_that_is_gone_is_refused(tmp_path):
    path = tmp_path / "scheduler.json"
    path.write_text(json.dumps({"address": NOBODY}))
    refused_within(3, "no Dask scheduler answers", scheduler_file=path, timeout=1)


@pytest.mark.parametrize(
    "options", [{"n_workers": 0}, {"blas_threads": 0}, {"timeout": 0}, {"timeout": float("nan")}]
)
def test_numbers_that_are_too_small_are_refused(options):
    with pytest.raises(ParameterError, match=next(iter(options))):
        enter(**options)


MALFORMED = {
    "not YAML": ("version: [", r"is not plain YAML"),
    "not a mapping": ("- 1", r"must be a mapping with version, module and class, not list"),
    "empty": ("", r"must be a mapping .* not NoneType"),
    "aliases": ("version: &a 1\nscale: *a", r"uses YAML aliases"),
    "brackets without end": ("[" * 20_000, r"more than 1000 brackets"),
    "too large": ("#" * 100_000, r"no plain file of at most 32 KiB"),
    "python object": (
        "!!python/object/apply:os.mkdir [ran]",
        r"is not plain YAML \(could not determine a constructor",
    ),
    "python name": (
        "{version: 1, module: distributed, class: !!python/name:os.system ''}",
        r"is not plain YAML",
    ),
    "a day that is none": ("version: 2001-13-45", r"is not plain YAML \(ValueError"),
    "a tag of something else": ("version: !!bool x", r"is not plain YAML"),
    "a number without end": (f"version: 0x{5000 * 'f'}", r"too large a number in line 1"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_cluster_file_is_refused_and_runs_nothing(
    name, cluster_file, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    text, match = MALFORMED[name]
    with pytest.raises(ParameterError, match=match):
        enter(cluster=cluster_file(text))
    assert not (tmp_path / "ran").exists()


def test_a_cluster_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(ParameterError, match=r"does not exist; name a cluster file"):
        enter(cluster=tmp_path / "none.yaml")
    with pytest.raises(ParameterError, match=r"cannot be read"):
        enter(cluster=tmp_path)


WRONG = {
    "unknown key": ({"workers": 3}, r"unknown key 'workers'; the known keys are version, module"),
    "no version": ({"version": None}, r"must say version: 1, but says None"),
    "other version": ({"version": 2}, r"must say version: 1, but says 2"),
    "no module": ({"module": None}, r"module must be a module such as dask\.distributed, not None"),
    "no class": ({"class_": None}, r"class must be a class such as LocalCluster, not None"),
    "args": ({"args": {"a": 1}}, r"args must be a list"),
    "kwargs": ({"kwargs": [1]}, r"kwargs must be a mapping"),
    "config": ({"config": 1}, r"config must be a mapping"),
    "scale a word": ({"scale": "two"}, r"scale must be a whole number"),
    "scale a truth": ({"scale": True}, r"scale must be a whole number"),
    "scale zero": ({"scale": 0}, r"scale must be 1 or more, not 0"),
    "adapt to no end": ({"adapt": {"minimum": 1}}, r"adapt must be \{minimum"),
    "adapt downwards": ({"adapt": {"minimum": 2, "maximum": 1}}, r"adapt must be \{minimum"),
    "adapt to else": ({"adapt": {"maximum": 1, "target": 1}}, r"adapt must be \{minimum"),
    "scale and adapt": ({"scale": 1, "adapt": {"maximum": 1}}, r"both scale and adapt; keep one"),
    "module outside": ({"module": "os", "class_": "system"}, r"module must be in one of dask"),
    "module alike": ({"module": "distributed_evil"}, r"module must be in one of dask"),
    "module relative": ({"module": "distributed..os"}, r"module must be in one of dask"),
    "module by path": ({"module": "distributed.x/y"}, r"module must be in one of dask"),
    "dotted class": ({"class_": "utils.os"}, r"class must be the name of one class"),
    "no such class": ({"class_": "Cloud"}, r"class must be a cluster class of dask\.distributed"),
    "not a cluster": ({"class_": "Client"}, r"class must be a cluster class .* Client is not"),
    "a function": (
        {"module": "distributed.utils", "class_": "import_term"},
        r"class must be a cluster class",
    ),
    "classes by name": ({"class_": "SpecCluster"}, r"class must be a cluster class"),
    "wrong kwargs": (
        {"module": "dask_jobqueue", "class_": "SGECluster", "kwargs": {"nthreads": 1}},
        r"kwargs\.nthreads is not allowed",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_key_in_a_cluster_file_is_refused(name, cluster_file):
    changes, match = WRONG[name]
    with pytest.raises(ParameterError, match=match):
        enter(cluster=cluster_file(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"kwargs": {"n_workers": "1"}},
        {"config": {"distributed.scheduler.no-workers-timeout": "5 potatoes"}},
        {"config": {"distributed.scheduler.no-workers-timeout": True}},
    ],
)
def test_a_number_or_time_that_is_none_is_told_in_one_sentence(changes, cluster_file):
    with pytest.raises(ParameterError, match=r"cluster\.yaml: .*; correct "):
        enter(cluster=cluster_file(**changes))


CODE = {
    "worker class": {"kwargs": {"worker_class": "os.system"}},
    "preload": {"kwargs": {"preload": ["evil.py"]}},
    "preload of nannies": {"kwargs": {"preload_nanny": ["http://evil"]}},
    "preload of the scheduler": {"kwargs": {"scheduler_kwargs": {"preload": "evil"}}},
    "preload in a list": {"kwargs": {"x": [{"preload": "evil"}]}},
    "environment": {"kwargs": {"env": {"LD_PRELOAD": "evil.so"}}},
    "remote python": {"class_": "SSHCluster", "kwargs": {"remote_python": "evil"}},
    "remote python by position": {
        "class_": "SSHCluster",
        "args": [["h"], {}, {}, {}, "distributed.Nanny", "evil"],
    },
    "proxy command": {
        "class_": "SSHCluster",
        "kwargs": {"connect_options": {"proxy_command": "x"}},
    },
    "job script": {"module": "dask_jobqueue", "kwargs": {"job_script_prologue": ["evil"]}},
    "python of jobs": {"module": "dask_jobqueue", "kwargs": {"python": "evil"}},
    "config preload": {"config": {"distributed": {"worker": {"preload": ["evil"]}}}},
    "config preload, dotted": {"config": {"distributed.scheduler.preload-argv": ["evil"]}},
    "config environ": {"config": {"distributed.nanny.pre-spawn-environ": {"LD_PRELOAD": "x"}}},
    "config routes": {"config": {"distributed.worker.http.routes": ["evil"]}},
    "config class": {
        "config": {"distributed.scheduler.active-memory-manager.policies": [{"class": "os.system"}]}
    },
    "config logging": {"config": {"logging": {"version": 1}}},
    "config of the user": {
        "config": {"streamkern.cluster-options.LocalCluster.preload": ["evil.py"]}
    },
    "config directives": {"config": {"jobqueue.slurm.job-extra-directives": ["--export=ALL"]}},
    "jupyter": {"kwargs": {"scheduler_kwargs": {"jupyter": True}}},
    "config loader": {"config": {"distributed.client.security-loader": "os.system"}},
}


@pytest.mark.parametrize("name", CODE)
def test_an_option_that_can_run_code_is_refused(name, cluster_file):
    with pytest.raises(ParameterError, match=r"is not allowed in a cluster file"):
        enter(cluster=cluster_file(**CODE[name]))


ANYWHERE = "0.0.0.0"  # noqa: S104  what must be refused
TRUSTED = {
    "a host that is logged into": {
        "class_": "SSHCluster",
        "kwargs": {"hosts": ["evil.example.org", "localhost"]},
    },
    "who is not asked for a key": {
        "class_": "SSHCluster",
        "kwargs": {"connect_options": {"known_hosts": None}},
    },
    "keys that are lent": {
        "class_": "SSHCluster",
        "kwargs": {"connect_options": {"agent_forwarding": True}},
    },
    "hosts by position": {"class_": "SSHCluster", "args": [["evil.example.org", "localhost"]]},
    "a tunnel": {"class_": "SSHCluster", "kwargs": {"tunnel": "evil.example.org"}},
    "an image": {"module": "dask_kubernetes.operator", "class_": "KubeCluster"}
    | {"kwargs": {"name": "x", "image": "evil"}},
    "a namespace": {"module": "dask_kubernetes.operator", "class_": "KubeCluster"}
    | {"kwargs": {"name": "x", "namespace": "evil"}},
    "what a machine runs at first": {"module": "dask_cloudprovider.aws", "class_": "EC2Cluster"}
    | {"kwargs": {"n_workers": 1, "user_data": "evil"}},
    "a gateway": {"config": {"gateway.address": "https://evil.example.org"}},
    "a file of the scheduler": {"kwargs": {"scheduler_kwargs": {"scheduler_file": "~/.bashrc"}}},
    "a file of workers": {"class_": "SSHCluster"}
    | {"kwargs": {"worker_options": {"scheduler_file": "x"}}},
    "all interfaces": {"kwargs": {"host": ANYWHERE}},
    "all interfaces, by the scheduler": {"kwargs": {"scheduler_kwargs": {"host": ANYWHERE}}},
    "one interface": {"kwargs": {"interface": "eth0"}},
    "a dashboard on all interfaces": {"kwargs": {"dashboard_address": ":8787"}},
    "security waived": {"kwargs": {"security": False}},
    "no encryption": {"config": {"distributed.comm.require-encryption": False}},
    "no encryption, by another spelling": {
        "config": {"distributed": {"comm": {"require_encryption": False}}}
    },
    "no encryption, by nothing at all": {"config": {"distributed": {"comm": {}}}},
    "an old protocol": {"config": {"distributed.comm.tls.min-version": 1.2}},
    "plain messages": {"kwargs": {"protocol": "tcp"}},
    "an authority": {"config": {"distributed.comm.tls.ca-file": "evil.pem"}},
    "where workers spill": {"config": {"temporary-directory": "/shared/evil"}},
    "where jobs spill": {"module": "dask_jobqueue", "class_": "SLURMCluster"}
    | {"kwargs": {"local_directory": "/shared/evil"}},
    "a folder of logs anywhere": {"module": "dask_jobqueue", "class_": "SLURMCluster"}
    | {"kwargs": {"log_directory": "logs/../../x"}},
    "variables in a name": {"kwargs": {"name": "{AWS_SECRET_ACCESS_KEY}"}},
    "a link of the dashboard": {"config": {"distributed.dashboard.link": "https://{SECRET}.evil"}},
    "a trigger": {"module": "dask_jobqueue", "class_": "MoabCluster"}
    | {"kwargs": {"resource_spec": "nodes=1,trig=AType=exec"}},
}


@pytest.mark.parametrize("name", TRUSTED)
def test_what_a_file_chooses_for_its_reader_takes_trust(name, cluster_file):
    path = cluster_file(**TRUSTED[name])
    with pytest.raises(ParameterError, match=r"not allowed .* say --trust-cluster-file") as error:
        read_cluster_file(path)
    assert "evil" not in str(error.value)
    file = read_cluster_file(path, trusted=True)
    assert file.kwargs or file.args or file.config


def test_a_host_of_a_cluster_file_is_not_called(cluster_file):
    """It would answer with a pickle, which Dask loads."""
    called = []

    def answer():
        with suppress(TimeoutError):
            called.append(server.accept()[0].close())

    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        server.settimeout(0.5)
        answering = threading.Thread(target=answer)
        answering.start()
        at = {"port": server.getsockname()[1], "known_hosts": None}
        kwargs = {"hosts": ["127.0.0.1", "127.0.0.1"], "connect_options": at}
        with pytest.raises((ParameterError, ClusterError)) as error:
            enter(cluster=cluster_file(class_="SSHCluster", kwargs=kwargs))
        answering.join()
    assert not called
    assert "not allowed in a cluster file" in str(error.value)


@pytest.mark.cluster
def test_a_cluster_file_overwrites_and_removes_no_file(cluster_file, tmp_path):
    kept = tmp_path / "kept"
    kept.write_text("mine")
    kwargs = {"n_workers": 1, "scheduler_kwargs": {"scheduler_file": str(kept)}}
    try:
        with connect(cluster=cluster_file(kwargs=kwargs)):
            pass
    except ParameterError as error:
        assert "scheduler_kwargs.scheduler_file is not allowed" in str(error)  # noqa: PT017
    assert kept.exists()
    assert kept.read_text() == "mine"


@pytest.mark.cluster
def test_a_file_that_is_trusted_says_anything(cluster_file, tmp_path):
    (tmp_path / "preloaded.py").write_text("def dask_setup(service): service.preloaded = True\n")
    kwargs = {"n_workers": 1, "preload": [str(tmp_path / "preloaded.py")], "host": "localhost"}
    with connect(cluster=cluster_file(kwargs=kwargs), trust_cluster_file=True) as client:
        (found,) = client.run(lambda dask_worker: dask_worker.preloaded).values()
    assert found


SHELL = ["x; touch ran", "$(touch ran)", "`id`", "a\nb", "a | b", "a > b", "a --preload evil"]
QUOTED = ['a "--preload" evil', "a \\--preload evil", "a '--preload' evil", "a\t--preload evil"]
EXPANDED = ["a$IFS--preload", "a${IFS}--preload", "a$TMPDIR--preload", "{a,--preload,evil}", "a *"]
OPTION = ["--preload=evil", "-S /tmp/evil", "normal -S /tmp/evil", "walltime=1,prologue=/tmp/evil"]


@pytest.mark.parametrize("value", [*SHELL, *QUOTED, *EXPANDED, *OPTION])
def test_a_value_with_shell_syntax_is_refused(value, cluster_file):
    place = {"module": "dask_jobqueue", "class_": "PBSCluster"}
    texts = ["account", "queue", "job_name", "interface", "memory", "walltime", "death_timeout"]
    for key in [*texts, "log_directory", "local_directory", "resource_spec"]:
        with pytest.raises(ParameterError, match=rf"this value of kwargs\.{key} is not allowed"):
            read_cluster_file(cluster_file(**place, kwargs={key: value}))


PLAIN = {
    "memory": ["4 GB", "500MB", 4e9, "auto"],
    "walltime": ["01:00:00", "1-00:00:00", "2 hours", 90],
    "account": ["proj@gpu", "a.b/c"],
    "local_directory": ["/tmp", "$TMPDIR", "${TMPDIR}"],  # noqa: S108  on a node
    "log_directory": ["logs", "logs/dask.1/"],
    "resource_spec": ["select=1:ncpus=4:mem=8gb+1:ncpus=1", "nodes=1:ppn=4,walltime=01:00:00"],
    "scheduler_options": [{"port": 0, "dashboard_address": "127.0.0.1:8787"}, {"host": "::1"}],
    "protocol": ["tls", "tls://"],
}


@pytest.mark.parametrize("key", PLAIN)
def test_an_ordinary_value_is_taken(key, cluster_file):
    for value in PLAIN[key]:
        place = {"module": "dask_jobqueue", "class_": "PBSCluster", "kwargs": {key: value}}
        assert read_cluster_file(cluster_file(**place)).kwargs == {key: value}


def test_a_file_may_ask_for_more_security(cluster_file):
    config = {"distributed.comm.require-encryption": True, "distributed.comm.tls.min-version": 1.3}
    kwargs = {"protocol": "tls", "security": True, "dashboard_address": None, "host": "127.0.0.1"}
    file = read_cluster_file(cluster_file(kwargs=kwargs, config=config))
    assert (file.kwargs, file.config) == (kwargs, config)


def test_a_file_leaves_what_the_user_has_said_of_security(cluster_file, tmp_path, monkeypatch):
    """Of lists and mappings, which Dask would take from one place alone; and of places."""
    jobqueue = pytest.importorskip("dask_jobqueue")
    asked = {}
    monkeypatch.setattr(
        jobqueue.SLURMCluster, "__init__", lambda _, **options: asked.update(options)
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "sbatch").touch(0o755)
    site = {
        "scheduler-options": {"protocol": "tls", "port": 1},
        "worker-extra-args": ["--protocol=tls"],
        "interface": "lo",
    }
    kwargs = {
        "scheduler_options": {"port": 2},
        "worker_extra_args": ["--lifetime=1h"],
        "interface": "eth0",
        "queue": "short",
    }
    place = {"module": "dask_jobqueue", "class_": "SLURMCluster"}
    path = cluster_file(**place, kwargs=kwargs)
    own = {
        "jobqueue.slurm": site,
        "streamkern.cluster-options.SLURMCluster.local-directory": "/x",
    }
    with dask.config.set(own), pytest.raises(ClusterError, match=r"could not be started"):
        enter(cluster=path)
    assert asked == kwargs | {
        "scheduler_options": {"protocol": "tls", "port": 2},
        "worker_extra_args": ["--protocol=tls", "--lifetime=1h"],
        "interface": "lo",
        "local_directory": "/x",
    }
    (tmp_path / "sbatch").unlink()
    with pytest.raises(ClusterError, match=r"needs sbatch, which is not on this machine"):
        enter(cluster=path)


DIRECTIVES = {
    "SLURMCluster": (
        ["--mem=8G", "-q normal", "-p short", "--exclusive", "-N1", '--constraint="a|b"'],
        ["--export=ALL", "--exp=ALL", "-D /tmp/evil", "--chdir=/tmp", "--mem=1 --export=x", "x"],
    ),
    "PBSCluster": (
        ["-q normal", "-l place=excl", "-A project", "-j oe", "-V", "-W group_list=us", "-m abe"],
        ["-S /tmp/evil", "-v LD_PRELOAD=x", "-l nodes=1,prologue=/evil", "-W stagein=a@b:c"],
    ),
    "LSFCluster": (
        ["-q normal", '-R "select[mem>4000 && ib] rusage[mem=4000]"', "-n 4", "-gpu num=1", "-x"],
        ["-E /tmp/evil", "-Ep /tmp/evil", "-L /tmp/evil", "-env x", "-q a -E b", '-R "a" -E b'],
    ),
    "MoabCluster": (
        ["-l nodes=1:ppn=4", "-A project"],
        ["-q short@evil", "-l nodes=1,trig=AType=exec", "-W x=trig:AType=exec"],
    ),
    "OARCluster": ([], ["-p cluster"]),
    "HTCondorCluster": ([], ["executable = /tmp/evil"]),
}
BREAKING = [
    "",
    "-q a\n/tmp/evil",
    "-q 'a\n'",
    "-q $(evil)",
    "-q `evil`",
    "-q a\\ -S",
    "-q 'a\" -S'",
    "",
]


@pytest.mark.parametrize("name", DIRECTIVES)
def test_directives_may_ask_for_resources_and_nothing_else(name, cluster_file):
    def read(directives):
        place = {"module": "dask_jobqueue", "class_": name}
        return read_cluster_file(
            cluster_file(**place, kwargs={"job_extra_directives": directives})
        ).kwargs["job_extra_directives"]

    taken, refused = DIRECTIVES[name]
    if taken:
        assert read(taken) == taken
    for directive in [*refused, *BREAKING]:
        with pytest.raises(ParameterError, match=rf"not allowed .* own .*cluster-options\.{name}"):
            read([directive])


def test_workers_may_be_told_when_and_where_to_serve(cluster_file):
    def read(*arguments):
        place = {"module": "dask_jobqueue", "class_": "SLURMCluster"}
        return read_cluster_file(cluster_file(**place, kwargs={"worker_extra_args": [*arguments]}))

    arguments = ["--lifetime", "55m", "--lifetime-stagger=4m", "--worker-port", "3000:3100"]
    arguments += ["--no-dashboard", "--resources", "GPU=1"]
    assert read(*arguments).kwargs == {"worker_extra_args": arguments}
    for evil in ("--preload", "--preload=x", "--nanny-class", "-x", "--lifetime=$(x)", "evil.py"):
        with pytest.raises(ParameterError, match=r"not allowed in a cluster file"):
            read("--lifetime", "1m", evil)


def test_values_that_job_schedulers_need_are_taken(cluster_file):
    kwargs = {
        "queue": "short",
        "cores": 1,
        "memory": "4 GB",
        "walltime": "01:00:00",
        "interface": "ib0",
        "local_directory": "$TMPDIR",
        "job_extra_directives": ["--exclusive", "--nodes=1"],
    }
    file = read_cluster_file(
        cluster_file(
            module="dask_jobqueue",
            class_="SLURMCluster",
            kwargs=kwargs,
            scale=4,
            config={"distributed": {"scheduler": {"no-workers-timeout": "2 hours"}}},
        )
    )
    assert file.kwargs == kwargs
    assert file.config == {"distributed.scheduler.no-workers-timeout": "2 hours"}


@pytest.mark.cluster
def test_the_users_own_configuration_may_give_what_a_file_may_not(cluster_file, tmp_path):
    (tmp_path / "preloaded.py").write_text("def dask_setup(service): service.preloaded = True\n")
    path = cluster_file(kwargs={"n_workers": 1, "threads_per_worker": 1})
    own = {"preload": [str(tmp_path / "preloaded.py")], "n-workers": 3}
    with (
        dask.config.set({"streamkern.cluster-options": {"LocalCluster": own}}),
        connect(cluster=path) as client,
    ):
        assert len(client.nthreads()) == 1  # what the file says counts
        (found,) = client.run(lambda dask_worker: dask_worker.preloaded).values()
        assert found


def test_a_missing_package_is_named_as_pip_names_it(cluster_file):
    with pytest.raises(ClusterError, match="pip install dask-gateway"):
        enter(cluster=cluster_file(module="dask_gateway", class_="GatewayCluster"))


def test_a_cluster_that_lacks_a_package_is_refused_and_logs_nothing(
    cluster_file, capfd, monkeypatch
):
    monkeypatch.setitem(sys.modules, "asyncssh", None)
    path = cluster_file(class_="SSHCluster", args=[["localhost", "localhost"]])
    with pytest.raises(ClusterError, match=r"could not be started .*asyncssh"):
        enter(cluster=path, trust_cluster_file=True)
    assert capfd.readouterr().err == ""


@pytest.mark.cluster
def test_a_cluster_that_fails_to_start_is_refused(cluster_file, monkeypatch):
    # What the scheduler logs about its failed start is its own affair.
    monkeypatch.setattr(logging.getLogger("distributed"), "handlers", [])
    path = cluster_file(kwargs={"n_workers": 1, "memory_limit": "1 ton"})
    with pytest.raises(ClusterError, match=r"the LocalCluster of .* could not be started"):
        enter(cluster=path)


def test_an_error_in_a_cluster_file_does_not_repeat_its_line(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text("version: 1\npassword: open-sesame: x\n")
    with pytest.raises(ParameterError, match=r"is not plain YAML .* in line 2") as error:
        read_cluster_file(path)
    assert "sesame" not in str(error.value)


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
        threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt), connect(scheduler=f"tcp://127.0.0.1:{port}"):
            pass
    assert time.monotonic() - begun < 10


def test_a_client_that_was_left_stays_open_while_its_scheduler_answers():
    class Client:
        status, scheduler_comm = "running", None

        async def echo(self, **_):
            self.status = "closed"  # of which the next look hears

    client, heartbeat = Client(), Heartbeat()
    client.scheduler, client.address = client, "tcp://here"
    heartbeat.is_left, heartbeat.n_waiting = True, 1
    asyncio.run(heartbeat.watch(client))
    assert not heartbeat.is_left
    assert heartbeat.given_up is None


def test_a_client_for_which_nobody_waits_stays_open_whatever_its_scheduler_does():
    class Client:
        n_looks, address = 0, "tcp://here"

        @property
        def status(self):
            self.n_looks += 1
            return "running" if self.n_looks < 20 else "closed"

        async def echo(self, **_):
            await asyncio.sleep(60)

    client, heartbeat = Client(), Heartbeat()
    client.scheduler = client
    with dask.config.set({"streamkern.scheduler-timeout": "0.1 s"}):
        asyncio.run(heartbeat.watch(client))
    assert heartbeat.given_up is None


@pytest.mark.parametrize("read", [read_cluster_file, read_scheduler_file])
def test_a_pipe_in_the_place_of_a_cluster_or_scheduler_file_is_not_waited_for(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ParameterError, match=r"no plain file|must be the JSON"):
        read(tmp_path / "pipe")


def test_a_scheduler_file_that_is_nested_without_end_is_refused(tmp_path):
    (tmp_path / "s.json").write_text("[" * 60_000)
    with pytest.raises(ParameterError, match="must be the JSON"):
        read_scheduler_file(tmp_path / "s.json")
