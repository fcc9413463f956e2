"""Workers on this machine: a LocalCluster of a file, and processes started by hand."""

import signal
import sys

import pytest
from code_blocks import blocks_of
from conftest import running_scheduler, running_worker, wait_until
from places import (
    FILES,
    adjusted,
    bits,
    check_it_goes_on,
    fit_started,
    output_of,
    report_of,
    started,
    stopped_fit,
    write_rows,
)

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
ADAPT = {"minimum": 1, "maximum": 3}


@pytest.mark.parametrize(("name", "top"), [("local", {}), ("adaptive", {"adapt": ADAPT})])
def test_a_local_cluster_gives_the_same_bits(tmp_path, rows, expected, name, top):
    file = adjusted(f"{name}.yaml", tmp_path, {"n_workers": 2}, **top)
    report_of(fit_started(tmp_path, rows, "--cluster", file))
    assert bits(tmp_path / "model.h5") == expected


@pytest.fixture
def by_hand(tmp_path):
    two = ("--memory-limit", "3GB", "--nworkers", 2)
    with running_scheduler(tmp_path) as file, running_worker(file, *two):
        yield file


def test_a_fit_that_was_stopped_by_hand_goes_on(tmp_path, rows, expected, by_hand):
    place = ("--scheduler-file", by_hand)
    if stopped_fit(tmp_path, rows, *place, number=signal.SIGTERM):
        check_it_goes_on(tmp_path, rows, expected, *place)
    assert bits(tmp_path / "model.h5") == expected


def test_the_commands_of_the_page_are_those_that_run(tmp_path):
    page = (FILES.parents[1] / "docs" / "howto" / "ssh.md").read_text()
    scheduler, workers, fit = blocks_of(page.partition("\n## By hand")[2])[0].text.splitlines()
    write_rows(tmp_path / "train-1.h5", 10_000)
    running = []
    try:
        for command in (scheduler, workers.replace("--nworkers 8", "--nworkers 1"), fit):
            path = {"PATH": f"{sys.exec_prefix}/bin:/usr/bin:/bin"}
            running.append(started(tmp_path, "sh", "-c", f"exec {command}", env=path))
            if len(running) == 1:
                wait_until((tmp_path / "scheduler.json").exists, "writing the scheduler file")
        output_of(running.pop())
        assert (tmp_path / "model.h5").exists()
    finally:
        for process in running:
            process.terminate()
            process.communicate(timeout=30)
