"""A statistic in a user's own module: a declaration and `update` are all that it takes."""

import numpy as np
from dask.distributed import Client

from streamkern import accumulate
from streamkern.sources import ArraySource
from streamkern.statistics import Statistic, maximum, total
from streamkern.storage import opened_checkpoint

X = np.random.default_rng(0).standard_normal((200, 2))
SOURCE = ArraySource(X, X.sum(axis=1))


class LargeTargets(Statistic):
    threshold: float
    n_above: int = total(dtype=int)
    largest: float = maximum()
    sums: np.ndarray = total(2)

    def update(self, blocks):
        for block in blocks:
            self.n_above += int((block.y > self.threshold).sum())
            self.largest = max(self.largest, float(block.y.max()))
            self.sums += block.X.sum(axis=0)


def accumulated(folder=None):
    options = {"shard_rows": 30, "block_rows": 10}
    if folder is None:
        return accumulate(SOURCE, LargeTargets(0.5), **options)
    with opened_checkpoint(folder, {}) as saved:
        return accumulate(SOURCE, LargeTargets(0.5), checkpoint=saved, **options)


def test_it_is_accumulated_here_on_worker_processes_and_from_a_checkpoint(tmp_path):
    y, found = X.sum(axis=1), [accumulated(tmp_path / "saved"), accumulated(tmp_path / "saved")]
    assert (found[0].resumed_shards, found[1].resumed_shards) == (0, found[1].n_shards)
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=":0"):
        found.append(accumulated())
    for statistic in (each.statistic for each in found):
        assert (statistic.n_above, statistic.largest) == ((y > 0.5).sum(), y.max())
        assert np.allclose(statistic.sums, X.sum(axis=0))
