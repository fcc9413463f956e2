"""Job scripts of Slurm and PBS, as dask-jobqueue writes them for files of the repository."""

import json
import os
import signal
import subprocess
import sys

import dask
import pytest
from conftest import running_scheduler
from places import FILES, adjusted, bits, fit_started, report_of

from streamkern.extensions.clusters.cluster_file import read_cluster_file

dask_jobqueue = pytest.importorskip("dask_jobqueue", reason="needs the package dask-jobqueue")

WORKER = (
    f"{sys.executable} -m distributed.cli.dask_worker tcp://head:8786 --name w --nthreads 1"
    " --memory-limit 3.73GiB --nanny --death-timeout 60 --local-directory /tmp"
    " --lifetime 235m --lifetime-stagger 4m"
)
# What a site says of its jobs, as the pages do.
SITE = {
    "queue": "normal",
    "account": "project",
    "local-directory": "/tmp",  # noqa: S108  of a node
    "log-directory": "logs",
    "worker-extra-args": ["--lifetime", "235m", "--lifetime-stagger", "4m"],
}
DIRECTIVES = {"slurm": ["--hint=nomultithread"], "pbs": ["-j oe", "-r y"]}
HEADERS = {
    "slurm.yaml": """
#SBATCH -J dask-worker
#SBATCH -e logs/dask-worker-%J.err
#SBATCH -o logs/dask-worker-%J.out
#SBATCH -p normal
#SBATCH -A project
#SBATCH -n 1
#SBATCH --cpus-per-task=1
#SBATCH --mem=4G
#SBATCH -t 04:00:00
#SBATCH --hint=nomultithread
""",
    "pbs.yaml": """
#PBS -N dask-worker
#PBS -q normal
#PBS -A project
#PBS -l select=1:ncpus=1:mem=3815MB
#PBS -l walltime=04:00:00
#PBS -e logs/
#PBS -o logs/
#PBS -j oe
#PBS -r y
""",
}


def script_of(path, scheduler="tcp://head:8786", **site):
    file = read_cluster_file(path)
    job, system = getattr(dask_jobqueue, file.name).job_cls, path.stem
    site = SITE | {"job-extra-directives": DIRECTIVES[system]} | site
    with dask.config.set({f"jobqueue.{system}.{key}": value for key, value in site.items()}):
        return job(scheduler=scheduler, name="w", **file.kwargs).job_script()


@pytest.mark.parametrize("name", HEADERS)
def test_a_job_script_is_what_the_file_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, *lines = [line for line in script_of(FILES / name).splitlines() if line]
    assert first == "#!/usr/bin/env bash"
    assert lines[:-1] == HEADERS[name].split("\n")[1:-1]
    assert sorted(lines[-1].split()) == sorted(WORKER.split())


@pytest.mark.cluster
@pytest.mark.parametrize("name", HEADERS)
def test_the_script_starts_a_worker_that_serves_a_fit(name, tmp_path, rows, expected, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = adjusted(name, tmp_path, {"memory": "3GB"})
    with running_scheduler(tmp_path) as at:
        address = json.loads(at.read_text())["address"]
        (tmp_path / "job.sh").write_text(
            script_of(file, address, **{"local-directory": str(tmp_path)})
        )
        with (tmp_path / "job.log").open("w") as log:
            output = {"stdout": log, "stderr": log}
            job = subprocess.Popen(["bash", "job.sh"], **output, start_new_session=True)
        try:
            report_of(fit_started(tmp_path, rows, "--scheduler", address))
        finally:
            os.killpg(job.pid, signal.SIGTERM)  # as job schedulers end a job
            job.wait(30)
    assert bits(tmp_path / "model.h5") == expected
