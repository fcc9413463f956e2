"""A cluster that scales down takes no worker away that is at work."""

from __future__ import annotations

import dask
import numpy as np
import pytest
from conftest import wait_until
from places import adjusted, bits, fit_started, report_of
from troubles import SHARD_ROWS, P, Troubled

import streamkern
from streamkern import downscaling
from streamkern.engine import accumulate
from streamkern.features import Identity
from streamkern.statistics import Moments

pytestmark = pytest.mark.cluster

# Looks that are frequent, and none too many workers wanted, so that some are too many at once.
EAGER = {"distributed.adaptive": {"interval": "50ms", "wait-count": 1, "target-duration": "1s"}}


def moments():
    """The sums of slow shards, and how many of them were begun twice."""
    empty = Moments(Identity().draw(P), 1)
    options = {"shard_rows": SHARD_ROWS, "block_rows": SHARD_ROWS}
    result = accumulate(Troubled(None, 0.4), empty, label="moments", **options)
    parts = result.statistic.detached()
    sums = b"".join(np.asarray(parts[name]).tobytes() for name in ("cross", "target"))
    return sums, result.retried_shards


@pytest.fixture
def cluster(tmp_path):
    """A cluster of one to four workers."""
    limits = {"minimum": 1, "maximum": 4}
    return adjusted("adaptive.yaml", tmp_path, {"memory_limit": "1GB"}, adapt=limits, config=EAGER)


def test_no_shard_is_begun_twice_for_a_worker_that_is_taken_away(cluster):
    with dask.config.set(scheduler="synchronous"):
        expected, _ = moments()
    with streamkern.connect(cluster=cluster) as client:
        for _ in range(2):
            sums, retried = moments()
            assert retried == 0
            assert sums == expected
        assert len(client.nthreads()) > 1
        wait_until(lambda: len(client.nthreads()) == 1, "scaling down after the work")


def test_dask_alone_takes_workers_away_that_are_at_a_shard(cluster, monkeypatch):
    monkeypatch.setattr(downscaling, "_at_work", lambda _: False)
    with streamkern.connect(cluster=cluster):
        assert sum(moments()[1] for _ in range(2)) > 0


def test_the_rule_goes_with_the_client_that_brought_it(cluster):
    with streamkern.connect(cluster=cluster) as client:
        scheduler = client.cluster.scheduler
        moments()
        with streamkern.connect(scheduler=client.scheduler.address):
            moments()
            assert sum("at-work" in name for name in scheduler.plugins) == 2
        wait_until(
            lambda: sum("at-work" in name for name in scheduler.plugins) == 1, "one that is gone"
        )


def test_a_fit_on_an_adaptive_cluster_gives_the_same_bits(tmp_path, rows, expected, cluster):
    report = report_of(fit_started(tmp_path, rows, "--cluster", cluster))
    assert report["retried_shards"] == 0
    assert bits(tmp_path / "model.h5") == expected
