"""Timers: the seconds of a task by activity."""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

_seconds: ContextVar[defaultdict[str, float] | None] = ContextVar("seconds", default=None)
# What is measured at present, of which what is measured inside is no part.
_outer: ContextVar[str | None] = ContextVar("outer", default=None)


@contextmanager
def timing() -> Iterator[dict[str, float]]:
    """Yield the seconds that `timed` measures inside the context, by activity, as they add up."""
    seconds: defaultdict[str, float] = defaultdict(float)
    # A Dask task begins in the context of whatever let it begin, which may be another task.
    tokens = _seconds.set(seconds), _outer.set(None)
    try:
        yield seconds
    finally:
        _seconds.reset(tokens[0])
        _outer.reset(tokens[1])


@contextmanager
def timed(activity: str) -> Iterator[None]:
    """Count the seconds of what runs inside the context, where somebody asked for them.

    What is counted under another name inside is left out, so that all of them add up.
    """
    seconds, outer = _seconds.get(), _outer.get()
    if seconds is None:
        yield
        return
    token = _outer.set(activity)
    begun = time.perf_counter()
    try:
        yield
    finally:
        elapsed = time.perf_counter() - begun
        _outer.reset(token)
        seconds[activity] += elapsed
        if outer is not None:
            seconds[outer] -= elapsed


def timed_each(activity: str, values: Iterable[T]) -> Iterator[T]:
    """Yield the same values, and count the seconds that each takes to come."""
    coming = iter(values)
    while True:
        with timed(activity):
            try:
                value = next(coming)
            except StopIteration:
                return
        yield value
