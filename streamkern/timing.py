"""Where the seconds of a task go, by what it was at."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeVar

    T = TypeVar("T")

_seconds: ContextVar[Counter[str] | None] = ContextVar("seconds", default=None)


@contextmanager
def timing() -> Iterator[Counter[str]]:
    """Yield a counter of the seconds that `timed` measures inside the context, by activity."""
    token = _seconds.set(counter := Counter())
    try:
        yield counter
    finally:
        _seconds.reset(token)


@contextmanager
def timed(activity: str) -> Iterator[None]:
    """Count the seconds of what runs inside the context, where somebody asked for them."""
    counter = _seconds.get()
    if counter is None:
        yield
        return
    begun = time.perf_counter()
    try:
        yield
    finally:
        counter[activity] += time.perf_counter() - begun


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
