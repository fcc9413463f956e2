"""How long a trial may run: between blocks, folds and penalties it looks at the clock."""

import math
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from streamkern.engine.scheduler import compute_all, delayed

_seconds_left: ContextVar[Callable[[], float] | None] = ContextVar("seconds_left", default=None)


class OutOfTimeError(Exception):
    """A trial is stopped: its seconds are over."""


def look_at_clock() -> None:
    """Stop the trial that is running if its seconds are over."""
    left = _seconds_left.get()
    if left is not None and left() <= 0:
        raise OutOfTimeError


@dataclass(frozen=True)
class TimeLimit:
    """Seconds that each of some tasks may take from where it begins, on any machine."""

    seconds: float = math.inf
    now: Callable[[], float] = perf_counter

    def __call__(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what the function returns, or None if it was stopped."""
        ends = self.now() + self.seconds
        token = _seconds_left.set(lambda: ends - self.now())
        try:
            look_at_clock()
            return function(*arguments)
        except OutOfTimeError:
            return None
        finally:
            _seconds_left.reset(token)

    def compute_all(
        self, calls: Sequence[tuple[Any, ...]], n_threads: int | None = None
    ) -> list[Any]:
        """Return what functions, each after a name and before its arguments, return as tasks.

        What follows one that was stopped is left out.
        """
        made = compute_all([delayed(self, *call, name=name) for name, *call in calls], n_threads)
        return made[: next((i for i, each in enumerate(made) if each is None), len(made))]
