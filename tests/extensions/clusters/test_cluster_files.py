"""Cluster files: what one may say, what it may not, and those of the repository."""

import re

import dask
import pytest
import yaml
from places import FILES

from streamkern import connect
from streamkern.errors import ClusterError, ParameterError
from streamkern.extensions.clusters.cluster_file import read_cluster_file

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
    "version: [": r"is not plain YAML in line 1",
    "- 1": r"must be a mapping with version, module and class",
    "": r"must be a mapping",
    "? [a]\n: 1": r"is not plain YAML|must be a mapping",
    "version: &a 1\nscale: *a": r"uses YAML aliases",
    "#" * 100_000: r"more than 4 KiB",
    "[" * 1_000: r"is not plain YAML",
    "!!python/object/apply:os.mkdir [ran]": r"must be a mapping",
    "{version: 1, class: !!python/name:os.system ''}": r"class must be one of",
    "version: 1\npassword: open-sesame: x\n": r"is not plain YAML in line 2",
}


@pytest.mark.parametrize("text", MALFORMED, ids=lambda text: text[:40])
def test_a_malformed_cluster_file_is_refused_and_runs_nothing(
    text, cluster_file, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError, match=MALFORMED[text]) as error:
        read_cluster_file(cluster_file(text))
    assert "sesame" not in str(error.value)
    assert not (tmp_path / "ran").exists()


def test_a_cluster_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(ParameterError, match=r"does not exist; name a cluster file"):
        read_cluster_file(tmp_path / "none.yaml")
    with pytest.raises(ParameterError, match=r"cannot be read"):
        read_cluster_file(tmp_path)


SCALE, ADAPT = r"scale must be a whole number of 1 or more", r"adapt must be \{minimum"
CLASS = r"class must be one of LocalCluster of dask\.distributed, .*; start other clusters"
WRONG = {
    "{workers: 3}": r"unknown key 'workers'; a file may have version, module.* own Dask config",
    "{config: {distributed.scheduler.worker-ttl: 5s}}": r"unknown key 'config'; .* own Dask",
    "{version: null}": r"must say version: 1",
    "{version: 2}": r"must say version: 1",
    "{kwargs: [1]}": r"kwargs must be a mapping",
    "{kwargs: {n_workers: many}}": r"kwargs\.n_workers must be a whole number",
    "{kwargs: {n_workers: 10000000000}}": r"must be a whole number",
    **dict.fromkeys(("{scale: two}", "{scale: 0}", "{scale: 1, adapt: {maximum: 1}}"), SCALE),
    "{adapt: {minimum: 1}}": ADAPT,
    "{adapt: {minimum: 2, maximum: 1}}": ADAPT,
    "{adapt: {maximum: 1, target: 1}}": ADAPT,
    **dict.fromkeys(
        (
            "{module: null}",
            "{class: null}",
            "{module: os, class: system}",
            "{class: SpecCluster}",
            "{module: dask_jobqueue}",
            "{module: dask_jobqueue, class: LSFCluster}",
        ),
        CLASS,
    ),
}


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_key_in_a_cluster_file_is_refused(line, read):
    with pytest.raises(ParameterError, match=WRONG[line]):
        read(line)


OTHERS = """
kwargs: {worker_class: os.system}
kwargs: {preload: [evil.py]}
kwargs: {scheduler_kwargs: {preload: evil}}
kwargs: {scheduler_kwargs: {scheduler_file: ~/.bashrc}}
kwargs: {worker_options: {scheduler_file: evil}}
kwargs: {hosts: [evil.example.org, localhost]}
kwargs: {image: evil}
kwargs: {local_directory: /shared/evil}
kwargs: {job_extra_directives: ["-D /tmp/evil"]}
kwargs: {host: 0.0.0.0}
kwargs: {dashboard_address: ":8787"}
kwargs: {security: false}
kwargs: {account: evil}
kwargs: {name: "{AWS_SECRET_ACCESS_KEY}"}
"""
SHELL = ["x; touch evil", "$(touch evil)", "`evil`", "1\nevil", "1 | evil", "1 --preload evil"]
OPTION = ["1$IFS--preload", "{1,--preload,evil}", "1 *", "--preload=evil", "1=1,prologue=/tmp/evil"]


@pytest.mark.parametrize("line", [*cases(OTHERS), *SHELL, *OPTION])
def test_what_is_no_size_or_resource_is_for_the_users_own_configuration(line, read):
    if not line.startswith("kwargs"):
        line = yaml.safe_dump({"kwargs": {"walltime": line}})
    with pytest.raises(
        ParameterError, match=r"kwargs.* (not allowed|must be) .* own Dask"
    ) as error:
        read(line)
    assert "evil" not in str(error.value)


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


PBS = {"module": "dask_jobqueue", "class_": "PBSCluster"}
PLAIN = {
    "memory": ["4 GB", "500MB", "4000000000", "auto"],
    "walltime": ["01:00:00", "1-00:00:00", "2 hours"],
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

    def ask(_, **options):
        asked.update(options)
        raise OSError("nobody is here")

    monkeypatch.setattr(jobqueue.SLURMCluster, "__init__", ask)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "sbatch").touch(0o755)
    path = cluster_file(module="dask_jobqueue", class_="SLURMCluster", kwargs={"memory": "1GB"})
    own = {"interface": "lo", "local-directory": "/x", "memory": "2GB"}
    with (
        dask.config.set({"streamkern.cluster-options.SLURMCluster": own}),
        pytest.raises(ClusterError, match=r"could not be started"),
        connect(cluster=path),
    ):
        pytest.fail("connected")
    assert asked == {"interface": "lo", "local_directory": "/x", "memory": "1GB"}
    (tmp_path / "sbatch").unlink()
    file = read_cluster_file(path)
    with pytest.raises(ClusterError, match=r"needs sbatch, which is not on this machine"):
        file.options(file.cluster_class())
