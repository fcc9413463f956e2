"""Lines of batch logs: few, whole, and all that a reader needs; the same as JSON for programs."""

import json
import re
import time

import numpy as np
import pytest
from monitor.events import Story
from rows_read import ReadBy

import streamkern
from streamkern.errors import ParameterError
from streamkern.monitor import log_lines
from streamkern.monitor.log_lines import JsonLines, PlainLines


def whole_job(story, name="fit model.h5"):
    story.begin(name)
    story.begin_pass()
    for shard in range(10):
        story.shard(shard, after=3.0)
    story.validated(900, 0.25)
    story.tell("pass ended", error=None, **{"pass": "p"})
    story.solve()
    story.end()


def test_a_reader_is_told_what_ended_and_what_was_found(capfd):
    story = Story(PlainLines)
    whole_job(story)
    said = capfd.readouterr()
    # A name cannot break a line or steer a terminal.
    whole_job(story, "fit a\n12:00:00 b\x1b[2J.h5")
    hostile = capfd.readouterr().err
    assert hostile.count("\n") == hostile.count("fit a\\n12:00:00 b\\x1b[2J.h5") == 3
    assert "\x1b" not in hostile
    assert said.out == ""
    moments, solved, done = said.err.splitlines()
    assert re.match(r"\d\d:\d\d:\d\d fit model\.h5: moments done in 30 s; 1,000 rows; ", moments)
    assert "33.3 rows/s, 0.0133 MB/s · 66.7 GFLOP/s, 17% of products alone" in moments
    assert "waiting 10%, features 20%, products 70%" in moments
    assert "shards: 10 done" in moments
    assert "error of a model of the 512 leading features so far 0.25, after 900 rows" in moments
    assert solved.endswith("solved in 2.0 s, alpha 1, cross-validated RMSE 0.25")
    assert done.endswith("fit model.h5: done in 30 s")


def test_how_a_job_comes_along_and_its_error_are_told_and_nothing_of_what_is_over_at_once(capfd):
    story = Story(PlainLines)
    story.begin(number="short")
    story.begin_pass(number="s", job="short")
    story.shard(0, after=0.5, number="s")
    story.solve(number="short")
    story.end(number="short")
    story.begin()
    story.begin_pass()
    story.tell("resumed", after=2.0, rows=500, shards=5, **{"pass": "p"})
    story.shard(0, after=3.0)
    story.view.progress(story.job, story.reading, story.now)
    story.tell("pass ended", error="the disk is full", **{"pass": "p"})
    story.end("the disk is full")
    resumed, moments, ended = capfd.readouterr().err.splitlines()
    assert "moments 60%, 20 s left; 600 of 1,000 rows; " in moments
    assert moments.endswith("500 MB of 1 GB planned")
    assert "500 rows found in the checkpoint" in resumed
    assert ended.endswith("fit model.h5: ended after 5.0 s: the disk is full")


def test_trials_of_a_search_are_lines_with_the_best_so_far_and_the_seconds_left(capfd):
    story = Story(PlainLines)
    story.begin("tune model.h5")
    story.tell("searching", job="j", seconds=60.0)
    for error in (0.5, 0.75):
        story.tell("tried", after=20.0, job="j", setting="nystroem, matern52", error=error)
    story.begin_pass(row_flops=0.0)
    story.tell("pass ended", error=None, **{"pass": "p"})
    assert story.job.phase == "searching"
    first, second = capfd.readouterr().err.splitlines()
    assert first.endswith("nystroem, matern52: error 0.5000, best 0.5000; 40 s left")
    assert second.endswith("error 0.7500, best 0.5000; 20 s left")


@pytest.mark.parametrize(("seconds", "most"), [(300, 40), (3600, 110), (36_000, 180)])
def test_a_long_job_has_few_lines(monkeypatch, capfd, seconds, most):
    story = Story(PlainLines)
    story.begin()
    story.begin_pass()
    looks = iter(range(seconds))

    def wait(_):
        story.now += 1.0
        return next(looks, None) is None

    monkeypatch.setattr(story.view._over, "wait", wait)
    story.view._look()
    assert 20 < len(capfd.readouterr().err.splitlines()) < most


def test_json_lines_hold_every_event_but_those_of_shards(capfd):
    story = Story(JsonLines)
    whole_job(story)
    story.view.progress(story.job, story.reading, story.now)
    found = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    kinds = [each["event"] for each in found]
    expected = ["job begun", "planned", "pass begun", "validated", "pass ended", "solved"]
    assert kinds == [*expected, "job ended", "progress"]
    assert {each["name"] for each in found} == {"fit model.h5"}
    assert found[-1]["rows_done"] == 1000
    assert found[-1]["shards"]["retried"] == 0
    assert found[-1]["workers"]["tcp://10.0.0.1:4000"]["rows"] == 1000
    assert found[3]["error"] == 0.25
    assert all(each["time"] for each in found)


@pytest.mark.parametrize("style", ["plain", "json"])
def test_a_job_that_takes_a_while_is_told_of_while_it_runs(monkeypatch, capfd, style):
    monkeypatch.setattr(log_lines, "_LEAST", 0.2)
    monkeypatch.setattr(log_lines, "_LOOK", 0.1)

    def late(blocks, _):
        time.sleep(0.3)
        yield from blocks

    X = np.random.default_rng(0).standard_normal((60_000, 2))
    with streamkern.progress(style):
        model = streamkern.RandomFeatureRidge("gaussian", n_components=64, alpha=1.0)
        model.fit(ReadBy(X, X[:, 0], late))
    said = capfd.readouterr().err
    if style == "json":
        assert "progress" in {json.loads(line)["event"] for line in said.splitlines()}
    else:
        assert " left; " in said
        assert said.splitlines()[-1].endswith(" s")


def test_a_style_that_is_not_there_is_refused():
    sentence = "auto, live, plain, json, not 'loud'"
    with pytest.raises(ParameterError, match=sentence), streamkern.progress("loud"):
        pass
