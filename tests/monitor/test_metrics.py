"""The series on /metrics, as the official client and a real Prometheus read them."""

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import numpy as np
import pytest
from conftest import wait_until
from monitor.events import Story
from prometheus_client import REGISTRY, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from servers import free_port

import streamkern

GAUGES = (
    *("job_running", "job_failed", "job_elapsed_seconds", "job_planned_worker_memory_bytes"),
    *("pass_rows", "pass_rows_done", "pass_read_bytes", "pass_left_seconds", "pass_shards"),
    *("pass_flops_per_second", "pass_attainable_flops_per_second", "pass_peak_memory_bytes"),
    "pass_validation_rmse",
)
OF_JOBS = {f"streamkern_{name}": "gauge" for name in GAUGES}
OF_JOBS |= {"streamkern_pass_activity_seconds": "counter"}
COUNTED = ("rows", "shards", "activity_seconds")
OF_PROCESSES = {f"streamkern_worker_{name}": "counter" for name in COUNTED}


def families(text):
    """The series of this package, read by the official client."""
    return {
        family.name: family
        for family in text_string_to_metric_families(text)
        if family.name.startswith("streamkern")
    }


def test_series_hold_the_figures_of_a_job_and_a_hostile_name_stays_one_label():
    name = 'a" }\\ 1\n# TYPE b gauge\n<script>'
    story = Story()
    story.begin(name)
    story.begin_pass()
    for shard in range(3):
        story.shard(shard)
    story.validated(300, 0.25)
    found = families(story.series())
    assert {name: family.type for name, family in found.items()} == OF_JOBS
    assert all(family.documentation for family in found.values())

    def values(name):
        return [sample.value for sample in found[name].samples]

    assert values("streamkern_job_running") == [1.0]
    assert values("streamkern_pass_rows_done") == [300.0]
    assert values("streamkern_pass_validation_rmse") == [0.25]
    assert values("streamkern_job_planned_worker_memory_bytes") == [1e9]
    shards = {each.labels["state"]: each.value for each in found["streamkern_pass_shards"].samples}
    assert shards["done"] == 3
    assert shards["waiting"] == 7
    of = found["streamkern_pass_rows"].samples[0].labels
    assert of == {"id": "j", "name": name, "pass": "moments", "number": "1"}
    story.begin_pass(number="q")
    samples = families(story.series())["streamkern_pass_rows"].samples
    assert [sample.labels["number"] for sample in samples] == ["1", "2"]


@pytest.fixture(scope="module")
def after_a_fit():
    """The addresses where the processes of a cluster of two workers serve, after a fit there."""
    X = np.random.default_rng(0).standard_normal((40_000, 4))
    with streamkern.connect(n_workers=2) as client:
        streamkern.RandomFeatureRidge("gaussian", n_components=64).fit(X, X[:, 0])
        info = client.scheduler_info(n_workers=-1)
        workers = info["workers"].values()
        yield [f"127.0.0.1:{each['services']['dashboard']}" for each in (*workers, info)]
    # A cluster that is closed leaves no series behind.
    assert "streamkern_job_running" not in generate_latest(REGISTRY).decode()


@pytest.mark.cluster
def test_workers_expose_what_their_tasks_did(after_a_fit):
    assert "streamkern_job_running" in generate_latest(REGISTRY).decode()
    found = []
    for address in after_a_fit[:2]:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as page:
            found.append(families(page.read().decode()))
    for each in found:
        assert {name: family.type for name, family in each.items()} == OF_PROCESSES
    assert sum(each["streamkern_worker_rows"].samples[0].value for each in found) == 80_000
    of = {s.labels["activity"] for s in found[0]["streamkern_worker_activity_seconds"].samples}
    assert {"features", "products", "reading", "waiting"} <= of


@pytest.mark.cluster
def test_prometheus_finds_the_series_of_scheduler_and_workers(after_a_fit, tmp_path):
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("Prometheus is not installed (Debian: apt-get install prometheus)")
    (tmp_path / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s}\nscrape_configs: [{job_name: dask, "
        f"static_configs: [{{targets: {json.dumps(after_a_fit)}}}]}}]\n"
    )
    listen = f"127.0.0.1:{free_port()}"
    options = {"config.file": tmp_path / "prometheus.yml", "storage.tsdb.path": tmp_path / "data"}
    options |= {"web.listen-address": listen}
    process = subprocess.Popen(
        [program, *(f"--{name}={value}" for name, value in options.items())],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    root = f"http://{listen}"
    try:
        wait_until(lambda: len(asked(root, "up == 1")) == 3, "scraping three processes")
        (rows,) = asked(root, 'streamkern_pass_rows_done{pass="moments"}')
        assert rows["value"][1] == "40000"
        assert rows["metric"]["name"] == "fit"
        read = asked(root, "sum(streamkern_worker_rows_total)")
        assert read[0]["value"][1] == "80000"  # in two passes
        known = answer(f"{root}/api/v1/metadata")
        for name, kind in {**OF_JOBS, **OF_PROCESSES}.items():
            full = name if kind == "gauge" else f"{name}_total"
            assert [each["type"] for each in known[full]] == [kind]
            assert known[full][0]["help"]
    finally:
        process.terminate()
        process.wait(20)


def answer(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as found:  # noqa: S310  of loopback
            return json.loads(found.read())["data"]
    except (urllib.error.URLError, ConnectionError):
        time.sleep(0.2)
        return {}


def asked(root, query):
    return answer(f"{root}/api/v1/query?query={urllib.parse.quote(query)}").get("result", [])
