"""A statistic in a user's own module: a declaration and `update` are all that it takes."""

import numpy as np
import pytest
from dask.distributed import Client

from streamkern import accumulate
from streamkern.sources import ArraySource
from streamkern.statistics import Statistic, maximum, total
from streamkern.storage.checkpoints import opened_checkpoint

X = np.random.default_rng(0).standard_normal((200, 2))
SOURCE = ArraySource(X, X.sum(axis=1))


class LargeTargets(Statistic):
    threshold: float
    n_above: int = total(dtype=int)
    largest: float = maximum()

    def update(self, blocks):
        for block in blocks:
            self.n_above += int((block.y > self.threshold).sum())
            self.largest = max(self.largest, float(block.y.max()))


def accumulated(folder):
    with opened_checkpoint(folder, {}) as saved:
        return accumulate(SOURCE, LargeTargets(0.5), checkpoint=saved, shard_rows=30, block_rows=10)


@pytest.mark.cluster
def test_it_is_accumulated_here_on_worker_processes_and_from_a_checkpoint(tmp_path):
    found = [accumulated(tmp_path / "saved"), accumulated(tmp_path / "saved")]
    assert (found[0].resumed_shards, found[1].resumed_shards) == (0, found[1].n_shards)
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=":0"):
        found.append(accumulated(tmp_path / "other"))
    for each in found:
        assert each.statistic.n_above == (X.sum(axis=1) > 0.5).sum()
        assert each.statistic.largest == X.sum(axis=1).max()
