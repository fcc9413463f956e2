"""What the current scheduler offers, and results in order."""

import threading
import time
import weakref

import dask
import numpy as np
import pytest
from conftest import wait_until
from dask import delayed
from distributed import Client

from streamkern.engine import scheduler
from streamkern.engine.task_stream import stream
from streamkern.runtime import resources
from streamkern.runtime.resources import current_resources


@pytest.mark.parametrize(
    ("chosen", "n_threads"),
    [({"scheduler": "synchronous"}, 1), ({"scheduler": "threads", "num_workers": 7}, 7), ({}, 13)],
)
def test_this_process_offers_its_threads_and_the_memory_that_is_free(
    chosen, n_threads, monkeypatch
):
    monkeypatch.setattr(dask.system, "CPU_COUNT", 13)
    monkeypatch.setattr(resources, "available_bytes", lambda: 12345)
    with dask.config.set(chosen):
        assert current_resources() == resources.Resources(0, n_threads, 12345)


class Counting:
    def __init__(self, n=20, slow=None):  # tasks that take seconds, or wait for an event
        self.n = n
        self.slow = slow or {}
        self.begun = []
        self.done = []

    def work(self, i):
        self.begun.append(i)
        slow = self.slow.get(i, 0.0)
        if isinstance(slow, threading.Event):
            assert slow.wait(60)
        else:
            time.sleep(slow)
        self.done.append(i)
        return i

    def tasks(self):
        return (delayed(self.work, traverse=False)(i) for i in range(self.n))


@pytest.mark.parametrize(
    ("scheduler", "n"), [("synchronous", 0), ("threads", 1), ("synchronous", 2), ("threads", 20)]
)
def test_results_come_in_the_order_of_their_tasks(scheduler, n):
    # The earlier of two neighbours takes longer.
    counting = Counting(n, dict.fromkeys(range(0, n, 2), 0.02))
    with dask.config.set(scheduler=scheduler, num_workers=3):
        assert list(stream(counting.tasks())) == list(range(n))


def test_results_that_were_taken_are_not_held():
    kept = weakref.WeakSet()

    def make(i):
        kept.add(owner := Counting())
        return owner

    with dask.config.set(scheduler="threads", num_workers=2):
        for _ in stream(delayed(make, traverse=False)(i) for i in range(40)):
            # Those in the window, the one in hand, and the one before it in a thread's hands.
            assert len(kept) <= 2 + 2 + 1 + 2


def test_a_slow_task_holds_up_none_but_those_outside_the_window_and_threads_go_on_meanwhile():
    slow = threading.Event()
    counting = Counting(20, {1: slow})
    with dask.config.set(scheduler="threads", num_workers=2):
        results = stream(counting.tasks())
        assert next(results) == 0
        wait_until(lambda: {0, 2, 3} <= set(counting.done), "the work of others")
        was_done = 1 in counting.done
        slow.set()
        assert not was_done
        wait_until(lambda: len(counting.done) == 4, "the window")
        assert list(results) == list(range(1, 20))


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_what_a_task_raises_is_raised_in_its_place_and_ends_the_stream(scheduler):
    def work(i):
        if i == 3:
            raise ZeroDivisionError(f"task {i}")
        return i

    found = []
    before = threading.active_count()
    with dask.config.set(scheduler=scheduler, num_workers=2):
        results = stream(delayed(work, traverse=False)(i) for i in range(20))
        with pytest.raises(ZeroDivisionError, match="task 3"):
            found.extend(results)
        assert next(results, None) is None
    assert found == [0, 1, 2]
    assert threading.active_count() <= before


def test_nothing_runs_any_more_when_a_stream_is_closed_or_interrupted():
    for error in (GeneratorExit, KeyboardInterrupt):
        counting = Counting(20, dict.fromkeys(range(20), 0.05))
        with dask.config.set(scheduler="threads", num_workers=2):
            results = stream(counting.tasks())
            next(results)
            with pytest.raises(error):
                results.throw(error())
        assert len(counting.begun) == len(counting.done) <= 4
        begun = len(counting.begun)
        time.sleep(0.1)
        assert len(counting.begun) == begun


def test_a_stream_runs_on_any_scheduler_that_dask_takes():
    calls = []

    def get(graph, keys, **options):
        calls.append(keys)
        return dask.local.get_sync(graph, keys, **options)

    counting = Counting(7)
    with dask.config.set(scheduler=get, num_workers=3):
        assert list(stream(counting.tasks())) == list(range(7))
    assert len(calls) == 3


def test_what_is_set_for_the_caller_is_set_for_its_tasks():
    tasks = (delayed(np.geterr, pure=False)() for _ in range(5))
    with dask.config.set(scheduler="threads", num_workers=2), np.errstate(over="raise"):
        assert [found["over"] for found in stream(tasks)] == ["raise"] * 5


def test_a_wait_that_is_cancelled_as_its_time_runs_out_goes_on(monkeypatch):
    with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as each:
        future = each.submit(lambda: 7)
        result, raised = future.result, []

        def cut_short(timeout=None):
            if not raised:
                raised.append(UnboundLocalError("result"))
                raise raised[0]
            return result(timeout=timeout)

        monkeypatch.setattr(future, "result", cut_short)
        assert scheduler.result_of(future) == 7
    assert raised
