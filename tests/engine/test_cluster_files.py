"""The cluster files of the repository are read, and have a page each."""

from __future__ import annotations

import re

import pytest
import yaml
from places import FILES

from streamkern.engine.cluster_file import read_cluster_file

PAGES = (FILES.parent / "README.md").read_text()
NAMES = sorted(path.name for path in FILES.iterdir())
CLUSTERS = [name for name in NAMES if name.endswith(".yaml") and name != "kubernetes-job.yaml"]


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


@pytest.mark.parametrize("name", NAMES)
def test_a_file_has_a_page(name):
    assert f"`clusters/{name}`" in PAGES


def test_files_that_pages_name_exist():
    named = set(re.findall(r"clusters/[\w.-]+\.(?:yaml|sh)", PAGES))
    assert named == {f"clusters/{name}" for name in NAMES}


def test_every_page_says_how_to_start_watch_stop_and_resume():
    pages = re.split(r"^## ", PAGES, flags=re.MULTILINE)[1:]
    places = [page for page in pages if "`clusters/" in page or page.startswith("By hand")]
    assert len(places) >= 8
    for page in places:
        for word in ("Start", "Watch", "Stop", "Resume"):
            assert f"**{word}**" in page, (word, page.splitlines()[0])


def test_times_are_texts_to_job_schedulers(tmp_path):
    """YAML's own 10:00:00 is the number 36000, which Slurm takes for minutes."""
    path = tmp_path / "cluster.yaml"
    kwargs = {"walltime": "10:00:00", "cores": 1, "interface": "ib0"}
    content = {"version": 1, "module": "dask_jobqueue", "class": "SLURMCluster", "kwargs": kwargs}
    path.write_text(yaml.safe_dump(content).replace("'", ""))
    assert "walltime: 10:00:00\n" in path.read_text()
    assert read_cluster_file(path).kwargs == kwargs
