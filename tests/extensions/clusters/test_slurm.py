"""SLURMCluster, and a job that holds everything, on a real Slurm of one node."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import dask
import pytest
from conftest import wait_until
from hearing import When
from places import (
    FILES,
    N_COMPONENTS,
    STREAMKERN,
    adjusted,
    bits,
    check_it_goes_on,
    configured,
    output_of,
    started,
    stopped_fit,
)

import streamkern
from streamkern.runtime.events import observed

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("dask_jobqueue", reason="SLURMCluster needs the package dask-jobqueue")
PATH = f"{STREAMKERN.parent}:/usr/sbin:/usr/bin:/sbin:/bin"
DAEMONS = ("munged", "slurmctld", "slurmd")
MISSING = [name for name in (*DAEMONS, "sbatch") if not shutil.which(name, path=PATH)]
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"no {', '.join(MISSING)}; install slurm-wlm, munge"),
    pytest.mark.skipif(bool(os.geteuid()), reason="slurmd runs as root alone"),
]
CONFIG = """
ClusterName=streamkern
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control}
SlurmdPort={node}
SlurmUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
MinJobAge=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=16000 State=UNKNOWN
PartitionName=normal Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Run Slurm's daemons, and yield the environment in which its commands find them."""
    folder = tmp_path_factory.mktemp("slurm")
    with ExitStack() as free:
        ports = [free.enter_context(closing(socket.create_server(("", 0)))) for _ in range(2)]
        control, node = (port.getsockname()[1] for port in ports)
    host = socket.gethostname().split(".")[0]
    (folder / "slurm.conf").write_text(
        CONFIG.format(folder=folder, host=host, control=control, node=node, user=getpass.getuser())
    )
    for name in ("state", "spool"):
        (folder / name).mkdir()
    (folder / "key").write_bytes(os.urandom(128))
    (folder / "key").chmod(0o400)
    environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": PATH}
    files = ("key-file=key", "socket=munge.socket", "pid-file=munge.pid", "seed-file=munge.seed")
    munge = [f"--{name}={folder / path}" for name, path in (each.split("=") for each in files)]
    commands = [
        ["munged", "--foreground", "--force", f"--log-file={folder}/munge.log", *munge],
        ["slurmctld", "-D", "-i"],
        ["slurmd", "-D", "-N", host],
    ]
    running = []
    try:
        for command in commands:
            with (folder / f"{command[0]}.log").open("w") as log:
                running.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
            if command[0] == "munged":
                wait_until((folder / "munge.socket").exists, "the start of munged")

        def state():
            command = ["sinfo", "--noheader", "--format=%T"]
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=False
            )
            return done.stdout.strip()

        wait_until(lambda: state() == "idle", "a node that is idle", 30)
        yield environment
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait(20)


def jobs(slurm, *options):
    command = ["squeue", "--noheader", "--format=%i", *options]
    done = subprocess.run(command, env=slurm, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def cluster_file(folder, **changes):
    """The file of the repository, for two jobs of this machine."""
    kwargs = {"walltime": "00:10:00", "memory": "2GB"}
    return adjusted("slurm.yaml", folder, kwargs | changes, adapt={"minimum": 2, "maximum": 2})


def site(folder):
    """What a site says of its jobs in the user's own configuration."""
    return {
        "queue": "normal",
        "interface": "lo",
        "local-directory": str(folder),
        "scheduler-options": {"dashboard_address": "127.0.0.1:0"},
    }


def test_a_job_that_is_cancelled_is_submitted_anew(tmp_path, rows, expected, slurm, monkeypatch):
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, slurm[name])
    monkeypatch.chdir(tmp_path)
    model = streamkern.RandomFeatureRidge(n_components=N_COMPONENTS, alpha=0.1)
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1s"}),
        dask.config.set({f"jobqueue.slurm.{key}": value for key, value in site(tmp_path).items()}),
        streamkern.connect(cluster=cluster_file(tmp_path)),
    ):
        wait_until(lambda: len(jobs(slurm, "--states=RUNNING")) == 2, "two jobs that run")
        first = jobs(slurm)
        cancel = partial(subprocess.run, ["scancel", min(first)], check=True)
        with observed(When(cancel, label="moments")):
            model.fit(streamkern.open_hdf5(str(rows)))
        assert model.coef_.tobytes() == expected
        wait_until(lambda: len(jobs(slurm, "--states=RUNNING") - {min(first)}) == 2, "a new job")
    wait_until(lambda: not jobs(slurm), "the end of the jobs", 30)


def test_a_fit_on_slurm_jobs_that_was_stopped_goes_on(tmp_path, rows, expected, slurm):
    place = ("--cluster", cluster_file(tmp_path))
    slurm = slurm | configured(tmp_path, jobqueue={"slurm": site(tmp_path)})
    assert stopped_fit(tmp_path, rows, *place, number=signal.SIGTERM, env=slurm) == 143
    wait_until(lambda: not jobs(slurm), "the end of the jobs", 30)
    check_it_goes_on(tmp_path, rows, expected, *place, env=slurm)


def test_one_job_holds_scheduler_workers_and_the_fit(tmp_path, rows, expected, slurm):
    batch = ("sbatch", "--wait", "--ntasks=2", "--mem-per-cpu=3G", FILES / "slurm.sh")
    fit = ("rows.h5", "--out", "model.h5", "--components", N_COMPONENTS, "--alpha", 0.1)
    (tmp_path / "rows.h5").symlink_to(rows)
    output_of(started(tmp_path, *batch, *fit, env=slurm))
    assert bits(tmp_path / "model.h5") == expected
    (log,) = Path(tmp_path).glob("streamkern-*.log")
    assert "fit model.h5: done in" in log.read_text()
    wait_until(lambda: not jobs(slurm), "the end of the job", 30)
    # The scheduler removes its file when it has closed.
    wait_until(lambda: not list(tmp_path.glob("scheduler-*.json")), "the end of the scheduler", 30)
