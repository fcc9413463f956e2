"""Where the seconds of a task go, by what it was at."""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeVar

    T = TypeVar("T")

_seconds: ContextVar[defaultdict[str, float] | None] = ContextVar("seconds", default=None)


@contextmanager
def timing() -> Iterator[dict[str, float]]:
    """Yield the seconds that `timed` measures inside the context, by activity, as they add up."""
    seconds: defaultdict[str, float] = defaultdict(float)
    token = _seconds.set(seconds)
    try:
        yield seconds
    finally:
        _seconds.reset(token)


@contextmanager
def timed(activity: str) -> Iterator[None]:
    """Count the seconds of what runs inside the context, where somebody asked for them."""
    seconds = _seconds.get()
    if seconds is None:
        yield
        return
    begun = time.perf_counter()
    try:
        yield
    finally:
        seconds[activity] += time.perf_counter() - begun


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
