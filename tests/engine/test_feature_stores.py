"""Every worker has a store, and the same shards in every pass."""

import time

import numpy as np
import pytest

from streamkern.engine.feature_stores import FeatureStores
from streamkern.engine.reduction import accumulate
from streamkern.features import RandomFourierFeatures
from streamkern.kernels import Gaussian
from streamkern.runtime.feature_store import found_store
from streamkern.sources.arrays import ArraySource
from streamkern.statistics import GramProducts

N, D = 4000, 64


def passed(stores):
    rng = np.random.default_rng(0)
    source = ArraySource(rng.standard_normal((N, 3)), rng.standard_normal(N))
    features = RandomFourierFeatures(Gaussian(1.0), D, random_state=0).draw(3)
    statistic = GramProducts(features, np.eye(D, 2), np.zeros(D), "double")
    how = {"shard_rows": 400, "block_rows": 100, "stores": stores}
    return accumulate(source, statistic, **how).statistic.products


@pytest.mark.cluster
def test_passes_find_on_the_workers_what_they_left_there():
    from dask.distributed import Client

    with Client(n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
        stores = FeatureStores(1 << 30)
        name = stores.name

        def held():
            return client.run(lambda: len(getattr(found_store(name), "_blocks", ())))

        first = passed(stores)
        for _ in range(3):
            assert np.array_equal(passed(stores), first)
        before = held()
        assert all(before.values())
        assert sum(before.values()) >= N // 100
        assert np.array_equal(passed(stores), first)
        assert held() == before
        del stores
        begun = time.monotonic()
        while any(client.run(lambda: found_store(name) is not None).values()):
            assert time.monotonic() < begun + 60.0
