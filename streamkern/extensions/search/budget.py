"""The budget of a search, in passes or seconds, and what is spent of it."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from streamkern.choice.small_fit import N_FOLDS, Result
from streamkern.choice.time_limit import TimeLimit
from streamkern.errors import ParameterError
from streamkern.extensions.search.settings import ADDED
from streamkern.parameters.cost_estimate import (
    AT_LANDMARKS,
    fit_flops,
    fit_seconds,
    rough_flops_per_second,
)
from streamkern.parameters.fit_options import DIRECT_COMPONENTS, FitOptions
from streamkern.parameters.parameters import AUTO, Parameters
from streamkern.parameters.plan import Plan, plan_here
from streamkern.runtime.resources import current_resources
from streamkern.sources import Source

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
# Of a budget in seconds: what the fit after the search may take, what its D is multiplied by, and
# the rows a feature that this wants, of the D x D system and of conjugate gradients.
_FIT_SHARE, _TIMES, _ROWS_A_COMPONENT, _ROWS_BY_PASSES = 0.45, (16, 8, 4, 2), 3, 2
# What a trial of one thread takes of a fit by the formula, and a fit with calibration of one
# without.
A_TRIAL, _CALIBRATED = 2.1, 1.35
# The share of a search that may learn metrics, and what a plain fit takes of one at landmarks.
LEARNING, _PLAIN = 0.65, 0.75
# Seconds that some trials take besides what the formula counts, however small they are.
_BESIDE = 0.05


@dataclass(frozen=True)
class Budget:
    """Seconds on the clock, or passes: the multiply-adds of a fit to all rows at its D."""

    amount: float
    in_seconds: bool = False

    @classmethod
    def of(cls, value: Any) -> "Budget | None":
        """Return the budget that a number of passes or a text such as '5m' stands for."""
        if value is None or isinstance(value, Budget):
            return value
        found = re.fullmatch(r"\s*([0-9.eE+-]+)\s*([smh]?)\s*", str(value))
        try:
            amount = float(found[1]) if found and not isinstance(value, bool) else math.nan
        except ValueError:
            amount = math.nan
        if not found or not 0 < amount < math.inf:
            raise ParameterError(
                f"a budget is a positive number of passes, such as 10, or of seconds, minutes or "
                f"hours, such as '120s', '5m' or '1h', not {value!r}; give one of these."
            )
        return cls(amount * _SECONDS.get(found[2], 1.0), bool(found[2]))

    def __str__(self) -> str:
        return f"{self.amount:g}{'s' * self.in_seconds}"

    @property
    def seconds(self) -> float:
        """The seconds, or 0 of passes."""
        return self.amount * self.in_seconds

    def components(self, parameters: Parameters, options: FitOptions, source: Source) -> int:
        """Return so many times D as rows, memory and a share of the seconds are enough for."""
        D, n = options.n_components, source.n_samples
        for times in _TIMES:
            more = replace(options, n_components=times * D)
            plan = plan_here(source, more, **parameters.solution_by_passes(more))
            fewest = _ROWS_BY_PASSES if plan.solves_by_passes else _ROWS_A_COMPONENT
            enough = plan.fits and fewest * times * D <= n
            enough = enough and (times * D <= DIRECT_COMPONENTS or plan.solves_by_passes)
            if enough and direct_seconds(plan, parameters, options) <= _FIT_SHARE * self.amount:
                return times * D
        return D

    def clock(
        self, parameters: Parameters, options: FitOptions, source: Source, begun: float
    ) -> "Clock":
        """Return the clock of a search that has begun, whose fit has so many features or fewer."""
        D: Any = parameters.n_components
        asked = options if D == AUTO else replace(options, n_components=D)
        plans = [plan_here(source, o, **parameters.solution_by_passes(o)) for o in (options, asked)]
        wide, plain = (direct_seconds(plan, parameters, options) for plan in plans)
        return Clock(self.amount, begun, (wide, _PLAIN * plain), perf_counter)


def direct_seconds(plan: Any, parameters: Parameters, options: FitOptions) -> float:
    if plan.solves_by_passes:
        return float(plan.total_seconds(from_rows=True))
    sizes = plan.n_rows, plan.n_features, plan.n_components
    # A penalty that is chosen without folds takes a decomposition, too.
    n_folds = max(options.n_folds, 2)
    # Most of the best are at landmarks.
    times = AT_LANDMARKS * (_CALIBRATED if parameters.keeps_folds else 1.0)
    return times * fit_seconds(*sizes, n_folds, plan.precision, plan.n_slots)


@dataclass
class Clock:
    """The seconds of a search and of the fit after it, for which some are kept back.

    Those are by the formula, times what trials took of theirs, since others may use the machine.
    """

    seconds: float
    begun: float
    reserved: tuple[float, float]  # for more features, up to half of all, and those asked for
    now: Callable[[], float]
    slowness: float = 1.0  # times the seconds by the formula that fits take

    @property
    def until_end(self) -> float:
        return self.begun + self.seconds - self.now()

    def left(self, share: float = 1.0) -> float:
        """Return the seconds until a share of those beside the fit has passed."""
        wide, plain = (self.slowness * each for each in self.reserved)
        searching = self.seconds - max(min(wide, self.seconds / 2), plain)
        return self.until_end - self.seconds + share * searching

    def limit(self, share: float = 1.0) -> TimeLimit:
        return TimeLimit(self.left(share), self.now)


def run_in_time(
    clock: Clock | None,
    several: Sequence[Any],
    share: float,
    make: Callable[[TimeLimit, Sequence[Any]], list[Any]] = TimeLimit.compute_all,
    *,
    fewest: int = 0,
    expected: float = 0,
) -> list[Any]:
    """Make all, or the fewest, and more while as many as there are slots have time to end.

    `make` returns what came of some, fewer where one was stopped, after which there are no more.
    """
    if clock is None:
        return make(TimeLimit(), several)
    made, taken, n_slots = list[Any](), 0.0, current_resources().n_slots
    while some := several[len(made) : len(made) + n_slots]:
        begun = clock.now()
        limit = TimeLimit() if len(made) < fewest else clock.limit(share)
        if taken > limit.seconds:
            break
        made += (new := make(limit, some))
        if len(new) < len(some):
            break
        taken = clock.now() - begun
        if expected:  # seconds of these by the formula
            clock.slowness = max(taken / (expected + _BESIDE), 1.0)
    return made


class Ledger:
    """What a search has spent of its budget, in passes by formula; None pays for everything."""

    def __init__(
        self, budget: Budget | None, plan: Plan, spent: float = 0.0, clock: Clock | None = None
    ) -> None:
        self.budget: Any = budget
        self.clock: Any = clock
        self.plan, self._spent = plan, spent  # multiply-adds before
        self._flops, self._begun = 0.0, perf_counter()

    @property
    def passes(self) -> float:
        """The multiply-adds of all that was spent, over those of the pass."""
        return (self._spent + self._flops) / self.plan.flops

    @property
    def seconds(self) -> float:
        return perf_counter() - self._begun

    @property
    def fewest(self) -> int:
        """How many trials are made whatever they take."""
        return 0 if self._flops else 1

    def pay(self, tried: Sequence[Result]) -> None:
        for each in tried:
            self._flops += self._flops_of(each.n_rows, each.n_components, each.n_folds)

    def measure(self, tried: Sequence[Result]) -> None:
        """Leave a direct fit more of the seconds if the first trial of one kernel took more."""
        plan = self.plan
        one = next(
            (a for a in tried if not a.setting.is_linear and a.setting.metric != ADDED), None
        )
        if self.clock is not None and one is not None and not plan.solves_by_passes:
            sizes = one.n_rows, plan.n_features, one.n_components, one.n_folds
            expected = A_TRIAL * fit_seconds(*sizes, plan.precision, 1)
            self.clock.slowness = max(sum(one.cost) / expected, 1.0)

    def payable(self, sizes: Sequence[int], n_rows: int, n_folds: int) -> list[int]:
        """Return the first rungs whose equal parts of the budget pay for two trials on the last."""
        plan, left = self.plan, list(sizes)
        flops = self.budget.amount * plan.flops - self._spent
        if self.clock is not None:
            seconds = self.clock.left() / self.clock.slowness
            flops = seconds * plan.n_slots * rough_flops_per_second(plan.precision)
        while len(left) > 1 and 2 * self._flops_of(n_rows, left[-1], n_folds) > flops / len(left):
            left.pop()
        return left

    def affordable(
        self, n_trials: int, n_rows: int, n_components: int, share: float, n_folds: int = N_FOLDS
    ) -> int:
        """Return how many of some trials a share of the passes pays for: of the first, one."""
        if self.budget is None or self.clock is not None:
            return n_trials
        room = share * self.budget.amount
        a_trial = self._flops_of(n_rows, n_components, n_folds) / self.plan.flops
        # A budget that is meant for so many trials pays for them, whatever the rounding.
        number = int((room - self.passes) / a_trial + 1e-9)
        return max(min(number, n_trials), min(n_trials, self.fewest))

    def _flops_of(self, n_rows: int, n_components: int, n_folds: int) -> float:
        return fit_flops(n_rows, self.plan.n_features, n_components, n_folds)
