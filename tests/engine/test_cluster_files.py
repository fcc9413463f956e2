"""Cluster files: what one may say, what it may not, and those of the repository."""

import re
import socket
import threading
from contextlib import closing, suppress

import dask
import pytest
import yaml
from places import FILES

from streamkern import connect
from streamkern.engine.cluster_file import read_cluster_file
from streamkern.errors import ClusterError, ParameterError

HOWTO = FILES.parents[1] / "docs" / "howto"
PAGES = [(HOWTO / f"{name}.md").read_text() for name in ("slurm", "kubernetes", "ssh")]
NAMES = sorted(path.name for path in FILES.iterdir())
CLUSTERS = [name for name in NAMES if name.endswith(".yaml") and name != "kubernetes-job.yaml"]


def cases(text):
    """The lines of a text, each what a cluster file says, as YAML."""
    return text.strip().splitlines()


@pytest.fixture
def read(cluster_file):
    def write_and_read(line="{}", **changes):
        return read_cluster_file(cluster_file(**yaml.safe_load(line) | changes))

    return write_and_read


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_cluster_file_of_the_repository_is_taken(name):
    file = read_cluster_file(FILES / name)
    workers = file.kwargs.get("worker_options", file.kwargs)
    assert file.scale or file.adapt or workers["n_workers"]
    threads = workers.get("threads_per_worker", workers.get("nthreads", workers.get("cores")))
    assert threads == 1 or workers["resources"]["limits"]["cpu"] == "1"
    assert "memory" in str(workers)


def test_every_file_has_a_page():
    assert {
        name for page in PAGES for name in re.findall(r"`jobs/clusters/([\w.-]+)`", page)
    } == set(NAMES)


MALFORMED = {
    "version: [": r"is not plain YAML",
    "- 1": r"must be a mapping with version, module and class, not list",
    "": r"must be a mapping .* not NoneType",
    "version: &a 1\nscale: *a": r"uses YAML aliases",
    "[" * 20_000: r"more than 1000 brackets",
    "#" * 100_000: r"no plain file of at most 32 KiB",
    "!!python/object/apply:os.mkdir [ran]": r"is not plain YAML \(could not determine a con",
    "{version: 1, class: !!python/name:os.system ''}": r"is not plain YAML",
    "version: 2001-13-45": r"is not plain YAML \(ValueError",
    "version: !!bool x": r"is not plain YAML",
    f"version: 0x{5000 * 'f'}": r"too large a number in line 1",
}


@pytest.mark.parametrize("text", MALFORMED, ids=lambda text: text[:40])
def test_a_malformed_cluster_file_is_refused_and_runs_nothing(
    text, cluster_file, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError, match=MALFORMED[text]):
        read_cluster_file(cluster_file(text))
    assert not (tmp_path / "ran").exists()


def test_a_cluster_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(ParameterError, match=r"does not exist; name a cluster file"):
        read_cluster_file(tmp_path / "none.yaml")
    with pytest.raises(ParameterError, match=r"cannot be read"):
        read_cluster_file(tmp_path)


WRONG = {
    "{workers: 3}": r"unknown key 'workers'; the known keys are version, module",
    "{version: null}": r"must say version: 1, but says None",
    "{version: 2}": r"must say version: 1, but says 2",
    "{module: null}": r"module must be a module such as dask\.distributed, not None",
    "{class: null}": r"class must be a class such as LocalCluster, not None",
    "{args: []}": r"unknown key 'args'",
    "{kwargs: [1]}": r"kwargs must be a mapping",
    "{config: 1}": r"config must be a mapping",
    "{scale: two}": r"scale must be a whole number",
    "{scale: true}": r"scale must be a whole number",
    "{scale: 0}": r"scale must be 1 or more, not 0",
    "{adapt: {minimum: 1}}": r"adapt must be \{minimum",
    "{adapt: {minimum: 2, maximum: 1}}": r"adapt must be \{minimum",
    "{adapt: {maximum: 1, target: 1}}": r"adapt must be \{minimum",
    "{scale: 1, adapt: {maximum: 1}}": r"both scale and adapt; keep one",
    **dict.fromkeys(
        (
            "{module: os, class: system}",
            "{module: distributed_evil}",
            "{module: distributed.x/y}",
            "{class: utils.os}",
            "{class: Client}",
            "{class: SpecCluster}",
            "{module: dask_jobqueue}",
            "{module: dask_jobqueue, class: LSFCluster}",
            "{module: distributed.utils, class: import_term}",
        ),
        r"class must be one of LocalCluster of dask\.distributed, .*, not .* of ",
    ),
}


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_key_in_a_cluster_file_is_refused(line, read):
    with pytest.raises(ParameterError, match=WRONG[line]):
        read(line)


NO_NUMBERS = """
kwargs: {n_workers: "1"}
config: {distributed.scheduler.no-workers-timeout: 5 potatoes}
config: {distributed.scheduler.no-workers-timeout: true}
"""


@pytest.mark.parametrize("line", cases(NO_NUMBERS))
def test_a_number_or_time_that_is_none_is_told_in_one_sentence(line, cluster_file):
    path = cluster_file(**yaml.safe_load(line))
    with pytest.raises(ParameterError, match=r"cluster\.yaml: .*; correct "), connect(cluster=path):
        pytest.fail("connected")


CODE = """
kwargs: {worker_class: os.system}
kwargs: {preload: [evil.py]}
kwargs: {scheduler_kwargs: {preload: evil}}
kwargs: {x: [{preload: evil}]}
kwargs: {env: {LD_PRELOAD: evil.so}}
kwargs: {scheduler_kwargs: {jupyter: true}}
{module: dask_jobqueue, class: SLURMCluster, kwargs: {job_script_prologue: [evil]}}
config: {distributed: {worker: {preload: [evil]}}}
config: {distributed.nanny.pre-spawn-environ: {LD_PRELOAD: x}}
config: {distributed.scheduler.active-memory-manager.policies: [{class: os.system}]}
config: {logging: {version: 1}}
config: {streamkern.cluster-options.LocalCluster.preload: [evil.py]}
config: {jobqueue.slurm.job-extra-directives: ["--export=ALL"]}
config: {distributed.client.security-loader: os.system}
"""


@pytest.mark.parametrize("line", cases(CODE))
def test_an_option_that_can_run_code_is_refused(line, read):
    with pytest.raises(ParameterError, match=r"is not allowed in a cluster file"):
        read(line)


OTHERS = """
{class: SSHCluster, kwargs: {hosts: [evil.example.org, localhost]}}
{class: SSHCluster, kwargs: {worker_options: {scheduler_file: evil}}}
{module: dask_kubernetes.operator, class: KubeCluster, kwargs: {name: x, image: evil}}
{module: dask_kubernetes.operator, class: KubeCluster, kwargs: {resources: [evil]}}
{module: dask_jobqueue, class: SLURMCluster, kwargs: {local_directory: /shared/evil}}
{module: dask_jobqueue, class: SLURMCluster, kwargs: {job_extra_directives: ["-D /tmp/evil"]}}
{module: dask_jobqueue, class: PBSCluster, kwargs: {resource_spec: "nodes=1,trig=AType=exec"}}
{module: dask_jobqueue, class: PBSCluster, kwargs: {worker_extra_args: [--preload, evil]}}
kwargs: {scheduler_kwargs: {scheduler_file: ~/.bashrc}}
kwargs: {host: 0.0.0.0}
kwargs: {interface: eth0}
kwargs: {dashboard_address: ":8787"}
kwargs: {security: false}
kwargs: {protocol: tcp}
kwargs: {name: "{AWS_SECRET_ACCESS_KEY}"}
config: {gateway.address: "https://evil.example.org"}
config: {distributed.comm.require-encryption: false}
config: {distributed: {comm: {}}}
config: {distributed.comm.tls.ca-file: evil.pem}
config: {distributed.dashboard.link: "https://{SECRET}.evil"}
"""


@pytest.mark.parametrize("line", cases(OTHERS))
def test_what_could_run_code_or_open_the_cluster_is_for_the_users_own_configuration(line, read):
    with pytest.raises(ParameterError, match=r"not allowed .* own Dask configuration") as error:
        read(line)
    assert "evil" not in str(error.value)


def test_a_host_of_a_cluster_file_is_not_called(cluster_file):
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
        with (
            pytest.raises((ParameterError, ClusterError)) as error,
            connect(cluster=cluster_file(class_="SSHCluster", kwargs=kwargs)),
        ):
            pytest.fail("connected")
        answering.join()
    assert not called
    assert "not allowed in a cluster file" in str(error.value)


def test_a_cluster_file_overwrites_and_removes_no_file(cluster_file, tmp_path):
    kept = tmp_path / "kept"
    kept.write_text("mine")
    kwargs = {"n_workers": 1, "scheduler_kwargs": {"scheduler_file": str(kept)}}
    refused = pytest.raises(ParameterError, match=r"\.scheduler_kwargs is not allowed")
    with refused, connect(cluster=cluster_file(kwargs=kwargs)):
        pytest.fail("connected")
    assert kept.read_text() == "mine"


@pytest.mark.cluster
def test_the_users_own_configuration_may_say_anything(cluster_file, tmp_path):
    (tmp_path / "preloaded.py").write_text("def dask_setup(service): service.preloaded = True\n")
    # But what the file says counts.
    own = {"preload": [str(tmp_path / "preloaded.py")], "n-workers": 3}
    with (
        dask.config.set({"streamkern.cluster-options": {"LocalCluster": own}}),
        connect(cluster=cluster_file(kwargs={"n_workers": 1})) as client,
    ):
        (found,) = client.run(lambda dask_worker: dask_worker.preloaded).values()
    assert found


SHELL = ["x; touch ran", "$(touch ran)", "`id`", "a\nb", "a | b", "a > b", "a --preload evil"]
QUOTED = ['a "--preload" evil', "a \\--preload evil", "a '--preload' evil", "a\t--preload evil"]
EXPANDED = ["a$IFS--preload", "a${IFS}--preload", "a$TMPDIR--preload", "{a,--preload,evil}", "a *"]
OPTION = ["--preload=evil", "-S /tmp/evil", "normal -S /tmp/evil", "walltime=1,prologue=/tmp/evil"]
PBS = {"module": "dask_jobqueue", "class_": "PBSCluster"}


@pytest.mark.parametrize("value", [*SHELL, *QUOTED, *EXPANDED, *OPTION])
def test_a_value_with_shell_syntax_is_refused(value, read):
    for key in ("account", "queue", "job_name", "memory", "walltime", "death_timeout"):
        with pytest.raises(ParameterError, match=rf"this value of kwargs\.{key} is not allowed"):
            read(**PBS, kwargs={key: value})


PLAIN = {
    "memory": ["4 GB", "500MB", 4e9, "auto"],
    "walltime": ["01:00:00", "1-00:00:00", "2 hours", 90],
    "account": ["a.b-c"],
    "dashboard_address": ["127.0.0.1:8787", None],
    "queue": ["short"],
    "cores": [1],
}


@pytest.mark.parametrize("key", PLAIN)
def test_an_ordinary_value_is_taken(key, read):
    for value in PLAIN[key]:
        assert read(**PBS, kwargs={key: value}).kwargs == {key: value}


def test_times_are_texts_to_job_schedulers(cluster_file):
    place = "version: 1\nmodule: dask_jobqueue\nclass: SLURMCluster\n"
    path = cluster_file(f"{place}kwargs: {{walltime: 10:00:00, cores: 1}}\nscale: 4")
    assert read_cluster_file(path).kwargs == {"walltime": "10:00:00", "cores": 1}


def test_what_the_user_has_said_stands_beside_the_file(cluster_file, tmp_path, monkeypatch):
    jobqueue = pytest.importorskip("dask_jobqueue")
    asked = {}
    monkeypatch.setattr(
        jobqueue.SLURMCluster, "__init__", lambda _, **options: asked.update(options)
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "sbatch").touch(0o755)
    path = cluster_file(module="dask_jobqueue", class_="SLURMCluster", kwargs={"queue": "short"})
    own = {"interface": "lo", "local-directory": "/x", "queue": "long"}
    with (
        dask.config.set({"streamkern.cluster-options.SLURMCluster": own}),
        pytest.raises(ClusterError, match=r"could not be started"),
        connect(cluster=path),
    ):
        pytest.fail("connected")
    assert asked == {"interface": "lo", "local_directory": "/x", "queue": "short"}
    (tmp_path / "sbatch").unlink()
    file = read_cluster_file(path)
    with pytest.raises(ClusterError, match=r"needs sbatch, which is not on this machine"):
        file.options(file.cluster_class())


def test_an_error_in_a_cluster_file_does_not_repeat_its_line(cluster_file):
    path = cluster_file("version: 1\npassword: open-sesame: x\n")
    with pytest.raises(ParameterError, match=r"is not plain YAML .* in line 2") as error:
        read_cluster_file(path)
    assert "sesame" not in str(error.value)
