"""Cluster files: what one may say by itself, what takes trust, and those of the repository."""

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
def test_a_cluster_file_is_taken_by_itself_or_says_that_it_takes_trust(name):
    trusted = "--trust-cluster-file" in (FILES / name).read_text()
    file = read_cluster_file(FILES / name, trusted=trusted)
    assert trusted == (name in ("kubernetes.yaml", "ssh.yaml", "tls.yaml"))
    workers = file.kwargs.get("worker_options", file.kwargs)
    assert file.scale or file.adapt or workers["n_workers"]
    threads = workers.get("threads_per_worker", workers.get("nthreads", workers.get("cores")))
    assert threads == 1 or workers["resources"]["limits"]["cpu"] == "1"
    assert "memory" in str(workers)


def test_every_file_has_a_page_that_says_how_to_start_watch_stop_and_resume():
    named = {name for page in PAGES for name in re.findall(r"`jobs/clusters/([\w.-]+)`", page)}
    assert named == set(NAMES)
    for page in PAGES:
        assert "streamkern fit" in page
        for word in ("watch", "stop", "resume"):
            assert f"\n| {word} |" in page, (word, page.splitlines()[0])


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
    "{args: {a: 1}}": r"args must be a list",
    "{kwargs: [1]}": r"kwargs must be a mapping",
    "{config: 1}": r"config must be a mapping",
    "{scale: two}": r"scale must be a whole number",
    "{scale: true}": r"scale must be a whole number",
    "{scale: 0}": r"scale must be 1 or more, not 0",
    "{adapt: {minimum: 1}}": r"adapt must be \{minimum",
    "{adapt: {minimum: 2, maximum: 1}}": r"adapt must be \{minimum",
    "{adapt: {maximum: 1, target: 1}}": r"adapt must be \{minimum",
    "{scale: 1, adapt: {maximum: 1}}": r"both scale and adapt; keep one",
    "{module: os, class: system}": r"module must be in one of dask",
    "{module: distributed_evil}": r"module must be in one of dask",
    "{module: distributed..os}": r"module must be in one of dask",
    "{module: distributed.x/y}": r"module must be in one of dask",
    "{class: utils.os}": r"class must be the name of one class",
    "{class: Cloud}": r"class must be a cluster class of dask\.distributed",
    "{class: Client}": r"class must be a cluster class .* Client is not",
    "{module: distributed.utils, class: import_term}": r"class must be a cluster class",
    "{class: SpecCluster}": r"class must be a cluster class",
    "{module: dask_jobqueue, class: SGECluster, kwargs: {nthreads: 1}}": r"nthreads is not allowed",
}


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_key_in_a_cluster_file_is_refused(line, read):
    with pytest.raises(ParameterError, match=WRONG[line]):
        read(line).cluster_class()


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
{class: SSHCluster, args: [[h], {}, {}, {}, distributed.Nanny, evil]}
{module: dask_jobqueue, kwargs: {job_script_prologue: [evil]}}
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


TRUSTED = """
{class: SSHCluster, kwargs: {hosts: [evil.example.org, localhost]}}
{class: SSHCluster, args: [[evil.example.org, localhost]]}
{class: SSHCluster, kwargs: {worker_options: {scheduler_file: x}}}
{module: dask_kubernetes.operator, class: KubeCluster, kwargs: {name: x, image: evil}}
{module: dask_cloudprovider.aws, class: EC2Cluster, kwargs: {n_workers: 1, user_data: evil}}
{module: dask_jobqueue, class: SLURMCluster, kwargs: {local_directory: /shared/evil}}
{module: dask_jobqueue, class: SLURMCluster, kwargs: {log_directory: logs/../../x}}
{module: dask_jobqueue, class: MoabCluster, kwargs: {resource_spec: "nodes=1,trig=AType=exec"}}
kwargs: {scheduler_kwargs: {scheduler_file: ~/.bashrc}}
kwargs: {host: 0.0.0.0}
kwargs: {scheduler_kwargs: {host: 0.0.0.0}}
kwargs: {interface: eth0}
kwargs: {dashboard_address: ":8787"}
kwargs: {security: false}
kwargs: {protocol: tcp}
kwargs: {name: "{AWS_SECRET_ACCESS_KEY}"}
config: {gateway.address: "https://evil.example.org"}
config: {distributed.comm.require-encryption: false}
config: {distributed: {comm: {require_encryption: false}}}
config: {distributed: {comm: {}}}
config: {distributed.comm.tls.min-version: 1.2}
config: {distributed.dashboard.link: "https://{SECRET}.evil"}
"""


@pytest.mark.parametrize("line", cases(TRUSTED))
def test_what_a_file_chooses_for_its_reader_takes_trust(line, cluster_file):
    path = cluster_file(**yaml.safe_load(line))
    with pytest.raises(ParameterError, match=r"not allowed .* say --trust-cluster-file") as error:
        read_cluster_file(path)
    assert "evil" not in str(error.value)
    file = read_cluster_file(path, trusted=True)
    assert file.kwargs or file.args or file.config


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


@pytest.mark.cluster
def test_a_cluster_file_overwrites_and_removes_no_file(cluster_file, tmp_path):
    kept = tmp_path / "kept"
    kept.write_text("mine")
    kwargs = {"n_workers": 1, "scheduler_kwargs": {"scheduler_file": str(kept)}}
    refused = pytest.raises(ParameterError, match=r"\.scheduler_file is not allowed")
    with refused, connect(cluster=cluster_file(kwargs=kwargs)):
        pytest.fail("connected")
    assert kept.read_text() == "mine"


@pytest.mark.cluster
@pytest.mark.parametrize("said_by", ["a file that is trusted", "the user's own configuration"])
def test_anything_may_be_said_by(said_by, cluster_file, tmp_path):
    (tmp_path / "preloaded.py").write_text("def dask_setup(service): service.preloaded = True\n")
    kwargs, preload = {"n_workers": 1}, {"preload": [str(tmp_path / "preloaded.py")]}
    trusted = said_by == "a file that is trusted"
    own = {} if trusted else preload | {"n-workers": 3}  # but what the file says counts
    path = cluster_file(kwargs=kwargs | preload | {"host": "localhost"} if trusted else kwargs)
    with (
        dask.config.set({"streamkern.cluster-options": {"LocalCluster": own}}),
        connect(cluster=path, trust_cluster_file=trusted) as client,
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
    texts = ["account", "queue", "job_name", "interface", "memory", "walltime", "death_timeout"]
    for key in [*texts, "log_directory", "local_directory", "resource_spec"]:
        with pytest.raises(ParameterError, match=rf"this value of kwargs\.{key} is not allowed"):
            read(**PBS, kwargs={key: value})


PLAIN = {
    "memory": ["4 GB", "500MB", 4e9, "auto"],
    "walltime": ["01:00:00", "1-00:00:00", "2 hours", 90],
    "account": ["proj@gpu", "a.b/c"],
    "local_directory": ["/tmp", "$TMPDIR", "${TMPDIR}"],  # noqa: S108  on a node
    "log_directory": ["logs", "logs/dask.1/"],
    "resource_spec": ["select=1:ncpus=4:mem=8gb+1:ncpus=1", "nodes=1:ppn=4,walltime=01:00:00"],
    "scheduler_options": [{"port": 0, "dashboard_address": "127.0.0.1:8787"}, {"host": "::1"}],
    "protocol": ["tls", "tls://"],
    "queue": ["short"],
    "cores": [1],
    "interface": ["ib0"],
}


@pytest.mark.parametrize("key", PLAIN)
def test_an_ordinary_value_is_taken(key, read):
    for value in PLAIN[key]:
        assert read(**PBS, kwargs={key: value}).kwargs == {key: value}


def test_times_are_texts_to_job_schedulers(cluster_file):
    place = "version: 1\nmodule: dask_jobqueue\nclass: SLURMCluster\n"
    path = cluster_file(f"{place}kwargs: {{walltime: 10:00:00, cores: 1}}\nscale: 4")
    assert read_cluster_file(path).kwargs == {"walltime": "10:00:00", "cores": 1}


def test_a_file_may_ask_for_more_security(read):
    config = {"distributed.comm.require-encryption": True, "distributed.comm.tls.min-version": 1.3}
    kwargs = {"protocol": "tls", "security": True, "dashboard_address": None, "host": "127.0.0.1"}
    file = read(kwargs=kwargs, config=config)
    assert (file.kwargs, file.config) == (kwargs, config)


def test_a_file_leaves_what_the_user_has_said_of_security(cluster_file, tmp_path, monkeypatch):
    jobqueue = pytest.importorskip("dask_jobqueue")
    asked = {}
    monkeypatch.setattr(
        jobqueue.SLURMCluster, "__init__", lambda _, **options: asked.update(options)
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "sbatch").touch(0o755)
    site = {"scheduler-options": {"protocol": "tls", "port": 1}, "interface": "lo"}
    site["worker-extra-args"] = ["--protocol=tls"]
    kwargs = {"scheduler_options": {"port": 2}, "interface": "eth0", "queue": "short"}
    kwargs["worker_extra_args"] = ["--lifetime=1h"]
    path = cluster_file(module="dask_jobqueue", class_="SLURMCluster", kwargs=kwargs)
    own = {"jobqueue.slurm": site, "streamkern.cluster-options.SLURMCluster.local-directory": "/x"}
    with (
        dask.config.set(own),
        pytest.raises(ClusterError, match=r"could not be started"),
        connect(cluster=path),
    ):
        pytest.fail("connected")
    assert asked == kwargs | {
        "scheduler_options": {"protocol": "tls", "port": 2},
        "worker_extra_args": ["--protocol=tls", "--lifetime=1h"],
        "interface": "lo",
        "local_directory": "/x",
    }
    (tmp_path / "sbatch").unlink()
    file = read_cluster_file(path)
    with pytest.raises(ClusterError, match=r"needs sbatch, which is not on this machine"):
        file.options(file.cluster_class())


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
BREAKING = ["", "-q a\n/tmp/evil", "-q 'a\n'", "-q $(evil)", "-q `evil`", "-q a\\ -S"]
BREAKING += ["-q 'a\" -S'"]


@pytest.mark.parametrize("name", DIRECTIVES)
def test_directives_may_ask_for_resources_and_nothing_else(name, read):
    taken, refused = DIRECTIVES[name]
    place = {"module": "dask_jobqueue", "class_": name}
    if taken:
        kwargs = {"job_extra_directives": taken}
        assert read(**place, kwargs=kwargs).kwargs == kwargs
    for line in [*refused, *BREAKING]:
        with pytest.raises(ParameterError, match=rf"not allowed .* own .*cluster-options\.{name}"):
            read(**place, kwargs={"job_extra_directives": [line]})


def test_workers_may_be_told_when_and_where_to_serve(read):
    words = ["--lifetime", "55m", "--lifetime-stagger=4m", "--worker-port", "3000:3100"]
    kwargs = {"worker_extra_args": [*words, "--no-dashboard", "--resources", "GPU=1"]}
    assert read(**PBS, kwargs=kwargs).kwargs == kwargs
    for evil in ("--preload", "--preload=x", "--nanny-class", "-x", "--lifetime=$(x)", "evil.py"):
        with pytest.raises(ParameterError, match=r"not allowed in a cluster file"):
            read(**PBS, kwargs={"worker_extra_args": ["--lifetime", "1m", evil]})


def test_an_error_in_a_cluster_file_does_not_repeat_its_line(cluster_file):
    path = cluster_file("version: 1\npassword: open-sesame: x\n")
    with pytest.raises(ParameterError, match=r"is not plain YAML .* in line 2") as error:
        read_cluster_file(path)
    assert "sesame" not in str(error.value)
