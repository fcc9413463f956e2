"""The figures of the dashboard's page, as text."""

import re

import pytest
from monitor.events import Story

from streamkern.extensions.watching.dashboard_page import _View
from streamkern.extensions.watching.job_panel import panel
from streamkern.extensions.watching.watched_jobs import WatchedJobs

MB = 10**6
WORKER = "tcp://10.0.0.1:4000"


def story_of_a_shard():
    story = Story(jobs=WatchedJobs)
    story.begin()
    story.begin_pass()
    story.shard(0)
    return story


def cells(story, memory):
    """What is in the tiles, and in the line of the worker."""
    story.jobs.hear_memory(memory)
    view = _View(story.jobs)
    view.update()
    html = view.panel.text
    tiles = re.findall("<b>(.*?)</b><span>(.*?)</span>", html)
    return {said: figure for figure, said in tiles}, re.findall("<td[^>]*>(.*?)</td>", html)[:8]


def test_memory_at_most_is_never_below_that_of_now_or_before():
    story = story_of_a_shard()
    for now, most in ((400, 500), (700, 700), (600, 700)):
        tiles, line = cells(story, {WORKER: now * MB})
        assert line[-2:] == [f"{now} MB", f"{most} MB"]
        assert tiles["largest worker, of 1 GB planned"] == f"{most} MB"


def test_memory_of_now_is_not_that_of_a_pass_that_is_over():
    story = story_of_a_shard()
    story.tell("pass ended", error=None, **{"pass": "p"})
    assert cells(story, {WORKER: 900 * MB})[1][-2:] == ["", "500 MB"]


@pytest.mark.parametrize(
    ("leading", "features"), [(512, "the 512 leading features"), (2048, "all 2,048 features")]
)
def test_the_error_on_new_rows_names_its_features(leading, features):
    story = story_of_a_shard()
    story.validated(300, 12.345, leading=leading)
    tiles, _ = cells(story, {})
    assert tiles[f"error of a model of {features} so far, after 300 rows"] == "12.345"


def test_a_panel_says_what_is_known_and_nothing_else():
    assert "No job yet" in panel(None, 0.0, {})
    story = Story(jobs=WatchedJobs)
    story.begin()
    assert "starting" in panel(story.job, story.now, {})
    story.begin_pass()
    story.shard(0, after=2.0)
    story.shard(0, after=1.0)
    text = panel(story.job, story.now, {"tcp://10.0.0.1:4000": 7e8})
    assert "100 of 1,000 rows" in text
    assert "700 MB" in text
    assert "of 1 GB planned" in text
    assert "1 of them begun again" in text
    assert "10.0.0.1:4000" in text
    assert "alpha" not in text
    story.begin(name="<script>alert(1)</script>", number="k")
    story.begin_pass("<script>", number="q", job="k")
    story.shard(0, number="q", worker="<script>")
    story.end("<script>", number="k")
    assert "<script>" not in panel(story.job, story.now, {})


def test_a_name_that_is_no_text_and_a_far_end_are_told():
    story = Story(jobs=WatchedJobs)
    story.begin()
    story.begin_pass()
    story.begin(name="fit \udcff.h5", number="k")
    story.begin_pass(number="q", job="k")
    story.tell("pass begun", job="k", label="m", rows=10**18, **{"pass": "r"})
    story.shard(0, number="r", after=1000.0)
    shown = panel(story.job, story.now, {})
    assert r"fit \udcff.h5" in shown
    assert "left of pass" in shown


def test_what_is_left_is_told_by_its_parts():
    story = Story(jobs=WatchedJobs)
    story.begin()
    story.plan_solution(flops=2e12, readings=2)
    story.begin_pass("columns", "c", row_flops=0.0)
    story.shard(0, after=0.5, number="c")
    story.tell("pass ended", error=None, **{"pass": "c"})
    story.begin_pass("moments-1-of-2")
    story.shard(0, after=2.0)
    assert ": pass “moments-1-of-2” 18 s, solving 5.0 s" in panel(story.job, story.now, {})


def test_of_a_thousand_workers_the_slowest_are_shown():
    story = Story(jobs=WatchedJobs)
    story.begin()
    story.begin_pass()
    for worker in range(1000):
        for shard in range(2 if worker % 100 else 1):
            story.shard(2 * worker + shard, after=0.0, worker=f"tcp://10.0.0.1:{4000 + worker}")
    text = panel(story.job, story.now + 10.0, {})
    assert "the 12 slowest of 1,000 workers; half of them do 20 rows/s or more" in text
    shown = re.findall(r"10\.0\.0\.1:(\d+)", text)
    assert shown[:10] == [str(4000 + worker) for worker in range(0, 1000, 100)]
    assert len(shown) == 12
    assert len(text) < 20_000
