"""An adaptive cluster keeps the workers that hold sums, until these are merged."""

import time
from functools import partial

import dask
import pytest
from conftest import wait_until
from hearing import Passes
from places import adjusted
from troubles import SHARDS, moments, sums

import streamkern
from streamkern.runtime.events import observed

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

# A worker goes when it was idle for three looks.
EAGER = {"interval": "200ms", "wait-count": 3}


class Workers(Passes):
    def __init__(self, scheduler):
        super().__init__()
        self.scheduler = scheduler
        self.counts = []

    def advanced(self, n_rows):  # noqa: ARG002  the listener's signature
        self.counts.append(len(self.scheduler.workers))


@pytest.fixture
def cluster(tmp_path):
    changes = {"n_workers": 3, "memory_limit": "1GB"}
    limits = {"minimum": 1, "maximum": 3}
    config = {"distributed.adaptive": EAGER}
    return adjusted("adaptive.yaml", tmp_path, changes, adapt=limits, config=config)


def test_workers_stay_that_hold_sums_which_wait_to_be_merged(cluster):
    with dask.config.set(scheduler="synchronous"):
        expected = sums(moments())
    with streamkern.connect(cluster=cluster) as client:
        workers = Workers(client.cluster.scheduler)
        with observed(workers):
            result = moments(partial(time.sleep, 5), 0.1)  # at one shard, while others wait for it
        assert len(workers.counts) == SHARDS
        assert workers.counts[-1] > 1  # one whose sums were all merged by another may go
        assert result.retried_shards == 0
        assert sums(result) == expected
        wait_until(lambda: len(client.nthreads()) == 1, "scaling down after the work")


def test_the_rule_goes_with_the_client_that_brought_it(external_scheduler):
    def rules(dask_scheduler):
        return [name for name in dask_scheduler.plugins if "workers-at-work" in name]

    with streamkern.connect(scheduler=external_scheduler) as first:
        before = first.run_on_scheduler(rules)
        with streamkern.connect(scheduler=external_scheduler):
            moments()
            moments()
            assert len(first.run_on_scheduler(rules)) == len(before) + 1
        wait_until(lambda: first.run_on_scheduler(rules) == before, "its end")
