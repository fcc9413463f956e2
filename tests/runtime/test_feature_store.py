"""Features are read from the file as they were made, and the file leaves nothing behind."""

import gc

import numpy as np

from streamkern.runtime.feature_store import FeatureStore, found_store, store_here


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
