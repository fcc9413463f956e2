"""What is told of jobs adds up to the figures that every view shows."""

import os
import signal
import threading

import numpy as np
import pytest
from hearing import When
from monitor.events import ROWS, SHARDS, Story

import streamkern
from streamkern.monitor.job_text import details
from streamkern.monitor.jobs import Jobs
from streamkern.runtime.events import observed


@pytest.fixture
def story():
    story = Story()
    story.begin()
    story.begin_pass()
    return story


def test_rows_of_shards_that_are_done_count_once(story):
    story.tell("resumed", rows=500, shards=5, **{"pass": "p"})
    for shard in (0, 0, 1, 2):
        story.shard(shard, after=2.0)
    assert story.reading.rows_done == 800
    assert story.reading.retried == 1
    # Those that were found in a checkpoint were not read.
    assert story.reading.rows_per_second(story.now) == pytest.approx(300 / 8.0)


def test_rows_of_a_shard_that_takes_long_count_as_they_are_read_and_once(story):
    def read(shard, rows, worker="w", **facts):
        story.tell("rows read", shard=shard, rows=rows, worker=worker, **{"pass": "p"}, **facts)
        return story.reading.rows_done

    for shard, worker in ((0, "w"), (1, "w"), (2, "v")):
        story.tell("shard begun", shard=shard, worker=worker, **{"pass": "p"})
    assert read(0, 40, after=5.0) == 40
    assert read(0, 60, after=5.0) == story.reading.workers["w"].rows == 60
    assert story.reading.rows_per_second(story.now) == pytest.approx(6.0)
    assert (read(1, 30), read(2, 50, worker="v")) == (90, 140)
    story.tell("shard done", shard=0, rows=100, worker="w", **{"pass": "p"})
    story.tell("shard failed", shard=1, worker="w", **{"pass": "p"})
    assert story.reading.rows_done == 150
    story.tell("worker lost", worker="v", **{"pass": "p"})
    assert story.reading.rows_done == 100
    assert story.reading.shards()["done"] == 1


def test_what_is_left_is_told_from_the_last_third_of_the_time(story):
    assert story.reading.seconds_left(story.now) is None
    story.begin("predict other.h5", "k")
    story.begin_pass("predict", "q", job="k")
    story.shard(0, after=4.0, number="q")
    # Of a young pass all the time counts, and one that ended keeps its figures.
    assert story.reading.seconds_left(story.now) == pytest.approx(36.0)
    story.tell("pass ended", error=None, **{"pass": "q"})
    story.now += 1000
    assert story.reading.seconds_left(story.now) == 0.0
    assert story.reading.rows_per_second(story.now) == pytest.approx(25.0)
    assert story.jobs.jobs["j"].current.rows_done == 0
    assert story.jobs.job_of({"pass": "q"}) is story.jobs.latest is story.jobs.jobs["k"]
    story.begin_pass(job="k")
    story.shard(0, after=60.0)
    for shard in range(1, 4):
        story.shard(shard, after=10.0)
    # In the last 30 of 90 s there were 300 rows, and 600 are left.
    assert story.reading.seconds_left(story.now) == pytest.approx(60.0)
    # While none is done, the same rows are those of a longer time.
    story.now += 1.0
    assert story.reading.seconds_left(story.now) == pytest.approx(600 * (91 / 3) / 300)


def test_what_is_left_of_a_job_counts_passes_to_come_and_the_solution():
    story = Story()
    story.begin()
    assert story.job.seconds_left(story.now) is None  # nothing is planned
    story.plan_solution(flops=2e12, readings=2)
    story.begin_pass("columns", "c", row_flops=0.0)
    story.shard(0, after=0.5, number="c")
    # 900 rows in 4.5 s, and then what was planned.
    assert story.job.seconds_left(story.now) == pytest.approx(4.5 + 20.0)
    story.tell("pass ended", error=None, **{"pass": "c"})
    story.begin_pass("moments-1-of-2")
    story.shard(0, after=2.0)
    # 18 s of this pass, 20 of another, and 2e12 operations at 4e11 a second.
    assert story.job.solve_seconds() == pytest.approx(5.0)
    assert story.job.seconds_left(story.now) == pytest.approx(18.0 + 20.0 + 5.0)
    story.tell("pass ended", error=None, **{"pass": "p"})
    story.begin_pass("moments-2-of-2", "q")
    story.tell("pass ended", after=1.0, error=None, **{"pass": "q"})
    story.now += 2.0
    assert story.job.seconds_left(story.now) == pytest.approx(3.0)
    story.now += 4.0  # the estimate was too low
    assert story.job.seconds_left(story.now) is None
    story.solve()
    assert story.job.seconds_left(story.now) is None


def test_shards_are_in_one_state_each(story):
    story.tell("resumed", rows=200, shards=2, **{"pass": "p"})
    story.shard(0)
    story.tell("shard begun", shard=1, worker="a", **{"pass": "p"})
    states = story.reading.shards()
    expected = {"done": 1, "resumed": 2, "running": 1, "failed": 0, "waiting": 6, "retried": 0}
    assert states == expected
    assert sum(states.values()) == SHARDS
    story.tell("shard failed", shard=1, worker="a", **{"pass": "p"})
    story.tell("shard begun", shard=2, worker="a", **{"pass": "p"})
    story.tell("pass ended", error="no such row", **{"pass": "p"})
    assert story.reading.shards() == states | {"running": 0, "failed": 1}
    story.tell("shard begun", shard=1, worker="b", **{"pass": "p"})
    assert story.reading.shards()["failed"] == 0


def test_speed_is_that_of_products_and_is_compared_with_the_processes_that_are_there(story):
    story.shard(0, after=1.0, worker="a")
    story.shard(1, after=1.0, worker="b")
    story.tell("shard begun", shard=3, worker="a", **{"pass": "p"})
    story.tell("shard begun", shard=4, worker="b", **{"pass": "p"})
    # 200 rows of 2e9 operations in 2 s; each of the two attains 4e11; b began after 1 s.
    assert story.reading.speed(story.now) == pytest.approx(2e11)
    assert story.reading.attainable() == 8e11
    story.tell("worker lost", worker="a", **{"pass": "p"})
    assert story.reading.running == {4: "b"}
    assert story.reading.attainable() == 4e11
    assert story.reading.rows_done == 200
    story.shard(3, worker="b")
    assert story.reading.retried == 1


def test_phases_follow_each_other():
    story = Story()
    story.begin()
    phases = [story.job.phase]
    for label, row_flops in (("columns", 0.0), ("moments", 2e9)):
        story.begin_pass(label, row_flops=row_flops)
        phases.append(story.job.phase)
        story.tell("pass ended", error=None, **{"pass": "p"})
        phases.append(story.job.phase)
    story.begin_pass("report", "q", row_flops=0.0)
    # The main pass is the one under way, and then the one with products.
    assert story.job.main.label == "report"
    story.tell("pass ended", error=None, **{"pass": "q"})
    assert story.job.main.label == "moments"
    story.solve()
    phases.append(story.job.phase)
    story.end()
    phases.append(story.job.phase)
    working = ["columns", "preparing", "moments", "solving"]
    assert phases == ["starting", *working, "finishing", "done"]
    story.begin(number="k")
    story.end("the disk is full", number="k")
    assert (story.job.phase, story.job.error) == ("failed", "the disk is full")


def test_only_some_jobs_that_are_over_are_kept():
    story = Story()
    for i in range(40):
        story.begin(number=str(i))
        story.begin_pass(number=f"p{i}", job=str(i))
        if i != 3:
            story.end(number=str(i))
    kept = [job.number for job in story.jobs]
    assert len(kept) == 20
    assert {"3", "39"} <= set(kept)  # one goes on, one is the latest
    story.shard(0, number="p0")  # of a job that is forgotten
    story.end(number="nobody told of it")
    assert [job.number for job in story.jobs] == kept


def test_events_may_come_from_several_threads(story):
    def half(first):
        for shard in range(first, 10, 2):
            facts = {"pass": "p", "shard": shard, "worker": ""}
            story.jobs.hear({"kind": "shard begun", **facts})
            story.jobs.hear({"kind": "shard done", "rows": 100, **facts})

    threads = [threading.Thread(target=half, args=(first,)) for first in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert story.reading.rows_done == ROWS


def test_the_figures_of_a_real_fit_are_those_of_its_report():
    X = np.random.default_rng(0).standard_normal((40_000, 3))
    jobs = Jobs()
    with observed(jobs.hear):
        model = streamkern.RandomFeatureRidge(n_components=64).fit(X, np.sign(X[:, 0]))
    job, report = jobs.latest, model.report_
    now = jobs.clock()
    assert job.phase == "done"
    assert [reading.label for reading in job.passes.values()] == ["columns", "moments"]
    assert job.main.rows_done == report["rows"] == 40_000
    assert job.main.rows_per_second(now) == pytest.approx(report["rows_per_second"], rel=0.2)
    assert job.worker_bytes == report["projected_worker_bytes"]
    assert job.solved["alpha"] == report["alpha"]
    assert 0.0 < job.solve_seconds() < 1.0
    assert 0.0 < job.planned_seconds < 1.0
    assert job.main.shards()["waiting"] == 0
    assert job.main.attainable() > 0
    rows, error = job.main.validation[-1]
    assert 0 < rows < 40_000
    assert 0 < error < 1


@pytest.mark.usefixtures("small_shards")
@pytest.mark.cluster
def test_a_worker_that_is_killed_is_told_of_and_is_no_longer_shown():
    X = np.random.default_rng(0).standard_normal((20_000, 3))
    jobs = Jobs()
    with streamkern.connect(n_workers=2) as client:
        pid = min(client.run(os.getpid).values())
        killer = When(lambda: os.kill(pid, signal.SIGKILL), after=5, label="moments")

        def hear(event):
            jobs.hear(event)
            killer(event)

        with observed(hear):
            streamkern.RandomFeatureRidge(n_components=64).moments(X, X[:, 0])
    assert killer.left <= 0
    reading = jobs.latest.passes[next(reversed(jobs.latest.passes))]
    assert reading.rows_done == reading.n_rows
    assert reading.n_lost == 1
    assert sum(worker.is_lost for worker in reading.workers.values()) == 1
    told = details(jobs.latest, reading, jobs.clock())["shards"]
    assert told.endswith("; a worker was lost; its shards are read again")
    assert "retried" not in told


def test_rows_of_shards_that_are_read_again_are_still_to_be_read_and_keep_the_rate(story):
    for shard in range(4):
        story.shard(shard, worker="ab"[shard % 2])
    left = story.reading.seconds_left(story.now)
    assert left == pytest.approx(6.0)
    story.tell("worker lost", worker="a", **{"pass": "p"})
    story.tell("shard begun", shard=0, worker="b", **{"pass": "p"})
    assert story.reading.seconds_left(story.now) == pytest.approx(7.0)
    story.shard(0, worker="b")
    assert story.reading.seconds_left(story.now) == pytest.approx(6.0)
