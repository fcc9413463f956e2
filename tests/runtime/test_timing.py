"""Seconds are counted by activity, where somebody asked for them."""

import threading
import time
from contextvars import copy_context

import pytest

from streamkern.runtime.timing import timed, timed_each, timing


def test_seconds_add_up_by_activity_and_what_is_inside_is_no_part_of_what_is_around_it():
    with timed("before"):
        pass  # where nobody asked
    begun = time.perf_counter()
    with timing() as seconds, timed("outer"):
        time.sleep(0.02)
        for _ in range(2):
            with timed("inner"):
                time.sleep(0.05)
    assert set(seconds) == {"inner", "outer"}
    assert seconds["inner"] >= 0.1
    assert seconds["outer"] >= 0.02
    assert seconds["inner"] + seconds["outer"] <= time.perf_counter() - begun


def test_what_is_asked_for_inside_is_counted_on_its_own():
    with timing() as outer, timed("around"):
        with timing() as inner, timed("inside"):
            time.sleep(0.02)
        assert inner["inside"] >= 0.02
    assert set(inner) == {"inside"}
    assert outer["around"] >= 0.02


def test_an_error_is_counted_and_passed_on():
    with timing() as seconds, pytest.raises(ZeroDivisionError), timed("broken"):
        raise ZeroDivisionError
    assert "broken" in seconds


def test_values_that_come_late_are_the_same_values():
    def late():
        for i in range(3):
            time.sleep(0.02)
            yield i

    with timing() as seconds:
        assert list(timed_each("waiting", late())) == [0, 1, 2]
    assert seconds["waiting"] >= 0.06


def test_a_thread_in_a_copied_context_counts_for_whoever_asked():
    def work():
        with timed("beside"):
            time.sleep(0.02)

    with timing() as seconds:
        thread = threading.Thread(target=copy_context().run, args=(work,))
        thread.start()
        thread.join()
    assert seconds["beside"] >= 0.02
