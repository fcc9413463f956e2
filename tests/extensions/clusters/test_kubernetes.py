"""What is asked of Dask's operator, checked against the schema that the operator ships.

No Kubernetes runs here.  A server on loopback stands where its interface would be, has nothing, and
writes down what it is asked to create.
"""

from __future__ import annotations

import json
import os
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from places import FILES, configured, fit_started

from streamkern.extensions.clusters.cluster_file import read_cluster_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

dask_kubernetes = pytest.importorskip("dask_kubernetes", reason="needs dask-kubernetes")
jsonschema = pytest.importorskip("jsonschema", reason="schemas are checked by jsonschema")


def schema_of(kind: str) -> dict[str, Any]:
    chart = files("dask_kubernetes") / "operator/deployment/helm/dask-kubernetes-operator"
    definition = yaml.load((chart / "crds" / f"{kind.lower()}.yaml").read_text(), yaml.CSafeLoader)
    (version,) = (each for each in definition["spec"]["versions"] if each["name"] == "v1")
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


@pytest.fixture
def created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """What programs ask to be created that read the configuration of kubectl."""
    asked: list[dict[str, Any]] = []

    class Nothing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            here = self.path.startswith("/version")
            says = {"gitVersion": "v1.34.0"} if here else {"message": "not found", "code": 404}
            body = json.dumps(says).encode()
            self.send_response(200 if here else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Nothing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    place = {"name": "here", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
    context = {"name": "here", "context": {"cluster": "here", "user": "me"}}
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "here"}
    config |= {"clusters": [place], "contexts": [context]}
    config |= {"users": [{"name": "me", "user": {"token": "none"}}]}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    yield asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_what_the_cluster_file_asks_of_the_operator_is_what_it_takes(created, tmp_path, rows):
    file, image = read_cluster_file(FILES / "kubernetes.yaml"), "registry.example.org/one:latest"
    own = configured(
        tmp_path, kubernetes={"image": image, "namespace": "default", "name": "streamkern"}
    )
    fit = fit_started(tmp_path, rows, "--cluster", file.path, env=os.environ | own)
    output, errors = fit.communicate(timeout=120)
    assert fit.returncode == 1
    assert re.match(r"Error: the KubeCluster of .* could not be started \(not found\)", errors)
    assert "Traceback" not in errors
    assert output == ""
    (asked,) = created
    jsonschema.Draft7Validator(schema_of("DaskCluster")).validate(asked)
    assert (asked["kind"], asked["metadata"]["name"]) == ("DaskCluster", "streamkern")
    assert asked["spec"]["worker"]["replicas"] == file.kwargs["n_workers"]
    for part in ("worker", "scheduler"):
        (container,) = asked["spec"][part]["spec"]["containers"]
        assert container["image"] == image
        assert container["resources"] == file.kwargs["resources"]
    assert "dask-worker" in asked["spec"]["worker"]["spec"]["containers"][0]["args"]


def test_the_manifest_of_a_whole_fit_is_what_the_operator_takes():
    manifest = yaml.safe_load((FILES / "kubernetes-job.yaml").read_text())
    jsonschema.Draft7Validator(schema_of("DaskJob")).validate(manifest)
    cluster = manifest["spec"]["cluster"]["spec"]
    parts = manifest["spec"]["job"], cluster["worker"], cluster["scheduler"]
    pods = [part["spec"] for part in parts]
    images = {container["image"] for pod in pods for container in pod["containers"]}
    assert len(images) == 1
    for pod in pods[:2]:  # who reads rows
        (mount,) = pod["containers"][0]["volumeMounts"]
        assert [volume["name"] for volume in pod["volumes"]] == [mount["name"]]
