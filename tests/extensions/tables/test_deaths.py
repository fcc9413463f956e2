"""Workers and clients that are killed while a folder of Parquet is read: the same bits."""

import os
import signal
import threading
import time

import dask
import distributed  # noqa: F401  whose configuration is there before it is set for a while
import numpy as np
import pandas as pd
import pytest
from hearing import When
from places import bits, check_it_goes_on, fit_started, report_of, stopped_fit

import streamkern
from streamkern.parameters import chunking
from streamkern.runtime.events import observed

pytestmark = pytest.mark.cluster
# A local cluster gives up a worker that is dead, again, so long after it died.
PATIENT = {
    "distributed.deploy.lost-worker-timeout": "5 minutes",
    "distributed.scheduler.allowed-failures": 10,
}
N, FILES = 400_000, 8


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    """A folder of files, each of several groups."""
    place, rng = tmp_path_factory.mktemp("parquet"), np.random.default_rng(0)
    for number in range(FILES):
        x, town = rng.standard_normal((N // FILES, 3)), rng.choice(["Bern", "Oslo"], N // FILES)
        rows = pd.DataFrame(x, columns=list("abc")).assign(town=town)
        rows["y"] = np.sin(rows["a"]) + (town == "Oslo")
        rows.to_parquet(place / f"{number}.parquet", row_group_size=9_000, index=False)
    return place


@pytest.mark.slow
def test_workers_that_are_killed_three_times_change_no_bit(parquet, monkeypatch):
    for name in ("SHARD_ROWS", "_BLOCK_ROWS"):
        monkeypatch.setattr(chunking, name, (4096, 4096))
    model = streamkern.RandomFeatureRidge("gaussian", n_components=768, alpha=0.1)
    with dask.config.set(scheduler="synchronous"):
        expected = model.fit(parquet, "y").coef_.tobytes()
    killed, deaths, one_by_one = set(), [], threading.Lock()

    def kill(client):
        with one_by_one:
            while not (alive := {*client.run(os.getpid, on_error="ignore").values()} - killed):
                time.sleep(0.1)
            time.sleep(2 * bool(killed))  # Dask gives one up that is killed as it starts
            for pid in alive:
                os.kill(pid, signal.SIGKILL)
            killed.update(alive)

    with dask.config.set(PATIENT), streamkern.connect(n_workers=2) as client:

        def begin_to_kill():
            # In another thread than the client's own, which would not wait for itself.
            deaths.append(threading.Thread(target=kill, args=[client]))
            deaths[-1].start()

        whens = [When(begin_to_kill, after, "moments") for after in (2, 16, 32)]
        with observed(lambda event: [when(event) for when in whens]):
            model.fit(parquet, "y")
        for thread in deaths:
            thread.join()
    assert len(deaths) == 3
    assert len(killed) >= 3
    assert model.report_["rows"] == N
    assert model.report_["retried_shards"] >= 1
    assert model.coef_.tobytes() == expected


@pytest.mark.slow
def test_a_client_that_is_killed_goes_on_from_its_checkpoint(parquet, tmp_path):
    place = ("--target", "y", "--workers", 2)
    report_of(fit_started(tmp_path, parquet, *place))
    expected = bits(tmp_path / "model.h5")
    (tmp_path / "model.h5").unlink()
    assert stopped_fit(tmp_path, parquet, *place, number=signal.SIGKILL) == -signal.SIGKILL
    check_it_goes_on(tmp_path, parquet, expected, *place)
