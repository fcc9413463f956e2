"""The seconds of a search and of the fit after it, and what is left of them."""

import math
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from streamkern.choice.cross_validated_fit import Result
from streamkern.choice.time_limit import TimeLimit
from streamkern.errors import ParameterError
from streamkern.extensions.search.settings import ADDED
from streamkern.parameters.cost_estimate import AT_LANDMARKS, fit_seconds
from streamkern.parameters.fit_options import DIRECT_COMPONENTS, FitOptions, has_few_rows
from streamkern.parameters.parameters import AUTO, Parameters
from streamkern.parameters.plan import Plan
from streamkern.parameters.planning import plan_here
from streamkern.runtime.resources import current_resources
from streamkern.sources import Source

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
# What the fit after the search may take, what its D is multiplied by, and
# the rows a feature that this wants, of the D x D system and of conjugate gradients.
_FIT_SHARE, _TIMES, _ROWS_A_COMPONENT, _ROWS_BY_PASSES = 0.45, (16, 8, 4, 2), 3, 2
# What a trial of one thread takes of a fit by the formula, and a fit with calibration of one
# without.
A_TRIAL, _CALIBRATED = 2.1, 1.35
# The share of a search that may learn metrics, and what a plain fit takes of one at landmarks.
LEARNING, _PLAIN = 0.65, 0.75
# Seconds that some trials take besides what the formula counts, however small they are.
_BESIDE = 0.05
# What a fit takes of the formula's seconds at the least, and the part of what is kept back for it
# that trials which have begun may use up.
_LEAST_SLOWNESS, _GRACE = 0.7, 0.3
# What a fit takes of another at landmarks where rows are so few that folds have their own.
_OWN_LANDMARKS = 1.5


@dataclass(frozen=True)
class Budget:
    """What a search and the fit after it may take."""

    seconds: float

    @classmethod
    def of(cls, value: Any) -> "Budget | None":
        """Return the budget that a text such as '5m' stands for."""
        if value is None:
            return None
        found = re.fullmatch(r"\s*([0-9.eE+-]+)\s*([smh])\s*", str(value))
        try:
            amount = float(found[1]) if found else math.nan
        except ValueError:
            amount = math.nan
        if not found or not 0 < amount < math.inf:
            raise ParameterError(
                f"a budget is a positive number of seconds, minutes or hours, such as '120s', '5m' "
                f"or '1h', not {value!r}; give one of these."
            )
        return cls(amount * _SECONDS[found[2]])

    def __str__(self) -> str:
        return f"{self.seconds:g}s"

    def components(self, parameters: Parameters, options: FitOptions, source: Source) -> int:
        """Return so many times D as rows, memory and a share of the seconds are enough for."""
        D, n = options.n_components, source.n_samples
        for times in _TIMES:
            more = replace(options, n_components=times * D)
            plan = plan_here(source, more, **parameters.solution_by_passes(more))
            fewest = _ROWS_BY_PASSES if plan.solves_by_passes else _ROWS_A_COMPONENT
            enough = plan.fits and fewest * times * D <= n
            enough = enough and (times * D <= DIRECT_COMPONENTS or plan.solves_by_passes)
            if enough and direct_seconds(plan, parameters, options) <= _FIT_SHARE * self.seconds:
                return times * D
        return D

    def clock(
        self, parameters: Parameters, options: FitOptions, source: Source, begun: float
    ) -> "Clock":
        """Return the clock of a search that has begun, whose fit has so many features or fewer."""
        D: Any = parameters.n_components
        asked = options if D == AUTO else replace(options, n_components=D)
        plans = [plan_here(source, o, **parameters.solution_by_passes(o)) for o in (options, asked)]
        wide, plain = (
            direct_seconds(plan, parameters, options) * _times_of_folds(plan) for plan in plans
        )
        return Clock(self.seconds, begun, (wide, _PLAIN * plain), perf_counter)


def _times_of_folds(plan: Plan) -> float:
    few = has_few_rows(plan.n_rows, plan.n_components)
    return _OWN_LANDMARKS if few and not plan.solves_by_passes else 1.0


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
    taken: dict[Hashable, float] = field(default_factory=dict)  # by trials of a kind, the last time

    @property
    def until_end(self) -> float:
        return self.begun + self.seconds - self.now()

    def left(self, share: float = 1.0) -> float:
        """Return the seconds until a share of those beside the fit has passed."""
        return self.until_end - self.seconds + share * (self.seconds - self.kept)

    @property
    def kept(self) -> float:
        """The seconds that are kept back for the fit."""
        wide, plain = (self.slowness * each for each in self.reserved)
        return max(min(wide, self.seconds / 2), plain)

    def measure(self, tried: Sequence[Result], plan: Plan) -> None:
        """Leave a direct fit as many of the seconds as the first trial of one kernel says."""
        several = (a for a in tried if not a.setting.is_linear and a.setting.metric != ADDED)
        one = next(several, None)
        if one is not None and not plan.solves_by_passes:
            sizes = one.n_rows, plan.n_features, one.n_components, one.n_folds
            expected = A_TRIAL * fit_seconds(*sizes, plan.precision, 1)
            self.slowness = max(sum(one.cost) / expected, _LEAST_SLOWNESS)

    def limit(self, share: float = 1.0) -> TimeLimit:
        """Return the time after which trials that have begun are stopped."""
        return TimeLimit(self.left(share) + _GRACE * self.kept, self.now)


def run_in_time(
    clock: Clock | None,
    several: Sequence[Any],
    share: float,
    make: Callable[[TimeLimit, Sequence[Any]], list[Any]] = TimeLimit.compute_all,
    *,
    fewest: int = 0,
    expected: float = 0,
    kind: Hashable = None,
) -> list[Any]:
    """Make all, or the fewest, and more while as many as there are slots have time to end.

    Those are expected to take what the last ones of their kind took.  `make` returns what came of
    some, fewer where one was stopped, after which there are no more.
    """
    if clock is None:
        return make(TimeLimit(), several)
    made, n_slots = list[Any](), current_resources().n_slots
    taken = clock.taken.get(kind, 0.0)
    while some := several[len(made) : len(made) + n_slots]:
        begun, is_due = clock.now(), len(made) < fewest
        if not is_due and taken >= clock.left(share):
            break
        made += (new := make(TimeLimit() if is_due else clock.limit(share), some))
        is_stopped, taken = len(new) < len(some), clock.now() - begun
        if kind is not None:  # what was stopped takes longer than that
            clock.taken[kind] = max(taken, clock.taken.get(kind, 0.0)) if is_stopped else taken
        if is_stopped:
            break
        if expected:  # seconds of these by the formula
            clock.slowness = max(taken / (expected + _BESIDE), 1.0)
    return made
