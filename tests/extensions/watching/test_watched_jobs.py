"""What a scheduler knows of jobs beside their events."""

import numpy as np
from monitor.events import Story

from streamkern.extensions.watching.watched_jobs import WatchedJobs, rates_of


def test_the_memory_of_a_job_is_that_of_its_largest_worker_and_its_history_stays_short():
    story = Story(jobs=WatchedJobs)
    story.begin()
    for second in range(3000):
        story.now += 1.0
        story.jobs.hear_memory({"a": 10.0**6 + second, "b": 10.0**5})
    history = story.job.memory
    assert 100 < len(history) < 600
    assert history[0] == (1.0, 10**6)
    assert history[-1][1] == story.job.peak_bytes() > 1_002_900
    story.end()
    story.jobs.hear_memory({"a": 10.0**9})
    assert story.job.memory is history
    assert story.job.peak_bytes() < 10**9


def test_jobs_of_a_client_that_is_gone_are_over():
    story = Story(jobs=WatchedJobs)
    story.begin(client="c")
    story.begin_pass()
    story.begin(number="k", client="other")
    story.jobs.client_lost("c")
    gone, other = story.jobs.jobs["j"], story.jobs.jobs["k"]
    assert gone.phase == "failed"
    assert gone.current.ended is not None
    assert other.ended is None


def test_the_history_of_a_long_pass_stays_short():
    story = Story(jobs=WatchedJobs)
    story.begin()
    facts = {"rows": 10**6, "shards": 10**4, "row_bytes": 1, "row_flops": 0.0}
    story.tell("pass begun", job="j", label="long", **{"pass": "p"}, **facts)
    for shard in range(3000):
        story.shard(shard, after=1.0)
    assert 100 < len(story.reading.history) < 600
    rates = np.array([rate for _, rate in rates_of(story.reading)])
    np.testing.assert_allclose(rates, 100.0)
