"""What a search may spend, in passes or in seconds, and what it has spent."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from streamkern.errors import ParameterError
from streamkern.parameters.cost_estimate import fit_flops, rough_flops_per_second
from streamkern.parameters.fit_options import large_sample
from streamkern.runtime.resources import current_resources
from streamkern.tune.kernel_trials import N_FOLDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamkern.parameters.fit_options import FitOptions
    from streamkern.parameters.plan import Plan
    from streamkern.sources import Source
    from streamkern.tune.kernel_trials import Attempt

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}

# What a budget may make of the sample: these rows at the least, and so many times as many.
_FEWEST_SEARCH_ROWS, _TIMES = 2048, 4


@dataclass(frozen=True)
class Budget:
    """What a search may spend.

    Parameters
    ----------
    amount : float
    in_seconds : bool
        Seconds on the clock; else passes: the multiply-adds of the pass over all rows at the D
        asked for, and of what is solved after it.
    """

    amount: float
    in_seconds: bool = False

    @classmethod
    def of(cls, value: Any) -> Budget | None:
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
        """Return the budget as `of` takes it."""
        return f"{self.amount:g}{'s' * self.in_seconds}"

    def flops(self, plan_flops: float, precision: str, n_slots: int) -> float:
        """Return about how many multiply-adds can be had for it."""
        if self.in_seconds:
            return self.amount * n_slots * rough_flops_per_second(precision)
        return self.amount * plan_flops


class Spent(NamedTuple):
    """What was spent of a budget.

    Parameters
    ----------
    flops : float
        Multiply-adds.
    seconds : float
        On the clock.
    """

    flops: float = 0.0
    seconds: float = 0.0


class Ledger:
    """What a search has spent of its budget, and what it can still pay.

    Parameters
    ----------
    budget : Budget or None
        None pays for everything.
    plan : Plan
        Of the fit.
    spent : Spent, optional
        What was spent of the budget before the search.
    """

    def __init__(self, budget: Budget | None, plan: Plan, spent: Spent | None = None) -> None:
        self.budget = budget
        self.plan = plan
        self.spent = spent or Spent()
        self._flops = 0.0
        self._begun = perf_counter()
        # By family of maps, as measured: multiply-adds, and seconds of a thread.
        self._work: Counter[str] = Counter()
        self._seconds: Counter[str] = Counter()

    @property
    def passes(self) -> float:
        """The multiply-adds of all that was spent, over those of the pass."""
        return (self.spent.flops + self._flops) / self.plan.flops

    @property
    def seconds(self) -> float:
        """Since the search began."""
        return perf_counter() - self._begun

    def paid(self, attempts: Sequence[Attempt]) -> None:
        """Note what was tried."""
        for attempt in attempts:
            flops = self._trial_flops(attempt.n_rows, attempt.n_components, attempt.n_folds)
            self._flops += flops
            self._work[attempt.feature_map] += flops  # type: ignore[assignment]
            self._seconds[attempt.feature_map] += sum(attempt.cost)  # type: ignore[assignment]

    def payable(self, sizes: Sequence[int], n_rows: int, n_folds: int) -> list[int]:
        """Return the rungs, from the first, whose equal parts of the budget pay for their trials.

        That is one each, and two on the last, where something is compared.
        """
        assert self.budget is not None  # noqa: S101  for the type checker
        plan, left = self.plan, list(sizes)
        flops = self.budget.flops(plan.flops, plan.precision, plan.n_slots) - self.spent.flops
        while len(left) > 1 and 2 * self._trial_flops(n_rows, left[-1], n_folds) > flops / len(
            left
        ):
            left.pop()
        return left

    def affordable(
        self,
        maps: Sequence[str],
        n_rows: int,
        n_components: int,
        share: float,
        n_folds: int = N_FOLDS,
    ) -> int:
        """Return how many of some trials, in their order, can be paid before a share is spent."""
        if self.budget is None:
            return len(maps)
        flops = self._trial_flops(n_rows, n_components, n_folds)
        room = share * self.budget.amount
        if self.budget.in_seconds:
            slots = self.plan.n_slots
            left = room - self.spent.seconds - self.seconds
            fits = [self._predicted(name, flops) <= left for name in maps[:slots]]
            number = fits.index(False) if False in fits else len(fits)
        else:
            # A budget that is meant for so many trials pays for them, whatever the rounding.
            number = int((room - self.passes) / (flops / self.plan.flops) + 1e-9)
        return max(min(number, len(maps)), 0 if self._flops else min(len(maps), 1))

    def _trial_flops(self, n_rows: int, n_components: int, n_folds: int) -> float:
        return fit_flops(n_rows, self.plan.n_features, n_components, n_folds)

    def _predicted(self, feature_map: str, flops: float) -> float:
        """Return the seconds of a trial: at the rate of its family, of all, or a guess."""
        name = [feature_map] if self._seconds[feature_map] > 0 else list(self._seconds)
        seconds = sum(self._seconds[each] for each in name)
        if not seconds > 0:
            return flops / rough_flops_per_second(self.plan.precision)
        return flops * seconds / sum(self._work[each] for each in name)


def budgeted_rows(source: Source, options: FitOptions, n_arms: int, budget: Budget) -> int:
    """Return how many rows a search within a budget may hold.

    That is as many as let all arms go through all rungs, up to D.
    """
    p, D, resources = source.n_features, options.n_components, current_resources()
    slots = max(resources.n_workers, 1) * resources.n_threads
    a_pass = fit_flops(source.n_samples, p, D, options.n_folds)
    flops = budget.flops(a_pass, options.precision, slots)
    usual = large_sample(p + source.n_targets)
    least = min(_FEWEST_SEARCH_ROWS, usual)
    fixed = each = 0.0
    for share, number in ((1 / 8, 13), (1 / 4, 4), (1 / 2, 2), (1.0, 1)):
        size = max(int(share * D), 1)
        without, one = (fit_flops(m, p, size, N_FOLDS) for m in (0, 1))
        fixed += n_arms * number * without
        each += n_arms * number * (one - without)
    return int(min(max((flops - fixed) / each, least), _TIMES * usual))
