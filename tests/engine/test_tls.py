"""Encrypted clusters by configuration: with certificates one gets in, without them nobody does."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import dask
import numpy as np
import pytest
from commandline import write
from distributed import Client
from distributed.security import Security
from places import configured

import streamkern
from streamkern.errors import ClusterError

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not shutil.which("openssl"), reason="openssl makes the certificates"),
]


def openssl(folder, *arguments):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A certificate of an authority, one that it signed, and one of somebody else."""
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("ca", "stranger"):
        made = f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={name}"
        openssl(folder, *made.split(), "-keyout", f"{name}.key", "-out", f"{name}.pem")
    asked = "req -newkey rsa:2048 -nodes -subj /CN=streamkern -keyout node.key -out node.csr"
    signed = "x509 -req -in node.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out node.pem"
    openssl(folder, *asked.split())
    openssl(folder, *signed.split())
    return folder


def tls(folder, name="node"):
    """The configuration that uses a certificate everywhere."""
    comm = "distributed.comm"
    ca = "ca" if name == "node" else name
    settings = {f"{comm}.require-encryption": True, f"{comm}.tls.ca-file": f"{folder}/{ca}.pem"}
    for role in ("scheduler", "worker", "client"):
        settings[f"{comm}.tls.{role}.cert"] = f"{folder}/{name}.pem"
        settings[f"{comm}.tls.{role}.key"] = f"{folder}/{name}.key"
    return settings


ONE = {"n_workers": 1, "threads_per_worker": 1}


def test_a_cluster_is_encrypted_as_the_users_own_configuration_says(cluster_file, certificates):
    with (
        dask.config.set(tls(certificates)),
        streamkern.connect(cluster=cluster_file(kwargs=ONE)) as client,
    ):
        assert client.scheduler.address.startswith("tls://127.0.0.1:")
        assert all(address.startswith("tls://") for address in client.scheduler_info()["workers"])
        assert client.submit(sum, [1, 2]).result() == 3


def test_who_has_no_certificate_or_that_of_a_stranger_is_refused(cluster_file, certificates):
    with (
        dask.config.set(tls(certificates)),
        streamkern.connect(cluster=cluster_file(kwargs=ONE)) as client,
    ):
        address = client.scheduler.address
        with streamkern.connect(scheduler=address) as second:
            assert second.submit(sum, [2, 2]).result() == 4
        with (
            dask.config.set(tls(certificates, "stranger")),
            pytest.raises(ClusterError, match=r"no Dask scheduler answers|CERTIFICATE"),
            streamkern.connect(scheduler=address, timeout=5),
        ):
            pytest.fail("a stranger was let in")
        plain = address.replace("tls://", "tcp://")
        with pytest.raises(OSError, match=r"."):
            Client(plain, timeout=3, security=Security(require_encryption=False))


def test_no_secret_is_in_what_a_job_writes_or_says(cluster_file, certificates, tmp_path):
    own = tls(certificates) | {"gateway.password": "open-sesame"}
    environment = os.environ | configured(tmp_path, **own)
    place = ("--cluster", cluster_file(kwargs=ONE))
    X = np.random.default_rng(0).standard_normal((500, 3))
    write(tmp_path / "data.h5", X, X[:, 0])
    place += ("--checkpoint", tmp_path / "saved")
    command = ("fit", tmp_path / "data.h5", "--components", "16", "--out", tmp_path / "model.h5")
    program = Path(sys.executable).with_name("streamkern")
    heard = {"capture_output": True, "text": True, "env": environment}
    done = subprocess.run([program, *command, *place, "--json", "--debug"], check=True, **heard)
    key = (certificates / "node.key").read_text().splitlines()[1]
    written = done.stdout + done.stderr + (tmp_path / "model.h5").read_bytes().decode("latin-1")
    for secret in (key, "node.key", "open-sesame"):
        assert secret not in written
    cluster_file(kwargs=ONE | {"password": "open-sesame"})
    refused = subprocess.run([program, *command, *place, "--force"], check=False, **heard)
    assert refused.returncode == 2
    assert "open-sesame" not in refused.stderr
