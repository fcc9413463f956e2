"""Features are read as they were made, on every worker; no file is left behind."""

import gc
import time

import numpy as np
import pytest

from streamkern.engine.reduction import accumulate
from streamkern.extensions.gradients.feature_stores import (
    FeatureStore,
    FeatureStores,
    found_store,
    store_here,
)
from streamkern.extensions.gradients.gram_products import GramProducts
from streamkern.features import RandomFourierFeatures
from streamkern.kernels import Gaussian
from streamkern.sources.arrays import ArraySource

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


def made(features, out, seen):
    for start in range(0, len(out), 3):
        rows = slice(start, min(start + 3, len(out)))
        out[rows] = features[rows]
        seen.append(rows)
        yield rows


def test_blocks_are_made_once_and_read_by_the_same_slices():
    store, out, seen = FeatureStore("name", 1000), np.empty((10, 4), np.float32), []
    features = np.arange(40, dtype=np.float32).reshape(10, 4)
    first = list(store.evaluated("a", out, made(features, out, seen)))
    assert first == seen
    out[:] = np.nan
    assert list(store.evaluated("a", out, made(features, out, seen))) == first
    assert len(seen) == len(first)
    assert np.array_equal(out, features)


def test_what_has_no_room_is_made_again():
    store, out, seen = FeatureStore("name", 200), np.empty((10, 4), np.float32), []
    for block in ("a", "b", "b", "a"):
        list(store.evaluated(block, out, made(np.ones((10, 4)), out, seen)))
    assert len(seen) == 3 * 4


def test_a_store_is_there_as_long_as_it_is_held(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store, out = store_here("name", 1000), np.empty((10, 4), np.float32)
    assert store_here("name", 1000) is store is found_store("name")
    list(store.evaluated("a", out, made(np.ones((10, 4)), out, [])))
    assert not list(tmp_path.iterdir())  # the file has no name
    function, arguments = store.__reduce__()  # what a worker is sent becomes its own
    assert function(*arguments) is store
    del store
    gc.collect()
    assert found_store("name") is None
