"""The page on the dashboard, in a real browser, and what the scheduler needs for it."""

import json
import re
import threading
import time
import urllib.error
import urllib.request

import dask
import distributed
import numpy as np
import pytest
from browser import Watched
from conftest import running_scheduler, running_worker, wait_until
from rows_read import store

import streamkern
from streamkern.runtime.events import TOPIC

pytestmark = pytest.mark.cluster
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'\n"


def data(folder, n=20_000):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 8)).astype(np.float32)
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n)
    return streamkern.open_hdf5(store(folder / "train.h5", X, y, chunks=(4096, 8)))


def root_of(client):
    return client.dashboard_link.rpartition("/")[0]


def found_at(url):
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:  # noqa: S310  of loopback
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code


def jobs_at(client):
    """The jobs that the page of a scheduler has: name, whether it runs, rows done."""

    def seen(dask_scheduler):
        return [
            (job.name, job.ended is None, job.main and job.main.rows_done)
            for job in dask_scheduler.plugins["streamkern"].jobs
        ]

    return client.run_on_scheduler(seen)


def text_of(page):
    """Return what is written in the panel, whose elements are in shadow roots."""
    return page.locator("h2 >> xpath=..").inner_text()


def numbers(text):
    return [float(each.replace(",", "")) for each in re.findall(r"\d[\d,]*\.?\d*", text)]


@pytest.mark.slow
def test_the_page_is_in_the_menu_and_its_figures_change_and_are_those_of_the_report(
    browser, tmp_path
):
    model = streamkern.RandomFeatureRidge(n_components=1536)
    running = threading.Thread(target=model.fit, args=(data(tmp_path, 400_000),))
    with streamkern.connect(n_workers=2) as client:
        watched, seen = Watched(browser), set()
        page = watched.page
        page.goto(f"{root_of(client)}/status")
        page.get_by_role("link", name="Streamkern").click()
        page.get_by_text("No job yet").wait_for()
        assert page.url == client.dashboard_link
        phone = Watched(browser, viewport={"width": 400, "height": 800})
        phone.page.goto(client.dashboard_link)
        running.start()
        page.locator("h2", has_text="moments").wait_for(timeout=60_000)
        while running.is_alive():
            seen.add(text_of(page))
            time.sleep(0.3)
        page.locator("h2", has_text="done").wait_for(timeout=20_000)
        text = text_of(page)
        assert len(seen - {text}) >= 2
        assert any("left in all, until" in each and "solving" in each for each in seen)
        phone.page.locator("h2", has_text="done").wait_for(timeout=20_000)
        assert phone.page.locator(".bk-Figure").count() == 4  # rate, memory, error, penalty
        width = "[document.documentElement.scrollWidth, innerWidth]"
        assert phone.page.evaluate(width) == [400, 400]
        assert watched.errors == phone.errors == []
    report = model.report_
    assert "400,000 rows" in text
    (rate,) = numbers(re.search(r"([\d,.]+)\nrows/s", text)[1])
    assert rate == pytest.approx(report["rows_per_second"], rel=0.02)
    (alpha,) = numbers(re.search(r"([\d.e-]+)\nalpha", text)[1])
    assert alpha == pytest.approx(report["alpha"], rel=0.02)
    assert f"{report['cv_rmse']:.5g}" in text
    rows = [int(n.replace(",", "")) for n in re.findall(r"127\.0\.0\.1:\d+\t([\d,]+)\t", text)]
    assert (len(rows), sum(rows)) == (2, 400_000)
    assert "products" in text


def test_several_jobs_are_told_apart_one_can_be_picked_and_a_hostile_name_is_text(browser):
    with streamkern.connect(n_workers=1) as client:

        def tell(kind, job, **facts):
            client.log_event(TOPIC, {"kind": kind, "job": job, **facts})

        for number, name in (("j", "fit first.h5"), ("k", "fit second.h5")):
            tell("job begun", number, name=name)
            begun = {"pass": f"p{number}", "label": "moments", "rows": 8, "shards": 2}
            tell("pass begun", number, **begun)
        watched = Watched(browser)
        page = watched.page
        page.goto(f"{root_of(client)}/streamkern")
        page.locator("h2", has_text="fit second.h5").wait_for()
        page.locator("select").select_option(index=2)
        page.locator("h2", has_text="fit first.h5").wait_for()
        facts = {"pass": "pj", "shard": 0, "rows": 4, "worker": "tcp://w"}
        client.log_event(TOPIC, {"kind": "shard done", **facts})
        page.get_by_text("4 of 8 rows").wait_for()
        page.locator("select").select_option(index=0)
        page.locator("h2", has_text="fit second.h5").wait_for()
        assert page.get_by_text("0 of 8 rows").count() == 1
        tell("job begun", "h", name=HOSTILE)
        tell("pass begun", "h", label=HOSTILE, rows=5, shards=1, **{"pass": "ph"})
        tell("job ended", "h", error=HOSTILE)
        page.locator("h2", has_text="<script>alert(1)</script>").wait_for()
        time.sleep(2.5)  # for another update
        assert watched.errors == []


def test_a_scheduler_brings_the_page_and_jobs_of_a_client_that_is_gone_are_over(tmp_path):
    preload = (
        "--preload",
        "streamkern.extensions.watching.scheduler_plugin",
        "--dashboard-prefix",
        "/at",
    )
    with running_scheduler(tmp_path, *preload, dashboard=True) as file:
        with distributed.Client(json.loads(file.read_text())["address"]) as client:
            port = client.scheduler_info()["services"]["dashboard"]
            root = f"http://127.0.0.1:{port}/at"
            wait_until(lambda: found_at(f"{root}/status") != 404, "the dashboard")
            assert 'href="streamkern"' in found_at(f"{root}/status")
            assert "Dask Diagnostic UI" in found_at(f"{root}/streamkern")
            event = {"kind": "job begun", "job": "j", "name": "fit a.h5", "client": client.id}
            client.log_event(TOPIC, event)
            assert jobs_at(client) == [("fit a.h5", True, None)]
            address = client.scheduler.address
        with distributed.Client(address) as client:
            over = [("fit a.h5", False, None)]
            wait_until(lambda: jobs_at(client) == over, "the end of the job")


def test_a_scheduler_that_runs_already_gets_the_page_with_what_was_told_before(tmp_path):
    with running_scheduler(tmp_path, dashboard=True) as file, running_worker(file):
        address = json.loads(file.read_text())["address"]
        with distributed.Client(address) as client:
            client.wait_for_workers(1, timeout=60)
            root = root_of(client)
            assert found_at(f"{root}/streamkern") == 404
            streamkern.RandomFeatureRidge(n_components=16).fit(data(tmp_path))
        for _ in range(2):  # the second time it is there already
            with streamkern.connect(scheduler=address):
                assert found_at(f"{root}/status").count('href="streamkern"') == 1
                assert "Dask Diagnostic UI" in found_at(f"{root}/streamkern")
        with distributed.Client(address) as client:
            assert jobs_at(client) == [("fit", False, 20_000)]


def test_a_scheduler_without_a_dashboard_runs_jobs_as_ever(tmp_path):
    with (
        running_scheduler(tmp_path) as file,
        running_worker(file),
        streamkern.connect(scheduler_file=file),
    ):
        model = streamkern.RandomFeatureRidge(n_components=16)
        assert model.fit(data(tmp_path)).report_["rows"] == 20_000
    assert "does without" not in (tmp_path / "scheduler.log").read_text()


def test_without_monitoring_there_is_no_page():
    off = dask.config.set({"streamkern.monitoring": False})
    with off, streamkern.connect(n_workers=1) as client:
        assert client.dashboard_link.endswith("/status")
        assert found_at(f"{root_of(client)}/streamkern") == 404
