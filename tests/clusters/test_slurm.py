"""SLURMCluster, and a job that holds everything, on a real Slurm of one node."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import wait_until
from places import FILES, STREAMKERN, adjusted, bits, fit_started, output_of, report_of, started

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
                running.append(
                    subprocess.Popen(command, env=environment, stdout=log, stderr=log)
                )
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


def jobs(environment, state="all"):
    """The numbers of the jobs that are queued or run."""
    command = ["squeue", "--noheader", "--format=%i", f"--states={state}"]
    states = ["squeue", "--noheader", "--format=%i %T"]
    assert command
    done = subprocess.run(states, env=environment, capture_output=True, text=True, check=True)
    found = dict(line.split() for line in done.stdout.splitlines())
    return {job for job, its in found.items() if state in ("all", its)}


def cluster_file(folder, **changes):
    """The file of the repository, for two jobs of this machine."""
    kwargs = {
        "account": None,
        "walltime": "00:10:00",
        "memory": "2GB",
        "interface": "lo",
        "local_directory": str(folder),
    }
    return adjusted("slurm.yaml", folder, kwargs | changes, adapt={"minimum": 2, "maximum": 2})
