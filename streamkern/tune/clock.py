"""The seconds of a search within time: what is left of them, and how slow the machine is now."""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from streamkern.engine.scheduler import run_all
from streamkern.runtime.resources import current_resources

# The share of the seconds beside the fit after which no more is learnt of metrics.
LEARNING = 0.65


class Clock:
    """The seconds of a search and of the fit after it, for which some are kept back.

    These are the seconds by the formula of the fit that was asked for, or of one with more features
    up to half of all, times what the last trials took of theirs: others may use the machine, too.
    """

    def __init__(
        self,
        seconds: float,
        *,
        plain: float = 0.0,
        wide: float = 0.0,
        begun: float | None = None,
        now: Callable[[], float] = perf_counter,
    ) -> None:
        self.seconds, self.now = seconds, now
        self._plain, self._wide = plain, wide
        self._begun = now() if begun is None else begun
        self.slowness = 1.0  # times the seconds by the formula that fits take

    @property
    def until_end(self) -> float:
        return self._begun + self.seconds - self.now()

    def left(self, share: float = 1.0) -> float:
        """Return the seconds until a share of those beside the fit has passed."""
        wide = min(self.slowness * self._wide, self.seconds / 2)
        searching = self.seconds - max(self.slowness * self._plain, wide)
        return self.until_end - self.seconds + share * searching

    def measure(self, seconds: float, expected: float) -> None:
        self.slowness = max(seconds / expected, 1.0)

    def begin(self, tasks: Sequence[Any], share: float = 1.0, seconds: float = 0.0) -> list[Any]:
        """Run the first tasks, and more while those are likely to end within the share.

        As many run at a time as there are slots.  They are measured if the seconds that one takes
        by the formula are given.
        """
        made, n_slots = list[Any](), current_resources().n_slots
        while rest := tasks[len(made) :]:
            begun = self.now()
            made += run_all(rest[:n_slots])
            taken = self.now() - begun
            if seconds:
                self.measure(taken, seconds)
            if taken > self.left(share):
                break
        return made


def run_in_time(clock: Clock | None, tasks: Sequence[Any], **how: float) -> list[Any]:
    """Run all tasks, or as many as a clock lets begin."""
    return run_all(tasks) if clock is None else clock.begin(tasks, **how)
