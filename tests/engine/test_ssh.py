"""SSHCluster, on a real sshd that listens on this machine's loopback."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import psutil
import pytest
from conftest import wait_until
from places import adjusted, bits, configured, fit_started, report_of, stopped_fit

if TYPE_CHECKING:
    from collections.abc import Iterator

asyncssh = pytest.importorskip("asyncssh", reason="SSHCluster needs the package asyncssh")
SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:" + os.environ["PATH"])
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.skipif(not SSHD, reason="no sshd; install openssh-server"),
]
CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
"""


class Login(NamedTuple):
    port: int
    key: Path
    known_hosts: Path


@pytest.fixture(scope="module")
def login(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Login]:
    """A running sshd that lets its own key in, and nobody else."""
    folder = tmp_path_factory.mktemp("sshd")
    for name in ("host", "user", "stranger"):
        key = asyncssh.generate_private_key("ssh-ed25519")
        key.write_private_key(folder / name)
        key.write_public_key(folder / f"{name}.pub")
        (folder / name).chmod(0o600)
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    (folder / "config").write_text(CONFIG.format(port=port, folder=folder))
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    if not os.geteuid():
        Path("/run/sshd").mkdir(exist_ok=True)  # where its children are locked up
    with (folder / "log").open("w") as log:
        sshd = subprocess.Popen([SSHD, "-D", "-e", "-f", folder / "config"], stderr=log)
    try:
        wait_until(lambda: "listening" in (folder / "log").read_text(), "listening")
        yield Login(port, folder / "user", folder / "known_hosts")
    finally:
        sshd.terminate()
        sshd.wait(10)


def place_of(folder, login, own=None):
    """The file of the repository, and an environment whose hosts are this machine."""
    connect = {
        "port": login.port,
        "username": getpass.getuser(),
        "client_keys": [str(login.key)],
        "known_hosts": str(login.known_hosts),
    }
    hosts = {
        "hosts": ["127.0.0.1", "127.0.0.1"],
        "connect_options": connect,
        "scheduler_options": {"port": 0, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"},
    }
    own = {"cluster-options": {"SSHCluster": hosts | (own or {})}}
    soon = {"scheduler": {"idle-timeout": "20s"}}
    workers = {"worker_options": {"n_workers": 2, "nthreads": 1, "memory_limit": "3GB"}}
    environment = os.environ | configured(folder, streamkern=own, distributed=soon)
    return ("--cluster", adjusted("ssh.yaml", folder, workers)), environment


def remote_processes():
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if "distributed.cli.dask_spec" in (process.info["cmdline"] or [])
    ]


def test_what_a_program_leaves_that_is_killed_ends_when_it_is_idle(tmp_path, rows, login):
    place, environment = place_of(tmp_path, login)
    stopped_fit(tmp_path, rows, *place, number=signal.SIGKILL, env=environment)
    wait_until(lambda: not remote_processes(), "the end of what ran over SSH")


def test_who_has_another_key_is_not_let_in(tmp_path, rows, login):
    stranger = login._replace(key=login.key.with_name("stranger"))
    place, environment = place_of(tmp_path, stranger)
    fit = fit_started(tmp_path, rows, *place, env=environment)
    _, errors = fit.communicate(timeout=60)
    assert fit.returncode == 1
    assert errors.startswith("Error: the SSHCluster of ")
    assert "could not be started" in errors
    assert "Traceback" not in errors


def test_the_users_own_configuration_may_name_the_python_of_other_machines(
    tmp_path, rows, expected, login
):
    python = tmp_path / "python"
    # Which kernels OpenBLAS takes decides the bits, and sshd passes no variables on.
    names = [name for name in os.environ if name.startswith("OPENBLAS_")]
    kernels = "".join(f"export {name}='{os.environ[name]}'\n" for name in names)
    python.write_text(f'#!/bin/sh\n{kernels}touch {tmp_path}/used\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    place, environment = place_of(tmp_path, login, {"remote_python": str(python)})
    report_of(fit_started(tmp_path, rows, *place, env=environment))
    assert (tmp_path / "used").exists()
    assert bits(tmp_path / "model.h5") == expected
    wait_until(lambda: not remote_processes(), "the end of what ran over SSH")
