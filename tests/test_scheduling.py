"""What the current scheduler offers."""

from __future__ import annotations

import dask

from streamkern import scheduling
from streamkern.scheduling import current_resources


def test_the_synchronous_scheduler_offers_one_thread_of_this_process():
    with dask.config.set(scheduler="synchronous"):
        resources = current_resources()
    assert (resources.n_workers, resources.n_threads) == (0, 1)


def test_the_threaded_scheduler_offers_the_threads_that_are_configured():
    with dask.config.set(scheduler="threads", num_workers=7):
        resources = current_resources()
    assert (resources.n_workers, resources.n_threads) == (0, 7)


def test_threads_are_as_many_as_cores_where_nothing_is_configured(monkeypatch):
    monkeypatch.setattr(dask.system, "CPU_COUNT", 13)
    assert current_resources().n_threads == 13


def test_tasks_of_this_process_may_use_the_memory_that_is_free(monkeypatch):
    monkeypatch.setattr(scheduling, "available_bytes", lambda: 12345)
    assert current_resources().worker_bytes == 12345
