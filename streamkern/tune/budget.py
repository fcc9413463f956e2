"""The budget of a search, in passes or seconds, and error against cost of what it found."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamkern.errors import ParameterError
from streamkern.kernels import Combined
from streamkern.parameters.cost_estimate import fit_flops, rough_flops_per_second, solve_flops
from streamkern.parameters.fit_options import large_sample
from streamkern.runtime.resources import current_resources
from streamkern.tune.trials import ISOTROPIC, N_FOLDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamkern.kernels import ShiftInvariantKernel
    from streamkern.parameters.fit_options import FitOptions
    from streamkern.parameters.job_plan import Plan
    from streamkern.sources import Source
    from streamkern.tune.trials import Attempt

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}

# What a budget may make of the sample: these rows at the least, and so many times as many.
_FEWEST_SEARCH_ROWS, _TIMES = 2048, 4


@dataclass(frozen=True)
class Budget:
    """Seconds on the clock, or passes: the multiply-adds of a fit to all rows at its D."""

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
        return f"{self.amount:g}{'s' * self.in_seconds}"

    def flops(self, plan_flops: float, precision: str, n_slots: int) -> float:
        if self.in_seconds:
            return self.amount * n_slots * rough_flops_per_second(precision)
        return self.amount * plan_flops


class Spent(NamedTuple):
    """What was spent of a budget: multiply-adds, and seconds on the clock."""

    flops: float = 0.0
    seconds: float = 0.0


class Ledger:
    """What a search has spent of its budget; None pays for everything.

    Passes are counted by formula.  When a share of the seconds is over, no more trials begin.
    """

    def __init__(self, budget: Budget | None, plan: Plan, spent: Spent | None = None) -> None:
        self.budget = budget
        self.plan = plan
        self.spent = spent or Spent()
        self._flops = 0.0
        self._begun = perf_counter()

    @property
    def passes(self) -> float:
        """The multiply-adds of all that was spent, over those of the pass."""
        return (self.spent.flops + self._flops) / self.plan.flops

    @property
    def seconds(self) -> float:
        return perf_counter() - self._begun

    def pay(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            self._flops += self._flops_of(attempt.n_rows, attempt.n_components, attempt.n_folds)

    def payable(self, sizes: Sequence[int], n_rows: int, n_folds: int) -> list[int]:
        """Return the first rungs whose equal parts of the budget pay for two trials on the last."""
        assert self.budget is not None  # noqa: S101  for the type checker
        plan, left = self.plan, list(sizes)
        flops = self.budget.flops(plan.flops, plan.precision, plan.n_slots) - self.spent.flops
        while len(left) > 1 and 2 * self._flops_of(n_rows, left[-1], n_folds) > flops / len(left):
            left.pop()
        return left

    def affordable(
        self, n_trials: int, n_rows: int, n_components: int, share: float, n_folds: int = N_FOLDS
    ) -> int:
        """Return how many of some trials can be paid before a share is spent."""
        if self.budget is None:
            return n_trials
        room = share * self.budget.amount
        if self.budget.in_seconds:
            # As many as run at a time.
            number = self.plan.n_slots if self.spent.seconds + self.seconds < room else 0
        else:
            a_trial = self._flops_of(n_rows, n_components, n_folds) / self.plan.flops
            # A budget that is meant for so many trials pays for them, whatever the rounding.
            number = int((room - self.passes) / a_trial + 1e-9)
        return max(min(number, n_trials), 0 if self._flops else min(n_trials, 1))

    def _flops_of(self, n_rows: int, n_components: int, n_folds: int) -> float:
        return fit_flops(n_rows, self.plan.n_features, n_components, n_folds)


def budgeted_rows(source: Source, options: FitOptions, n_arms: int, budget: Budget) -> int:
    """Return as many rows as let all arms go through all rungs, up to D, within a budget."""
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


@dataclass(frozen=True)
class Search:
    """What a search found: the kernel with the chosen length scale, map and metric."""

    kernel: ShiftInvariantKernel
    tried: ShiftInvariantKernel  # as among the attempts, without columns that are constant
    feature_map: str
    metric: str
    place: int  # of the chosen contender
    attempts: Sequence[Attempt]
    configurations: Sequence[dict[str, Any]]
    passes: float
    seconds: float

    @property
    def note(self) -> str:
        """One sentence where the chosen length scale is the shortest or longest tried, else ''."""
        name = (self.metric, self.feature_map, self.tried.name)
        mine = [a for a in self.attempts if (a.metric, a.feature_map, a.kernel) == name]
        # Of several length scales, the first: all are multiplied alike.
        scales = [float(np.atleast_1d(a.length_scale)[0]) for a in mine]
        chosen = float(np.atleast_1d(self.tried.length_scale)[0])
        if min(scales) < chosen < max(scales):
            return ""
        if isinstance(self.tried, Combined):
            return (
                f"the best length scales, {chosen:.4g} and those in proportion to it, are at the "
                f"edge of those tried; search again with length scales about them in --kernel."
            )
        return (
            f"the best length scale, {chosen:.4g}, is at the edge of those tried; search again "
            f"about it with --length-scale {chosen:.4g}."
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "tuning": [attempt.as_dict() for attempt in self.attempts],
            "tuning_note": self.note,
            "tuning_passes": self.passes,
            "frontier": list(self.configurations),
        }


def map_in_words(tried: Mapping[str, Any]) -> str:
    """Return the map of an attempt or a configuration as a report keeps it, with its metric."""
    name: str = tried["feature_map"]
    return name if tried["metric"] == ISOTROPIC else f"{name}, {tried['metric']}"


def configurations(
    attempts: Sequence[Attempt], chosen: Attempt, plan: Plan, n_folds: int
) -> list[dict[str, Any]]:
    """Return what was tried at the best length scale of each, the cheapest first, for JSON."""
    ascending = sorted(attempts, key=lambda each: each.relative_mse)
    best = {
        (each.metric, each.feature_map, each.kernel, each.n_components): each
        for each in (*reversed(ascending), chosen)
    }
    found = [_configuration(each, each is chosen, plan, n_folds) for each in best.values()]
    found.sort(key=lambda each: (each["seconds"], each["relative_mse"]))
    least = np.inf
    for each in found:  # the best are those that nothing cheaper is as good as
        each["is_best"] = each["relative_mse"] < least
        least = min(least, each["relative_mse"])
    return found


def _configuration(attempt: Attempt, is_chosen: bool, plan: Plan, n_folds: int) -> dict[str, Any]:
    """Return an attempt with the passes and seconds, on all threads, of a fit to all rows."""
    D, cost = attempt.n_components, attempt.cost
    solving = solve_flops(D, n_folds) / solve_flops(D, attempt.n_folds)
    shared = cost.sums * plan.n_rows / attempt.n_rows + cost.errors * solving
    return {
        "metric": attempt.metric,
        "feature_map": attempt.feature_map,
        "kernel": attempt.kernel,
        "length_scale": np.asarray(attempt.length_scale).tolist(),
        "n_components": D,
        "relative_mse": attempt.relative_mse,
        "standard_error": attempt.standard_error,
        "passes": fit_flops(plan.n_rows, plan.n_features, D, n_folds) / plan.flops,
        "seconds": cost.drawing + shared / plan.n_slots,
        "is_best": False,
        "is_chosen": is_chosen,
    }
